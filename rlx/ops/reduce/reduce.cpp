#include "rlx/ops/reduce/reduce.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include "rlx/ir/leaves.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/complex.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/reduce/product_others.h"
#include "rlx/ops/shape/expand.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {

Shapes Reduce::infer(Infer& c, Attrs& a) {
  const Shape& x = c.in(0);
  c.require_numeric(0);
  if (a.kind == ReduceOp::mean) c.require_float_or_complex(0);
  if (is_complex(x.dtype()) && (a.kind == ReduceOp::max || a.kind == ReduceOp::min)) {
    c.fail("x: ", x, " is complex and has no order; reduce its real part or modulus");
  }
  return {reduced_type(c, a.axes, a.keep_dim)};
}

namespace {

// For each element of x, the row-major position of the result element it goes into.
std::vector<int64_t> result_positions(const Shape& x, const std::vector<int>& axes) {
  Dims kept = x.dims();
  for (const int axis : axes) kept[size_t(axis)] = 1;
  return broadcast_positions(kept, x.dims());
}

template <class T, class F>
std::vector<T> accumulate(const std::vector<T>& x, const std::vector<int64_t>& at, size_t count, T start,
                          F f) {
  std::vector<T> y(count, start);
  for (size_t i = 0; i < x.size(); ++i) y[size_t(at[i])] = f(y[size_t(at[i])], x[i]);
  return y;
}

template <class T>
std::vector<T> reduce_values(ReduceOp kind, const std::vector<T>& x, const std::vector<int64_t>& at,
                             size_t count) {
  if (kind == ReduceOp::prod)
    return accumulate<T>(x, at, count, T(1), [](T a, T b) { return Mul::eval(a, b); });
  return accumulate<T>(x, at, count, T(0), [](T a, T b) { return Add::eval(a, b); });
}

int64_t extreme_start(DType t, bool max) {
  const double far = max ? -1e30 : 1e30;
  return saturate_to(t, far);
}

}  // namespace

Literals Reduce::reference(const Eval& c, const Attrs& a) {
  const Literal& x = c.in(0);
  const auto at = result_positions(x.shape(), a.axes);
  const auto count = size_t(c.out().elements());
  const bool extreme = a.kind == ReduceOp::max || a.kind == ReduceOp::min, max = a.kind == ReduceOp::max;
  const double per = count == 0 ? 0 : double(x.elements()) / double(count);
  if (is_complex(x.dtype())) {
    auto y = reduce_values(a.kind, x.to_complexes(), at, count);
    if (a.kind == ReduceOp::mean)
      for (auto& v : y) v /= per;
    return {Literal::complexes(c.out(), y)};
  }
  if (is_integer(x.dtype())) {
    if (!extreme) return {Literal::integers(c.out(), reduce_values(a.kind, x.to_integers(), at, count))};
    return {Literal::integers(
        c.out(), accumulate<int64_t>(
                     x.to_integers(), at, count, extreme_start(x.dtype(), max),
                     [max](int64_t p, int64_t q) { return max ? Max::eval(p, q) : Min::eval(p, q); }))};
  }
  if (extreme) {
    const double start = max ? -INFINITY : INFINITY;
    return {
        Literal::reals(c.out(), accumulate<double>(x.to_reals(), at, count, start, [max](double p, double q) {
                         return max ? Max::eval(p, q) : Min::eval(p, q);
                       }))};
  }
  auto y = reduce_values(a.kind, x.to_reals(), at, count);
  if (a.kind == ReduceOp::mean)
    for (double& v : y) v /= per;
  return {Literal::reals(c.out(), y)};
}

namespace {

// dy/dx as a tensor of x's shape: the factor with which each element enters its result.
Expr factors(Expr x, Expr y, const Reduce::Attrs& a) {
  switch (a.kind) {
    case ReduceOp::sum:
      return ones_like(x);
    case ReduceOp::mean:
      return expand(1.0 / count_like(x, a.axes), x.shape().dims());
    case ReduceOp::max:
    case ReduceOp::min: {
      const Expr hit =
          cast(equal(x, expand(keep_reduced(y, a.axes, a.keep_dim), x.shape().dims())), x.dtype());
      return hit / reduce_sum(hit, a.axes, true);
    }
    case ReduceOp::prod:
      return product_others(x, a.axes);
  }
  return {};
}

}  // namespace

