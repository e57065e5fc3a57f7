#include "rlx/passes/fold.h"

#include <algorithm>
#include <cmath>

#include "rlx/ir/interpreter.h"
#include "rlx/ir/leaves.h"
#include "rlx/passes/edit.h"

namespace rlx::passes {
namespace {

bool is_known(const ir::Node& n, int64_t most_bytes) {
  if (n.is<ir::Constant>()) return true;
  return n.is<ir::Full>() && n.shapes[0].is_static() && n.shapes[0].size_bytes() <= most_bytes;
}

Literal known(const ir::Node& n) {
  if (n.is<ir::Constant>()) return n.as<ir::Constant>().value;
  return Literal::full(n.shapes[0], n.as<ir::Full>().value);
}

bool holds_nan(const Literal& l) {
  if (l.dtype() == DType::f32)
    return std::ranges::any_of(l.data<float>(), [](float x) { return std::isnan(x); });
  if (!is_float(l.dtype()) && !is_complex(l.dtype())) return false;
  for (int64_t i = 0; i < l.elements(); ++i) {
    const std::complex<double> x = l.complex_at(i);
    if (std::isnan(x.real()) || std::isnan(x.imag())) return true;
  }
  return false;
}

}  // namespace

ir::Rewritten fold_constants(ir::Graph graph, int64_t most_bytes) {
  ir::Interpreter interpreter;
  return edit(std::move(graph), [&](ir::Graph& g, const ir::Node& n) -> std::optional<ir::Values> {
    const auto is_known_here = [&](ir::Value v) { return is_known(g.node(v), most_bytes); };
    if (n.inputs.empty() || !n.op->traits.pure || !std::ranges::all_of(n.inputs, is_known_here))
      return std::nullopt;
    Literals in;
    int64_t bytes = 0, result_bytes = 0;
    for (const ir::Value v : n.inputs) {
      in.push_back(known(g.node(v)));
      bytes += int64_t(in.back().bytes().size());
    }
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
    if (std::ranges::any_of(out, holds_nan) && std::ranges::none_of(in, holds_nan)) return std::nullopt;
    ir::Values results;
    for (const Literal& l : out) results.push_back(g.constant(l));
    return results;
  });
}

}  // namespace rlx::passes
