#include "rlx/ops/conv/windows.h"

#include <cstring>

#include "rlx/ops/conv/extent.h"
#include "rlx/ops/numeric.h"

namespace rlx::ops {
namespace {

// f(position in the windows, position in x) for every element of the windows that lies inside x; both
// positions are row-major over the whole tensors.
template <class F>
void for_each_tap(const Shape& windows, const Shape& x, const std::vector<int64_t>& stride,
                  const std::vector<int64_t>& padding, F f) {
  const size_t n = stride.size(), lead = size_t(x.rank()) - n;
  const auto x_strides = row_major_strides(x.dims());
  std::vector<int64_t> index(size_t(windows.rank()), 0);
  const int64_t total = windows.elements();
  for (int64_t at = 0; at < total; ++at) {
    int64_t position = 0;
    bool inside = true;
    for (size_t i = 0; i < lead; ++i) position += index[i] * x_strides[i];
    for (size_t i = 0; i < n && inside; ++i) {
      const int64_t p = index[lead + i] * stride[i] + index[lead + n + i] - padding[i];
      inside = p >= 0 && p < x.dims()[lead + i].value();
      position += p * x_strides[lead + i];
    }
    if (inside) f(at, position);
    for (size_t i = index.size(); i-- > 0;) {
      if (++index[i] < windows.dims()[i].value()) break;
      index[i] = 0;
    }
  }
}

void complete_steps(const Infer& c, std::vector<int64_t>& stride, std::vector<int64_t>& padding, int axes) {
  complete_list(c, stride, "stride", axes, 1, 1);
  complete_list(c, padding, "padding", axes, 0, 0);
}

}  // namespace

Shapes Windows::infer(Infer& c, Attrs& a) {
  const int axes = int(a.kernel_size.size());
  c.require_min_rank(0, std::max(axes, 1));
  if (axes == 0) c.fail("kernel_size is empty; it must have an entry for each axis to slide along");
  complete_list(c, a.kernel_size, "kernel_size", axes, 1, 1);
  complete_steps(c, a.stride, a.padding, axes);
  const Shape& x = c.in(0);
  const int lead = x.rank() - axes;
  Dims dims(x.dims().begin(), x.dims().begin() + lead);
  for (int i = 0; i < axes; ++i) {
    const auto k = size_t(i);
    dims.push_back(
        window_positions(c, x.dim(lead + i), a.padding[k], a.padding[k], a.kernel_size[k], a.stride[k]));
  }
  for (const int64_t k : a.kernel_size) dims.push_back(k);
  return {x.with_dims(std::move(dims))};
}

Literals Windows::reference(const Eval& c, const Attrs& a) {
  const Literal& x = c.in(0);
  Literal y = Literal::zeros(c.out());
  const size_t size = dtype_size(x.dtype());
  std::byte* to = y.mutable_bytes().data();
  for_each_tap(c.out(), x.shape(), a.stride, a.padding, [&](int64_t at, int64_t from) {
    std::memcpy(to + size_t(at) * size, x.bytes().data() + size_t(from) * size, size);
  });
  return {y};
}

Exprs Windows::vjp(const Vjp& c, const Attrs& a) {
  const Dims& x = c.in(0).shape().dims();
  return {windows_sum(c.dy(), Dims(x.end() - ptrdiff_t(a.stride.size()), x.end()), a.stride, a.padding)};
}

Exprs Windows::vmap(const Vmap& c, const Attrs& a) { return {make<Windows>(c.graph, a, {c.in(0)})}; }

std::vector<OpSample<Windows::Attrs>> Windows::samples() {
  return {{{{3}}, {"f32[2,5]"}},         {{{2, 3}, {2, 1}, {1, 0}}, {"f64[2,4,3]"}},
          {{{2}, {3}, {1}}, {"f32[7]"}}, {{{1, 2, 1}, {1}, {0, 1, 0}}, {"f32[1,2,2,1]"}},
          {{{2}}, {"f32[0,3]"}},         {{{1}}, {"f16[1]"}},
          {{{2}}, {"i32[4]"}},           {{{2}, {1}, {1}}, {"c64[2,2]"}}};
}

Shapes WindowsSum::infer(Infer& c, Attrs& a) {
  const int axes = int(a.size.size());
  if (axes == 0) c.fail("size is empty; it must have an entry for each axis the windows slide along");
  c.require_numeric(0);
  c.require_min_rank(0, 2 * axes);
  complete_steps(c, a.stride, a.padding, axes);
  const Shape& x = c.in(0);
  const int lead = x.rank() - 2 * axes;
  Dims dims(x.dims().begin(), x.dims().begin() + lead);
  for (int i = 0; i < axes; ++i) {
    const auto k = size_t(i);
    if (!x.dim(lead + axes + i).is_static()) c.fail("x: ", x, " has a window of symbolic size");
    const Dim positions = window_positions(c, a.size[k], a.padding[k], a.padding[k],
                                           x.dim(lead + axes + i).value(), a.stride[k]);
    c.same(x.dim(lead + i), positions, "numbers of windows");
    dims.push_back(a.size[k]);
  }
  return {x.with_dims(std::move(dims))};
}

Literals WindowsSum::reference(const Eval& c, const Attrs& a) {
  return {by_accumulator(c.out(), [&]<class T>() {
    const auto x = values_as<T>(c.in(0));
    std::vector<T> y(size_t(c.out().elements()), T(0));
    for_each_tap(c.in(0).shape(), c.out(), a.stride, a.padding,
                 [&](int64_t from, int64_t at) { y[size_t(at)] += x[size_t(from)]; });
    return y;
  })};
}

Exprs WindowsSum::vjp(const Vjp& c, const Attrs& a) {
  const Dims& x = c.in(0).shape().dims();
  std::vector<int64_t> kernel;
  for (auto d = x.end() - ptrdiff_t(a.size.size()); d != x.end(); ++d) kernel.push_back(d->value());
  return {windows(c.dy(), kernel, a.stride, a.padding)};
}

Exprs WindowsSum::vmap(const Vmap& c, const Attrs& a) { return {make<WindowsSum>(c.graph, a, {c.in(0)})}; }

std::vector<OpSample<WindowsSum::Attrs>> WindowsSum::samples() {
  return {{{{5}}, {"f32[2,3,3]"}},
          {{{4, 3}, {2, 1}, {1, 0}}, {"f64[2,3,1,2,3]"}},
          {{{7}, {3}, {1}}, {"f32[3,2]"}},
          {{{3}}, {"f32[0,2,2]"}},
          {{{1}}, {"f16[1,1]"}},
          {{{4}}, {"i32[3,2]"}},
          {{{2}, {1}, {1}}, {"c64[2,3,2]"}}};
}

Expr windows(Expr x, std::vector<int64_t> kernel_size, std::vector<int64_t> stride,
             std::vector<int64_t> padding) {
  return make<Windows>(*x.graph, {std::move(kernel_size), std::move(stride), std::move(padding)}, {x});
}

Expr windows_sum(Expr x, Dims size, std::vector<int64_t> stride, std::vector<int64_t> padding) {
  return make<WindowsSum>(*x.graph, {std::move(size), std::move(stride), std::move(padding)}, {x});
}

}  // namespace rlx::ops