Exprs Reduce::vjp(const Vjp& c, const Attrs& a) {
  const Expr x = c.in(0);
  const Expr dy = expand(keep_reduced(c.dy(), a.axes, a.keep_dim), x.shape().dims());
  if (a.kind == ReduceOp::sum) return {dy};
  if (a.kind == ReduceOp::mean) return {dy / count_like(x, a.axes)};
  const Expr f = factors(x, c.out(), a);
  return {dy * conj_of(f)};
}

Exprs Reduce::jvp(const Jvp& c, const Attrs& a) {
  if (a.kind == ReduceOp::sum || a.kind == ReduceOp::mean)
    return {reduce(c.dx(0), a.kind, a.axes, a.keep_dim)};
  return {reduce(c.dx(0) * factors(c.in(0), c.out(), a), ReduceOp::sum, a.axes, a.keep_dim)};
}

Exprs Reduce::vmap(const Vmap& c, const Attrs& a) {
  if (a.axes.empty()) return {c.in(0)};  // a scalar each
  Attrs shifted = a;
  for (int& axis : shifted.axes) ++axis;
  return {make<Reduce>(c.graph, shifted, {c.in(0)})};
}

std::vector<OpSample<Reduce::Attrs>> Reduce::samples() {
  using enum ReduceOp;
  return {{{sum, {0, 2}, true}, {"f32[3,4,5]"}}, {{mean, {1}, false}, {"f64[3,4]"}},
          {{max, {-1}, false}, {"f32[2,7]"}},    {{min, {}, false}, {"f32[2,3]"}},
          {{prod, {0}, true}, {"f32[4,2]"}},     {{sum, {1}, false}, {"f32[2,0]"}},
          {{sum, {}, false}, {"i32[3,3]"}},      {{max, {0}, false}, {"i64[5] <3"}},
          {{sum, {}, false}, {"f32[]"}},         {{mean, {0}, false}, {"f16[1]"}},
          {{sum, {0}, false}, {"c64[3,2]"}},     {{prod, {}, false}, {"u8[3] <4"}},
          {{prod, {0, 1}, false}, {"f64[3,2]"}}, {{mean, {0}, true}, {"c64[4]"}},
          {{max, {}, false}, {"f64[1]"}}};
}

Expr reduce(Expr x, ReduceOp kind, std::vector<int> axes, bool keep_dim) {
  return make<Reduce>(*x.graph, {kind, std::move(axes), keep_dim}, {x});
}

Shape reduced_type(const Infer& c, std::vector<int>& axes, bool keep_dim) {
  const Shape& x = c.in(0);
  // No axes means all of them: in canonical form they are listed, except for a scalar.
  if (axes.empty()) {
    for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  }
  axes = c.axes(axes, 0);
  Dims dims;
  for (int i = 0; i < x.rank(); ++i) {
    const bool reduced = std::binary_search(axes.begin(), axes.end(), i);
    if (!reduced) {
      dims.push_back(x.dim(i));
    } else if (keep_dim) {
      dims.push_back(1);
    }
  }
  return x.with_dims(std::move(dims));
}

ReducedBatch reduced_batch(const Vmap& c, std::vector<int> axes) {
  if (axes.empty()) return {unsqueeze(c.in(0), 1), {1}};
  for (int& axis : axes) ++axis;
  return {c.in(0), std::move(axes)};
}

Expr keep_reduced(Expr y, const std::vector<int>& axes, bool kept) {
  if (kept) return y;
  Dims dims = y.shape().dims();
  for (const int axis : axes) dims.insert(dims.begin() + axis, Dim(1));  // ascending, so each lands in place
  return reshape(y, dims);
}

Expr count_like(Expr x, const std::vector<int>& axes) {
  Dim count = 1;
  for (const int axis : axes) count = count * x.dim(axis);
  if (count.is_static()) return scalar_like(x, double(count.value()));
  // A symbolic size is a sum of ones that the binding makes concrete.
  const Expr ones = full(*x.graph, Shape(DType::f64, {count}), 1);
  return cast(reduce_sum(ones, {0}), x.dtype());
}

}  // namespace rlx::ops
