#include "rlx/backend/coverage.h"

#include <algorithm>

#include "rlx/backend/builder.h"
#include "rlx/ir/sample.h"
#include "rlx/passes/legalise.h"

namespace rlx::backend {
namespace {

void add_once(std::vector<std::string>& list, std::string text) {
  const auto at = std::lower_bound(list.begin(), list.end(), text);
  if (at == list.end() || *at != text) list.insert(at, std::move(text));
}

// The sample as a graph of one node; nothing when an operand or a result has no elements or no known size.
std::optional<ir::Graph> graph_of(const ir::OpDef& op, const ir::Sample& sample) {
  ir::Graph g{std::string(op.name)};
  ir::Values operands;
  for (const std::string& text : sample.inputs) {
    const Shape shape = ir::sample_literal(text, operands.size()).shape();
    if (shape.elements() == 0) return std::nullopt;
    operands.push_back(g.input(cat("x", operands.size()), shape));
  }
  const ir::NodeId id = g.append(op, sample.attrs, operands);
  ir::Values outputs;
  for (uint32_t i = 0; i < g.node(id).shapes.size(); ++i) {
    const Shape& shape = g.node(id).shapes[i];
    if (!shape.is_static() || shape.elements() == 0) return std::nullopt;
    outputs.push_back(g.value(id, i));
  }
  g.set_outputs(outputs);
  return g;
}

// What the operator's own kernels say; the general ones take elementwise operators or decline everything else
// alike.
std::string reasons_of(const Plan::Step& s, const Kernels& own) {
  const DType t = s.in.empty() ? s.out[0].shape.dtype() : s.in[0].shape.dtype();
  std::vector<std::string> reasons;
  for (const Declined& d : s.declined) {
    const bool known =
        std::any_of(own.begin(), own.end(), [&](const Kernel& k) { return k.name == d.kernel; });
    if (known || (own.empty() && d.reason.find("not ") != 0))
      reasons.push_back(cat(d.kernel, ": ", d.reason));
  }
  return cat(t, " ", s.op, reasons.empty() ? std::string(": no kernel") : cat(": ", join(reasons, "; ")));
}

}  // namespace

std::string Coverage::kind() const {
  std::vector<std::string> words;
  if (view) words.emplace_back("view");
  if (own) words.emplace_back("kernel");
  if (decomposed) words.emplace_back("decomposition");
  if (!reference.empty()) words.emplace_back("reference");
  return join(words, ", ");
}

Coverage coverage(const ir::OpDef& op, const Backend& backend) {
  Coverage out;
  if (op.traits.leaf || op.samples == nullptr) return out;
  for (const ir::Sample& sample : op.samples()) {
    const auto made = graph_of(op, sample);
    if (!made) continue;
    ++out.samples;
    const ir::Graph g = passes::legalise(*made, backend).graph;
    const std::vector<bool> fixed(g.leaves().size(), true);
    const auto program = Builder(backend, 1).build(g, {.fixed = fixed});
    bool itself = false, any = false;
    for (const Plan::Step& s : program->plan().steps) {
      if (s.kernel == "copy") continue;
      any = true;
      itself = itself || s.op == op.name;
      out.own = out.own || (s.op == op.name && s.kernel != "reference");
      if (s.kernel == "reference") {
        add_once(out.reference, reasons_of(s, backend.kernels().of(*g.node(s.node).op)));
      } else {
        add_once(out.kernels, s.kernel);
      }
    }
    out.decomposed = out.decomposed || (any && !itself);
    out.view = out.view || !any;
  }
  return out;
}

}  // namespace rlx::backend
