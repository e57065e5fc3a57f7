#include "rlx/ops/reduce/cumulative.h"

#include <complex>
#include <utility>

#include "rlx/ir/leaves.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/complex.h"
#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/narrow.h"

namespace rlx::ops {
namespace {

Shapes infer_cumulative(Infer& c, CumulativeAttrs& a) {
  c.require_numeric(0);
  a.axis = c.axis(a.axis, 0);
  return {c.in(0)};
}

template <class T, class F>
std::vector<T> run(const std::vector<T>& x, const Shape& s, const CumulativeAttrs& a, T start, F combine) {
  std::vector<T> y(x.size());
  const auto [outer, length, inner] = axis_view(s, a.axis);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      T total = start;
      for (int64_t step = 0; step < length; ++step) {
        const int64_t k = a.reverse ? length - 1 - step : step;
        const auto at = size_t((o * length + k) * inner + i);
        const T before = total;
        total = combine(total, x[at]);
        y[at] = a.exclusive ? before : total;
      }
    }
  }
  return y;
}

template <class Op>
Literals reference_cumulative(const Eval& c, const CumulativeAttrs& a, double start) {
  const Literal& x = c.in(0);
  const auto combine = [](auto p, auto q) { return Op::eval(p, q); };
  if (is_complex(x.dtype()))
    return {Literal::complexes(c.out(),
                               run(x.to_complexes(), x.shape(), a, std::complex<double>(start), combine))};
  if (is_integer(x.dtype()))
    return {Literal::integers(c.out(), run(x.to_integers(), x.shape(), a, int64_t(start), combine))};
  return {Literal::reals(c.out(), run(x.to_reals(), x.shape(), a, start, combine))};
}

std::vector<OpSample<CumulativeAttrs>> cumulative_samples() {
  return {{{0}, {"f32[4,6]"}},
          {{-1, true}, {"f64[3,5]"}},
          {{1, false, true}, {"f32[2,3,2]"}},
          {{0, true, true}, {"f32[7]"}},
          {{-1}, {"i32[5]"}},
          {{0}, {"f32[0,3]"}},
          {{0}, {"f32[1]"}},
          {{0}, {"c64[4]"}},
          {{-2, true}, {"f16[3,2]"}}};
}

// x moved by one place against the direction of running, so that place i holds x[i+1]; `fill` enters at the
// end. The edge is put on before the other end is cut off, so that an axis of length 0 stays one.
Expr shift_back(Expr x, int axis, bool reverse, double fill) {
  Dims dims = x.shape().dims();
  const Dim n = std::exchange(dims[size_t(axis)], Dim(1));
  const Expr edge = full(*x.graph, Shape(x.dtype(), dims), fill);
  if (reverse) return narrow(concat({edge, x}, axis), axis, 0, n);
  return narrow(concat({x, edge}, axis), axis, 1, n);
}

}  // namespace

Shapes Cumsum::infer(Infer& c, Attrs& a) { return infer_cumulative(c, a); }
Literals Cumsum::reference(const Eval& c, const Attrs& a) { return reference_cumulative<Add>(c, a, 0); }
// Each x[j] feeds every later y[i], so its gradient is the sum taken from the other end.
Exprs Cumsum::vjp(const Vjp& c, const Attrs& a) { return {cumsum(c.dy(), a.axis, a.exclusive, !a.reverse)}; }
Exprs Cumsum::vmap(const Vmap& c, const Attrs& a) {
  return {cumsum(c.in(0), a.axis + 1, a.exclusive, a.reverse)};
}
std::vector<OpSample<CumulativeAttrs>> Cumsum::samples() { return cumulative_samples(); }

Shapes Cumprod::infer(Infer& c, Attrs& a) { return infer_cumulative(c, a); }
Literals Cumprod::reference(const Eval& c, const Attrs& a) { return reference_cumulative<Mul>(c, a, 1); }
Exprs Cumprod::vmap(const Vmap& c, const Attrs& a) {
  return {cumprod(c.in(0), a.axis + 1, a.exclusive, a.reverse)};
}
std::vector<OpSample<CumulativeAttrs>> Cumprod::samples() { return cumulative_samples(); }

