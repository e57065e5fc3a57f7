#include "rlx/ops/shape/flip.h"

#include "rlx/ops/shape/box.h"

namespace rlx::ops {

Shapes Flip::infer(Infer& c, Attrs& a) {
  if (a.axes.empty()) {
    for (int i = 0; i < c.in(0).rank(); ++i) a.axes.push_back(i);
  }
  a.axes = c.axes(a.axes, 0);
  return {c.in(0)};
}

Literals Flip::reference(const Eval& c, const Attrs& a) {
  const Dims& dims = c.out().dims();
  std::vector<int64_t> start(dims.size(), 0), stride(dims.size(), 1);
  for (const int axis : a.axes) {
    start[size_t(axis)] = dims[size_t(axis)].value() - 1;
    stride[size_t(axis)] = -1;
  }
  return {pick_elements(c.in(0), box_positions(dims, dims, start, stride), c.out())};
}

Exprs Flip::vjp(const Vjp& c, const Attrs& a) { return {flip(c.dy(), a.axes)}; }

Exprs Flip::vmap(const Vmap& c, const Attrs& a) {
  if (a.axes.empty()) return {c.in(0)};  // a scalar each
  std::vector<int> axes = a.axes;
  for (int& axis : axes) ++axis;
  return {flip(c.in(0), axes)};
}

std::optional<Layout> Flip::view(const View& c, const Attrs& a) {
  Layout y = c.layout;
  for (const int axis : a.axes) {
    int64_t& stride = y.strides[size_t(axis)];
    y.offset += std::max<int64_t>(c.in.dim(axis).value() - 1, 0) * stride;
    stride = -stride;
  }
  return y;
}

std::vector<OpSample<Flip::Attrs>> Flip::samples() {
  return {{{{0}}, {"f32[3,2]"}},    {{{-1}}, {"f64[2,5]"}}, {{{}}, {"f32[2,3,2]"}},    {{{0}}, {"i32[0,4]"}},
          {{{0, 1}}, {"c64[1,3]"}}, {{{}}, {"f32[]"}},      {{{-1, 0}}, {"bool[2,2]"}}};
}

Expr flip(Expr x, std::vector<int> axes) { return make<Flip>(*x.graph, {std::move(axes)}, {x}); }

}  // namespace rlx::ops
