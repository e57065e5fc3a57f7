#include "rlx/ops/shape/narrow.h"

#include <cstring>

#include "rlx/ir/leaves.h"
#include "rlx/ops/shape/concat.h"

namespace rlx::ops {

Shapes Narrow::infer(Infer& c, Attrs& a) {
  const Shape& x = c.in(0);
  a.axis = c.axis(a.axis, 0);
  if (a.start.is_inferred() || a.len.is_inferred())
    c.fail("start ", a.start, " and len ", a.len, " must not be negative");
  const Dim size = x.dim(a.axis), end = a.start + a.len;
  if (size.is_static() && end.is_static() && end.value() > size.value()) {
    c.fail("range ", a.start, " + ", a.len, " exceeds axis ", a.axis, " of x: ", x);
  }
  return {x.with_dim(a.axis, a.len)};
}

Literals Narrow::reference(const Eval& c, const Attrs& a) {
  const Literal& x = c.in(0);
  Literal y = Literal::zeros(c.out());
  const auto [outer, length, inner] = axis_view(x.shape(), a.axis);
  const int64_t start = a.start.value(), len = a.len.value();
  const size_t row = size_t(inner) * dtype_size(x.dtype());
  std::byte* to = y.mutable_bytes().data();
  for (int64_t o = 0; o < outer && len > 0; ++o) {
    std::memcpy(to + size_t(o * len) * row, x.bytes().data() + size_t(o * length + start) * row,
                size_t(len) * row);
  }
  return {y};
}

Exprs Narrow::vjp(const Vjp& c, const Attrs& a) {
  const Shape& x = c.in(0).shape();
  const Dim after = x.dim(a.axis) - a.start - a.len;
  Exprs parts;
  if (a.start != Dim(0)) parts.push_back(full(c.graph, x.with_dim(a.axis, a.start), 0));
  parts.push_back(c.dy());
  if (after != Dim(0)) parts.push_back(full(c.graph, x.with_dim(a.axis, after), 0));
  return {concat(parts, a.axis)};
}

Exprs Narrow::vmap(const Vmap& c, const Attrs& a) { return {narrow(c.in(0), a.axis + 1, a.start, a.len)}; }

std::optional<Layout> Narrow::view(const View& c, const Attrs& a) {
  Layout y = c.layout;
  y.offset += a.start.value() * y.strides[size_t(a.axis)];
  return y;
}

std::vector<OpSample<Narrow::Attrs>> Narrow::samples() {
  return {{{0, 1, 2}, {"f32[4,3]"}}, {{-1, 0, 1}, {"f64[2,3]"}}, {{1, 2, 0}, {"f32[2,3]"}},
          {{0, 0, 5}, {"i32[5]"}},   {{0, 0, 1}, {"f16[1]"}},    {{1, 3, 2}, {"c64[2,5,2]"}},
          {{0, 0, 0}, {"bool[0]"}}};
}

Expr narrow(Expr x, int axis, Dim start, Dim len) { return make<Narrow>(*x.graph, {axis, start, len}, {x}); }

}  // namespace rlx::ops
