#include "rlx/ops/shape/slice.h"

#include <algorithm>

#include "rlx/ops/shape/box.h"
#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/shape/pad.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {

Shapes Slice::infer(Infer& c, Attrs& a) {
  const Shape& x = c.in(0);
  const auto rank = size_t(x.rank());
  if (a.stride.empty()) a.stride.assign(rank, 1);
  const auto full_length = [&](const char* which, const auto& list) {
    if (list.size() != rank) c.fail(which, " ", list, " has ", list.size(), " entries for x: ", x);
  };
  full_length("start", a.start);
  full_length("limit", a.limit);
  full_length("stride", a.stride);
  Dims dims;
  for (size_t k = 0; k < rank; ++k) {
    const Dim start = a.start[k], limit = a.limit[k], size = x.dims()[k];
    if (start.is_inferred() || limit.is_inferred())
      c.fail("start ", a.start, " and limit ", a.limit, " must not be negative");
    if (a.stride[k] < 1)
      c.fail("stride ", a.stride[k], " of axis ", k, " is not positive; flip the axis to go backwards");
    const bool backwards = start.is_static() && limit.is_static() && start.value() > limit.value();
    const bool outside = limit.is_static() && size.is_static() && limit.value() > size.value();
    if (backwards || outside) c.fail("range ", start, " to ", limit, " of axis ", k, " does not fit x: ", x);
    dims.push_back(ceildiv(limit - start, a.stride[k]));
  }
  return {x.with_dims(std::move(dims))};
}

Literals Slice::reference(const Eval& c, const Attrs& a) {
  std::vector<int64_t> start;
  for (const Dim d : a.start) start.push_back(d.value());
  return {pick_elements(c.in(0), box_positions(c.out().dims(), c.in(0).shape().dims(), start, a.stride),
                        c.out())};
}

namespace {

// Element i of `axis` moved to place stride * i of an axis of the given size, zeros between.
Expr spread(Expr t, int axis, int64_t stride, Dim size) {
  Dims dims = t.shape().dims();
  Dims low(dims.size() + 1, Dim(0)), high = low;
  high[size_t(axis) + 1] = stride - 1;
  Dims split = dims;
  split.insert(split.begin() + axis + 1, Dim(1));
  dims[size_t(axis)] = dims[size_t(axis)] * Dim(stride);
  const Expr wide = reshape(pad(reshape(t, split), low, high), dims);
  // The steps end up to stride - 1 places behind or any number before the end of the axis.
  Dims more(dims.size(), Dim(0));
  more[size_t(axis)] = max(size, dims[size_t(axis)]) - dims[size_t(axis)];
  return narrow(pad(wide, {}, more), axis, 0, size);
}

}  // namespace

Exprs Slice::vjp(const Vjp& c, const Attrs& a) {
  const Dims& dims = c.in(0).shape().dims();
  Expr dx = c.dy();
  Dims high = a.limit;
  for (size_t k = 0; k < dims.size(); ++k) {
    if (a.stride[k] > 1) dx = spread(dx, int(k), a.stride[k], dims[k] - a.start[k]);
    high[k] = a.stride[k] > 1 ? Dim(0) : dims[k] - a.limit[k];
  }
  return {pad(dx, a.start, high)};
}

Exprs Slice::vmap(const Vmap& c, const Attrs& a) {
  Attrs b = a;
  b.start.insert(b.start.begin(), Dim(0));
  b.limit.insert(b.limit.begin(), c.size);
  b.stride.insert(b.stride.begin(), 1);
  return {make<Slice>(c.graph, b, {c.in(0)})};
}

std::optional<Layout> Slice::view(const View& c, const Attrs& a) {
  Layout y = c.layout;
  for (size_t i = 0; i < y.strides.size(); ++i) {
    y.offset += a.start[i].value() * y.strides[i];
    y.strides[i] *= a.stride.empty() ? 1 : a.stride[i];
  }
  return y;
}

std::vector<OpSample<Slice::Attrs>> Slice::samples() {
  return {{{{1, 0}, {4, 3}, {}}, {"f32[4,3]"}},
          {{{0, 1}, {5, 6}, {2, 3}}, {"f64[5,7]"}},
          {{{1}, {9}, {4}}, {"f32[11]"}},
          {{{2}, {2}, {1}}, {"i32[4]"}},
          {{{}, {}, {}}, {"f32[]"}},
          {{{0}, {1}, {5}}, {"f16[1]"}},
          {{{0, 0}, {0, 2}, {3, 1}}, {"bool[0,2]"}},
          {{{0, 1, 0}, {2, 4, 1}, {1, 2, 1}}, {"c64[2,5,1]"}}};
}

Expr slice(Expr x, Dims start, Dims limit, std::vector<int64_t> stride) {
  return make<Slice>(*x.graph, {std::move(start), std::move(limit), std::move(stride)}, {x});
}

}  // namespace rlx::ops
