// Samples of operators with one operand as a view: repeated along an axis, turned, a piece of a larger tensor.
#pragma once

#include <functional>

#include "rlx/ops/all.h"
#include "tests/support/samples.h"

namespace rlx::test {

/// What an operand becomes: `stored` of its value is the leaf, `view` of the leaf the operand.
struct View {
  std::string name;
  std::function<ir::Expr(ir::Expr)> stored, view;
};

inline std::vector<View> views_of(const Shape& s) {
  using ir::Expr;
  std::vector<View> out;
  if (s.rank() == 0 || s.elements() == 0) return out;
  for (int axis = 0; axis < s.rank(); ++axis) {
    const Dim size = s.dim(axis);
    out.push_back({cat("a piece along axis ", axis), [=](Expr x) { return ops::concat({x, x}, axis); },
                   [=](Expr x) { return ops::narrow(x, axis, size, size); }});
    if (size.value() == 1) continue;
    out.push_back({cat("repeated along axis ", axis), [=](Expr x) { return ops::narrow(x, axis, 0, 1); },
                   [=, dims = s.dims()](Expr x) { return ops::expand(x, dims); }});
  }
  if (s.rank() > 1) {
    std::vector<int> turned;
    for (int axis = s.rank(); axis-- > 0;) turned.push_back(axis);
    const auto turn = [=](Expr x) { return ops::transpose(x, turned); };
    out.push_back({"turned", turn, turn});
  }
  return out;
}

inline Literal value_of(const Literal& x, const std::function<ir::Expr(ir::Expr)>& f) {
  ir::Graph g("stored");
  g.set_outputs({f({&g, g.input("x", x.shape())})});
  return ir::interpret(g, Literals{x})[0];
}

/// The sample with operand `which` as a view.
inline SampleCase with_view(const ir::OpDef& op, const ir::AttrsRef& attrs, const Literals& operands,
                            size_t which, const View& v) {
  SampleCase out{ir::Graph(std::string(op.name)), operands};
  out.leaves[which] = value_of(operands[which], v.stored);
  ir::Values values;
  for (size_t i = 0; i < operands.size(); ++i) {
    const ir::Expr leaf{&out.graph, out.graph.input(cat("x", i), out.leaves[i].shape())};
    values.push_back(i == which ? ir::Value(v.view(leaf)) : ir::Value(leaf));
  }
  const ir::NodeId id = out.graph.append(op, attrs, values);
  ir::Values outputs;
  for (uint32_t r = 0; r < out.graph.node(id).shapes.size(); ++r) outputs.push_back(out.graph.value(id, r));
  out.graph.set_outputs(outputs);
  return out;
}

/// body(case, what the interpreter says, which it is) for every sample, operand and view whose numbers the operator takes.
inline void for_each_view(
    const ir::OpDef& op,
    const std::function<void(const SampleCase&, const Literals&, const std::string&)>& body) {
  if (op.traits.leaf || op.traits.block) return;
  // A matrix with equal rows or columns is singular: these have no answer for it, or many.
  const bool factors = op.name == "eigh" || op.name == "inverse" || op.name == "qr" || op.name == "slogdet" ||
                       op.name == "svd";
  for (size_t i = 0; i < op.samples().size(); ++i) {
    const SampleCase sample = make_case(op, i);
    for (size_t which = 0; which < sample.leaves.size(); ++which) {
      for (const View& v : views_of(sample.leaves[which].shape())) {
        if (factors && v.name.starts_with("repeated")) continue;
        SampleCase c{ir::Graph(""), {}};
        Literals want;
        try {
          c = with_view(op, op.samples()[i].attrs, sample.leaves, which, v);
          want = ir::interpret(c.graph, c.leaves);
        } catch (const Error&) {
          continue;  // other numbers than the operator takes
        }
        body(c, want, cat("sample ", i, ", operand ", which, " ", v.name, "\n", c.graph));
      }
    }
  }
}

}  // namespace rlx::test
