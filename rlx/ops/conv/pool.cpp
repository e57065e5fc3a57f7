#include "rlx/ops/conv/pool.h"

#include <cmath>

#include "rlx/ir/leaves.h"
#include "rlx/ops/conv/extent.h"
#include "rlx/ops/conv/windows.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/complex.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/reduce/cumulative.h"
#include "rlx/ops/reduce/product_others.h"
#include "rlx/ops/shape/expand.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {

Shapes Pool::infer(Infer& c, Attrs& a) {
  c.require_numeric(0);
  if (a.kind == ReduceOp::mean) c.require_float_or_complex(0);
  const bool extreme = a.kind == ReduceOp::max || a.kind == ReduceOp::min;
  if (extreme && is_complex(c.in(0).dtype())) {
    c.fail("x: ", c.in(0), " is complex and has no order; pool its real part or modulus");
  }
  const int axes = int(a.kernel_size.size());
  if (axes < 1 || axes > 3) {
    c.fail("kernel_size ", a.kernel_size, " has ", axes, " entries; it must have 1 to 3, one for each axis");
  }
  c.require_min_rank(0, axes);
  complete_list(c, a.kernel_size, "kernel_size", axes, 1, 1);
  if (a.stride.empty()) a.stride = a.kernel_size;
  complete_list(c, a.stride, "stride", axes, 1, 1);
  complete_list(c, a.padding, "padding", axes, 0, 0);
  Shape y = c.in(0);
  for (int i = 0; i < axes; ++i) {
    const auto k = size_t(i);
    if (a.padding[k] >= a.kernel_size[k]) {
      c.fail("padding ", a.padding, " must be smaller than kernel_size ", a.kernel_size,
             ", or windows lie outside x");
    }
    const int axis = y.rank() - axes + i;
    y = y.with_dim(
        axis, window_positions(c, y.dim(axis), a.padding[k], a.padding[k], a.kernel_size[k], a.stride[k]));
  }
  if (a.kind != ReduceOp::mean) a.count_include_pad = false;
  return {y};
}

namespace {

bool is_padded(const Pool::Attrs& a) {
  for (const int64_t p : a.padding) {
    if (p != 0) return true;
  }
  return false;
}

// The windows of x with each flattened into the last axis: [.., o, K].
Expr flat_windows(Expr x, const Pool::Attrs& a) {
  const Expr w = windows(x, a.kernel_size, a.stride, a.padding);
  Dims dims = w.shape().dims();
  int64_t size = 1;
  for (const int64_t k : a.kernel_size) size *= k, dims.pop_back();
  dims.push_back(size);
  return reshape(w, dims);
}

// The transpose of flat_windows.
Expr sum_windows(Expr flat, Expr x, const Pool::Attrs& a) {
  Dims dims = flat.shape().dims();
  dims.pop_back();
  for (const int64_t k : a.kernel_size) dims.push_back(k);
  const Dims& to = x.shape().dims();
  return windows_sum(reshape(flat, dims), Dims(to.end() - ptrdiff_t(a.stride.size()), to.end()), a.stride,
                     a.padding);
}

// 1 where an element of a window lies inside x, [o, K]; the leading axes of x play no part.
Expr inside(Expr x, const Pool::Attrs& a) {
  const Dims& dims = x.shape().dims();
  const Shape plane(x.dtype(), Dims(dims.end() - ptrdiff_t(a.stride.size()), dims.end()));
  return flat_windows(full(*x.graph, plane, 1), a);
}

// The value padding has to have so that it takes no part; numbers beyond an integer type saturate.
double neutral(ReduceOp kind, DType t) {
  const double far = is_float(t) ? INFINITY : 1e30;
  return kind == ReduceOp::max ? -far : kind == ReduceOp::min ? far : kind == ReduceOp::prod ? 1 : 0;
}

Expr filled_windows(Expr x, const Pool::Attrs& a) {
  const Expr w = flat_windows(x, a);
  const double fill = neutral(a.kind, x.dtype());
  if (fill == 0 || !is_padded(a)) return w;
  const Expr in = cast(inside(x, a), DType::bool_);
  return where(in, w, scalar_like(x, fill));
}

// How many elements a mean is taken over: [o], or a scalar.
Expr counts(Expr x, const Pool::Attrs& a) {
  if (!is_padded(a) || a.count_include_pad) {
    int64_t size = 1;
    for (const int64_t k : a.kernel_size) size *= k;
    return scalar_like(x, double(size));
  }
  return reduce_sum(inside(x, a), {-1});
}

// With what factor each element of each window enters its result, [.., o, K].
Expr factors(Expr x, Expr y, const Pool::Attrs& a) {
  const Expr w = filled_windows(x, a);
  if (a.kind == ReduceOp::prod) return product_others(w, {w.rank() - 1});
  const Expr one = scalar_like(x, 1), zero = scalar_like(x, 0);
  const Expr hit = where(equal(w, unsqueeze(y, -1)), one, zero);
  const Expr nth = cumsum(hit, -1) * hit;  // 1 at the first hit, 2 at the second, 0 between them
  return where(equal(nth, one), one, zero);
}

bool is_linear(ReduceOp kind) { return kind == ReduceOp::sum || kind == ReduceOp::mean; }

}  // namespace

