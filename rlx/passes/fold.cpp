#include "rlx/passes/fold.h"

#include <algorithm>

#include "rlx/ir/bodies.h"
#include "rlx/ir/interpreter.h"
#include "rlx/ir/leaves.h"

namespace rlx::passes {
namespace {

bool is_known(const ir::Node& n, int64_t most_bytes) {
  if (n.is<ir::Constant>()) return true;
  return n.is<ir::Full>() && n.shapes[0].is_static() && n.shapes[0].size_bytes() <= most_bytes;
}

// The contents of a node of the new graph when they are known.
std::optional<Literal> known(const ir::Node& n, int64_t most_bytes) {
  if (!is_known(n, most_bytes)) return std::nullopt;
  if (n.is<ir::Constant>()) return n.as<ir::Constant>().value;
  return Literal::full(n.shapes[0], n.as<ir::Full>().value);
}

}  // namespace

bool has_constants_to_fold(const ir::Graph& graph, int64_t most_bytes) {
  for (const ir::Node* n : graph.nodes()) {
    bool found = false;
    ir::for_each_body(*n, [&](const auto&, const ir::GraphRef& body) {
      found = found || has_constants_to_fold(*body, most_bytes);
    });
    const auto is_known_here = [&](ir::Value v) { return is_known(graph.node(v), most_bytes); };
    if (found || (!n->inputs.empty() && n->op->traits.pure && std::ranges::all_of(n->inputs, is_known_here)))
      return true;
  }
  return false;
}

ir::Rewritten fold_constants(const ir::Graph& graph, int64_t most_bytes) {
  ir::Interpreter interpreter;
  return ir::rewrite(graph, [&](ir::Cloner& copy, const ir::Node& n) -> std::optional<ir::Values> {
    if (n.inputs.empty() || !n.op->traits.pure) return std::nullopt;
    Literals in;
    int64_t bytes = 0;
    for (const ir::Value v : copy.at(n.inputs)) {
      const auto value = known(copy.to().node(v), most_bytes);
      if (!value) return std::nullopt;
      bytes += int64_t(value->bytes().size());
      in.push_back(*value);
    }
    int64_t result_bytes = 0;
    for (const Shape& s : n.shapes) {
      if (!s.is_static()) return std::nullopt;
      result_bytes += s.size_bytes();
    }
    if (result_bytes > std::max(bytes, most_bytes)) return std::nullopt;
    Literals out;
    try {
      out = interpreter.run_node(n, in);
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::internal) throw;
      return std::nullopt;
    }
    ir::Values results;
    for (const Literal& l : out) results.push_back(copy.to().constant(l));
    return results;
  });
}

}  // namespace rlx::passes