// dx[k] = E[k] R[k], E the exclusive product before k and R[k] = sum over i >= k of dy[i] prod(x[j], k < j <=
// i), which obeys R[k] = dy[k] + x[k+1] R[k+1]. An exclusive product is the inclusive one moved by a place.
Exprs Cumprod::vjp(const Vjp& c, const Attrs& a) {
  const Expr x = conj_of(c.in(0));
  const Expr dy = a.exclusive ? shift_back(c.dy(), a.axis, a.reverse, 0) : c.dy();
  const Expr r = linear_recurrence(shift_back(x, a.axis, a.reverse, 0), dy, a.axis, !a.reverse);
  return {cumprod(x, a.axis, true, a.reverse) * r};
}

Shapes CumsumBackward::infer(Infer& c, Attrs& a) {
  c.require_numeric(0);
  a.axis = c.axis(a.axis, 0);
  return {c.in(0)};
}
Exprs CumsumBackward::decompose(const Lower& c, const Attrs& a) {
  return {cumsum(c.in(0), a.axis, a.exclusive, true)};
}
std::vector<OpSample<CumsumBackward::Attrs>> CumsumBackward::samples() {
  return {{{0}, {"f32[4,6]"}}, {{-1, true}, {"f64[3,5]"}}, {{1}, {"f16[2,3,2]"}},
          {{0}, {"f32[0,3]"}}, {{0, true}, {"f32[1]"}},    {{0}, {"c64[4]"}}};
}

Shapes LinearRecurrence::infer(Infer& c, Attrs& a) {
  c.same_dtype({0, 1});
  c.require_float_or_complex(0);
  a.axis = c.axis(a.axis, 0);
  if (c.in(0).rank() != c.in(1).rank()) c.fail("shapes differ, a: ", c.in(0), " and b: ", c.in(1));
  for (int i = 0; i < c.in(0).rank(); ++i) c.same(c.in(0).dim(i), c.in(1).dim(i), "sizes of a and b");
  return {c.in(0)};
}

Literals LinearRecurrence::reference(const Eval& c, const Attrs& attrs) {
  const auto a = c.in(0).to_complexes(), b = c.in(1).to_complexes();
  std::vector<std::complex<double>> y(a.size());
  const auto [outer, length, inner] = axis_view(c.out(), attrs.axis);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      std::complex<double> h = 0;
      for (int64_t step = 0; step < length; ++step) {
        const int64_t k = attrs.reverse ? length - 1 - step : step;
        const auto at = size_t((o * length + k) * inner + i);
        h = step == 0 ? b[at] : a[at] * h + b[at];  // nothing times a[0], so an infinite a[0] does no harm
        y[at] = h;
      }
    }
  }
  if (is_complex(c.out().dtype())) return {Literal::complexes(c.out(), y)};
  std::vector<double> real(y.size());
  for (size_t i = 0; i < y.size(); ++i) real[i] = y[i].real();
  return {Literal::reals(c.out(), real)};
}

Exprs LinearRecurrence::vjp(const Vjp& c, const Attrs& a) {
  const Expr g =
      linear_recurrence(shift_back(conj_of(c.in(0)), a.axis, a.reverse, 0), c.dy(), a.axis, !a.reverse);
  Exprs out{Expr{}, g};
  if (c.wants(0)) out[0] = g * shift_back(conj_of(c.out()), a.axis, !a.reverse, 0);
  return out;
}

Exprs LinearRecurrence::vmap(const Vmap& c, const Attrs& a) {
  return {linear_recurrence(lifted(c, 0), lifted(c, 1), a.axis + 1, a.reverse)};
}

std::vector<OpSample<LinearRecurrence::Attrs>> LinearRecurrence::samples() {
  return {{{0}, {"f32[5]", "f32[5]"}},           {{-1}, {"f64[2,4]", "f64[2,4]"}},
          {{0, true}, {"f32[3,2]", "f32[3,2]"}}, {{1}, {"f32[2,0]", "f32[2,0]"}},
          {{0}, {"f16[1]", "f16[1]"}},           {{0}, {"c64[4]", "c64[4]"}}};
}

Expr cumsum(Expr x, int axis, bool exclusive, bool reverse) {
  return make<Cumsum>(*x.graph, {axis, exclusive, reverse}, {x});
}
Expr cumprod(Expr x, int axis, bool exclusive, bool reverse) {
  return make<Cumprod>(*x.graph, {axis, exclusive, reverse}, {x});
}
Expr cumsum_backward(Expr dy, int axis, bool exclusive) {
  return make<CumsumBackward>(*dy.graph, {axis, exclusive}, {dy});
}
Expr linear_recurrence(Expr a, Expr b, int axis, bool reverse) {
  return make<LinearRecurrence>(*a.graph, {axis, reverse}, {a, b});
}

}  // namespace rlx::ops
