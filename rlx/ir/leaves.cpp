#include "rlx/ir/leaves.h"

#include <cmath>

#include "rlx/ir/build_def.h"

namespace rlx::ir {
namespace {

Shapes infer_leaf(Infer& c, const NamedLeaf& a) {
  if (a.name.empty()) c.fail("the name is empty");
  for (const Dim d : a.shape.dims()) {
    if (d.is_inferred()) c.fail("'", a.name, "' has an axis of size -1; give a size or a symbol");
  }
  return {a.shape};
}

std::vector<OpSample<NamedLeaf>> leaf_samples() {
  return {{{"x", parse_shape("f32[2,3]")}, {}},
          {{"empty", parse_shape("f16[0]")}, {}},
          {{"scalar", parse_shape("i64[]")}, {}},
          {{"a name, with \"quotes\"", parse_shape("bool[1]")}, {}},
          {{"model.layers.0.weight", parse_shape("bf16[7,5]")}, {}},
          {{"dynamic", parse_shape("f32[batch,2*seq+1]")}, {}}};
}

}  // namespace

const std::string& leaf_name(const Node& leaf) {
  RLX_CHECK(leaf.op->traits.leaf, "%", leaf.id, " is ", leaf.op->name, ", not an input or param");
  return static_cast<const NamedLeaf*>(leaf.attrs.get())->name;
}

Shapes Input::infer(Infer& c, Attrs& a) { return infer_leaf(c, a); }
std::vector<OpSample<NamedLeaf>> Input::samples() { return leaf_samples(); }
Shapes Param::infer(Infer& c, Attrs& a) { return infer_leaf(c, a); }
std::vector<OpSample<NamedLeaf>> Param::samples() { return leaf_samples(); }

Shapes Constant::infer(Infer&, Attrs& a) { return {a.value.shape()}; }
Literals Constant::reference(const Eval&, const Attrs& a) { return {a.value}; }

std::vector<OpSample<Constant::Attrs>> Constant::samples() {
  return {{{Literal::of<float>({2}, {1.5f, -0.0f})}, {}},
          {{Literal::of<int64_t>({1}, {int64_t(1) << 62})}, {}},
          {{Literal::zeros(parse_shape("f32[0,3]"))}, {}},
          {{Literal::full(parse_shape("bf16[3,4]"), 0.1)}, {}},
          {{Literal::of<complex64>({}, {complex64(1, -2)})}, {}},
          {{Literal::of<double>({3}, {1.0 / 3, 1e300, -INFINITY})}, {}},
          {{Literal::of<float>({1}, {NAN})}, {}},
          {{Literal::of<bool>({2}, {true, false})}, {}}};
}

Shapes Full::infer(Infer& c, Attrs& a) {
  for (const Dim d : a.shape.dims()) {
    if (d.is_inferred()) c.fail("shape ", a.shape, " has an axis of size -1; give a size or a symbol");
  }
  return {a.shape};
}

Literals Full::reference(const Eval& c, const Attrs& a) { return {Literal::full(c.out(), a.value)}; }

std::vector<OpSample<Full::Attrs>> Full::samples() {
  return {{{parse_shape("f32[2,3]"), 0.1}, {}},    {{parse_shape("i32[4]"), -7}, {}},
          {{parse_shape("bool[1]"), 1}, {}},       {{parse_shape("f16[0,5]"), 1}, {}},
          {{parse_shape("f64[]"), -INFINITY}, {}}, {{parse_shape("c64[3]"), 2.5}, {}}};
}

Expr full(Graph& g, const Shape& shape, double value) { return make<Full>(g, {shape, value}, {}); }
Expr zeros_like(Expr t) { return full(*t.graph, Shape(t.shape()), 0); }
Expr ones_like(Expr t) { return full(*t.graph, Shape(t.shape()), 1); }

template const OpDef& def<Input>();
template const OpDef& def<Param>();
template const OpDef& def<Constant>();
template const OpDef& def<Full>();

}  // namespace rlx::ir
