#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {

Shapes Reshape::infer(Infer& c, Attrs& a) {
  const Shape& x = c.in(0);
  const Dim total = x.num_elements();
  Dim rest = 1;
  Dim* unknown = nullptr;
  for (Dim& d : a.shape) {
    if (!d.is_inferred()) {
      rest = rest * d;
    } else if (unknown == nullptr) {
      unknown = &d;
    } else {
      c.fail("shape ", a.shape, " has more than one -1");
    }
  }
  if (unknown != nullptr) {
    if (rest == Dim(0))
      c.fail("shape ", a.shape, " has a 0 beside the -1; x: ", x, " does not tell the size");
    const auto size = exact_div(total, rest);
    if (!size && total.is_static() && rest.is_static()) {
      c.fail("x: ", x, " has ", total, " elements, not divisible by ", rest, " of shape ", a.shape);
    }
    *unknown = size ? *size : floordiv(total, rest);
    rest = rest * *unknown;
  }
  if (decide_equal(total, rest) == false) {
    c.fail("x: ", x, " has ", total, " elements, shape ", a.shape, " has ", rest);
  }
  c.same(total, rest, "numbers of elements");
  return {x.with_dims(a.shape)};
}

Literals Reshape::reference(const Eval& c, const Attrs&) { return {c.in(0).reshaped(c.out().dims())}; }

Exprs Reshape::vjp(const Vjp& c, const Attrs&) { return {reshape(c.dy(), c.in(0).shape().dims())}; }

Exprs Reshape::vmap(const Vmap& c, const Attrs& a) {
  Dims shape = a.shape;
  shape.insert(shape.begin(), c.size);
  return {reshape(c.in(0), shape)};
}

std::optional<Layout> Reshape::view(const View& c, const Attrs&) {
  return ir::reshaped(c.layout, c.in.dims(), c.out.dims());
}

std::vector<OpSample<Reshape::Attrs>> Reshape::samples() {
  return {{{{3, 4}}, {"f32[2,6]"}}, {{{-1, 2}}, {"f64[3,4]"}}, {{{0, 5}}, {"f32[5,0]"}}, {{{}}, {"i32[1]"}},
          {{{1, 1}}, {"f16[]"}},    {{{7, -1}}, {"c64[7]"}},   {{{6}}, {"bool[2,3]"}}};
}

Expr reshape(Expr x, Dims shape) {
  return x.shape().dims() == shape ? x : make<Reshape>(*x.graph, {std::move(shape)}, {x});
}

Expr unsqueeze(Expr x, int axis) {
  Dims dims = x.shape().dims();
  int at = axis;
  if (!normalize_axis(at, x.rank() + 1))
    throw invalid("unsqueeze: axis ", axis, " is out of range for ", x.shape());
  dims.insert(dims.begin() + at, Dim(1));
  return reshape(x, dims);
}

Expr squeeze(Expr x, int axis) {
  Dims dims = x.shape().dims();
  int at = axis;
  if (!normalize_axis(at, x.rank()))
    throw invalid("squeeze: axis ", axis, " is out of range for ", x.shape());
  if (dims[size_t(at)] != Dim(1))
    throw invalid("squeeze: axis ", axis, " of ", x.shape(), " has size ", dims[size_t(at)], ", not 1");
  dims.erase(dims.begin() + at);
  return reshape(x, dims);
}

}  // namespace rlx::ops