Exprs Pool::decompose(const Lower& c, const Attrs& a) {
  const Expr x = c.in(0), w = filled_windows(x, a);
  if (a.kind == ReduceOp::mean) return {reduce_sum(w, {-1}) / counts(x, a)};
  return {reduce(w, a.kind, {-1}, false)};
}

Exprs Pool::vjp(const Vjp& c, const Attrs& a) {
  const Expr x = c.in(0);
  if (a.kind == ReduceOp::max && a.kernel_size.size() == 2 && is_float(x.dtype()))
    return {maxpool2d_backward(x, c.dy(), a.kernel_size, a.stride, a.padding)};
  const Expr dy = a.kind == ReduceOp::mean ? c.dy() / counts(x, a) : c.dy();
  Expr spread = unsqueeze(dy, -1);
  if (is_linear(a.kind)) {
    Dims dims = spread.shape().dims();
    dims.back() = 1;
    for (const int64_t k : a.kernel_size) dims.back() = dims.back() * Dim(k);
    spread = expand(spread, dims);
  } else {
    spread = spread * conj_of(factors(x, c.out(), a));
  }
  return {sum_windows(spread, x, a)};
}

Exprs Pool::jvp(const Jvp& c, const Attrs& a) {
  if (is_linear(a.kind)) return {make<Pool>(c.graph, a, {c.dx(0)})};
  return {reduce_sum(flat_windows(c.dx(0), a) * factors(c.in(0), c.out(), a), {-1})};
}

Exprs Pool::vmap(const Vmap& c, const Attrs& a) { return {make<Pool>(c.graph, a, {c.in(0)})}; }

std::vector<OpSample<Pool::Attrs>> Pool::samples() {
  using enum ReduceOp;
  return {{{max, {3, 2}, {2, 2}, {1, 0}}, {"f32[1,2,5,4] distinct"}},
          {{mean, {2, 2}, {2, 1}}, {"f64[1,2,4,3]"}},
          {{mean, {3}, {2}, {1}}, {"f32[2,5]"}},
          {{mean, {3}, {2}, {1}, true}, {"f32[2,5]"}},
          {{min, {2}, {1}, {1}}, {"f32[1,2,4] distinct"}},
          {{prod, {2, 3}, {1, 2}, {1, 1}}, {"f64[1,3,4]"}},
          {{sum, {1, 2, 2}, {1}, {0, 1, 0}}, {"f32[1,1,2,3,2]"}},
          {{max, {2}}, {"f32[0,4]"}},
          {{max, {1}}, {"f16[1]"}},
          {{max, {2}, {1}, {1}}, {"i32[4]"}},
          {{sum, {2}}, {"c64[3,4]"}}};
}

namespace {

Pool::Attrs max_attrs(const MaxPool2dBackward::Attrs& a) {
  return {ReduceOp::max, a.kernel_size, a.stride, a.padding};
}

}  // namespace

Shapes MaxPool2dBackward::infer(Infer& c, Attrs& a) {
  c.same_dtype({0, 1});
  c.require_float(0);
  c.require_min_rank(0, 2);
  c.require_rank(1, c.in(0).rank());
  if (a.kernel_size.size() == 1) a.kernel_size.push_back(a.kernel_size[0]);
  if (a.kernel_size.size() != 2) c.fail("kernel_size ", a.kernel_size, " must have 2 entries");
  Pool::Attrs pooled = max_attrs(a);
  const Shape y = Pool::infer(c, pooled)[0];
  a = {pooled.kernel_size, pooled.stride, pooled.padding};
  for (int i = 0; i < y.rank(); ++i) c.same(y.dim(i), c.in(1).dim(i), "sizes of the pooled x and of dy");
  return {c.in(0)};
}

Exprs MaxPool2dBackward::decompose(const Lower& c, const Attrs& attrs) {
  const Pool::Attrs a = max_attrs(attrs);
  const Expr x = c.in(0);
  const Expr picked = factors(x, make<Pool>(c.graph, a, {x}), a);
  return {sum_windows(unsqueeze(c.in(1), -1) * picked, x, a)};
}

std::vector<OpSample<MaxPool2dBackward::Attrs>> MaxPool2dBackward::samples() {
  return {{{{2, 2}}, {"f32[1,2,4,4] distinct", "f32[1,2,2,2]"}},
          {{{3, 2}, {2, 1}, {1, 1}}, {"f64[2,5,3] distinct", "f64[2,3,4]"}},
          {{{2}, {1}}, {"f32[3,3] distinct", "f32[2,2]"}},
          {{{1}}, {"f32[0,2,2]", "f32[0,2,2]"}},
          {{{1}}, {"bf16[1,1,1,1]", "bf16[1,1,1,1]"}}};
}

Expr pool(Expr x, ReduceOp kind, std::vector<int64_t> kernel_size, std::vector<int64_t> stride,
          std::vector<int64_t> padding, bool count_include_pad) {
  return make<Pool>(*x.graph,
                    {kind, std::move(kernel_size), std::move(stride), std::move(padding), count_include_pad},
                    {x});
}

Expr maxpool2d_backward(Expr x, Expr dy, std::vector<int64_t> kernel_size, std::vector<int64_t> stride,
                        std::vector<int64_t> padding) {
  return make<MaxPool2dBackward>(*x.graph, {std::move(kernel_size), std::move(stride), std::move(padding)},
                                 {x, dy});
}

}  // namespace rlx::ops
