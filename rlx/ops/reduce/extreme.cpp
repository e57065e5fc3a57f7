#include "rlx/ops/reduce/extreme.h"

#include "rlx/ops/reduce/order.h"
#include "rlx/ops/require.h"

namespace rlx::ops {
namespace {

Shapes infer_arg(Infer& c, ArgExtremeAttrs& a) {
  const Shape& x = c.in(0);
  require_order(c);
  a.axis = c.axis(a.axis, 0);
  if (!is_integer(a.dtype) && a.dtype != DType::f32 && a.dtype != DType::f64)
    c.fail("dtype ", a.dtype, " does not hold positions; use an integer type, f32 or f64");
  require_positions(c, a.dtype, x.dim(a.axis));
  if (x.dim(a.axis) == Dim(0)) c.fail("axis ", a.axis, " of x: ", x, " is empty and has no position");
  if (a.keep_dim) return {Shape(a.dtype, x.with_dim(a.axis, 1).dims())};
  Dims dims = x.dims();
  dims.erase(dims.begin() + a.axis);
  return {Shape(a.dtype, std::move(dims))};
}

// Whether v takes over from the best so far; NaN takes over from all but NaN.
template <class T>
bool beats(T v, T best, bool largest) {
  if (is_nan_value(v) || is_nan_value(best)) return is_nan_value(v) && !is_nan_value(best);
  return largest ? v > best : v < best;
}

Literals reference_arg(const Eval& c, const ArgExtremeAttrs& a, bool largest) {
  const auto [outer, length, inner] = axis_view(c.in(0).shape(), a.axis);
  if (length == 0) throw invalid(largest ? "argmax" : "argmin", ": axis ", a.axis, " of x is empty");
  std::vector<int64_t> y(size_t(outer * inner));
  with_values(c.in(0), [&](const auto& x) {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        const auto at = [&](int64_t k) { return x[size_t((o * length + k) * inner + i)]; };
        int64_t best = 0;
        for (int64_t k = 1; k < length; ++k) {
          if (beats(at(k), at(best), largest)) best = k;
        }
        y[size_t(o * inner + i)] = best;
      }
    }
  });
  if (is_integer(a.dtype)) return {Literal::integers(c.out(), y)};
  return {Literal::reals(c.out(), std::vector<double>(y.begin(), y.end()))};
}

std::vector<OpSample<ArgExtremeAttrs>> arg_samples() {
  return {{{1}, {"f32[4,9]"}},
          {{-1, true}, {"f64[2,3]"}},
          {{0, false, DType::i64}, {"i32[5,2] <3"}},
          {{0, true, DType::f32}, {"f16[3]"}},
          {{1}, {"f32[0,2]"}},
          {{0}, {"f32[1]"}},
          {{0}, {"bool[3]"}},
          {{-2, false, DType::u8}, {"u8[2,3,2] bytes"}}};
}

Shapes infer_running(Infer& c, RunningExtremeAttrs& a) {
  require_order(c);
  a.axis = c.axis(a.axis, 0);
  require_positions(c, DType::i32, c.in(0).dim(a.axis));
  return {c.in(0), c.in(0).with_dtype(DType::i32)};
}

template <class T>
Literal running_values(const Shape& shape, std::vector<T> x, std::vector<int64_t>& from,
                       const RunningExtremeAttrs& a, bool largest) {
  const auto [outer, length, inner] = axis_view(shape, a.axis);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      int64_t best = a.reverse ? length - 1 : 0;
      for (int64_t step = 0; step < length; ++step) {
        const int64_t k = a.reverse ? length - 1 - step : step;
        const auto at = [&](int64_t p) { return size_t((o * length + p) * inner + i); };
        if (beats(x[at(k)], x[at(best)], largest)) best = k;
        from[at(k)] = best;
        x[at(k)] = x[at(best)];
      }
    }
  }
  if constexpr (std::is_same_v<T, double>)
    return Literal::reals(shape, x);
  else
    return Literal::integers(shape, x);
}

Literals reference_running(const Eval& c, const RunningExtremeAttrs& a, bool largest) {
  std::vector<int64_t> from(size_t(c.out().elements()));
  const Literal values =
      with_values(c.in(0), [&](auto x) { return running_values(c.out(), std::move(x), from, a, largest); });
  return {values, Literal::integers(c.out(1), from)};
}

std::vector<OpSample<RunningExtremeAttrs>> running_samples() {
  return {{{0}, {"f32[4,3] distinct"}},
          {{-1, true}, {"f64[2,5] distinct"}},
          {{1}, {"i32[2,4,2] <3"}},
          {{0}, {"f32[0,3]"}},
          {{0}, {"f16[1]"}},
          {{0, true}, {"bool[5]"}}};
}

}  // namespace

Shapes Argmax::infer(Infer& c, Attrs& a) { return infer_arg(c, a); }
Literals Argmax::reference(const Eval& c, const Attrs& a) { return reference_arg(c, a, true); }
Exprs Argmax::vmap(const Vmap& c, const Attrs& a) {
  return {argmax(c.in(0), a.axis + 1, a.keep_dim, a.dtype)};
}
std::vector<OpSample<ArgExtremeAttrs>> Argmax::samples() { return arg_samples(); }

Shapes Argmin::infer(Infer& c, Attrs& a) { return infer_arg(c, a); }
Literals Argmin::reference(const Eval& c, const Attrs& a) { return reference_arg(c, a, false); }
Exprs Argmin::vmap(const Vmap& c, const Attrs& a) {
  return {argmin(c.in(0), a.axis + 1, a.keep_dim, a.dtype)};
}
std::vector<OpSample<ArgExtremeAttrs>> Argmin::samples() { return arg_samples(); }

Shapes Cummax::infer(Infer& c, Attrs& a) { return infer_running(c, a); }
Literals Cummax::reference(const Eval& c, const Attrs& a) { return reference_running(c, a, true); }
Exprs Cummax::vjp(const Vjp& c, const Attrs& a) { return routed_vjp(c, a.axis); }
Exprs Cummax::jvp(const Jvp& c, const Attrs& a) { return routed_jvp(c, a.axis); }
Exprs Cummax::vmap(const Vmap& c, const Attrs& a) { return cummax(c.in(0), a.axis + 1, a.reverse); }
std::vector<OpSample<RunningExtremeAttrs>> Cummax::samples() { return running_samples(); }

Shapes Cummin::infer(Infer& c, Attrs& a) { return infer_running(c, a); }
Literals Cummin::reference(const Eval& c, const Attrs& a) { return reference_running(c, a, false); }
Exprs Cummin::vjp(const Vjp& c, const Attrs& a) { return routed_vjp(c, a.axis); }
Exprs Cummin::jvp(const Jvp& c, const Attrs& a) { return routed_jvp(c, a.axis); }
Exprs Cummin::vmap(const Vmap& c, const Attrs& a) { return cummin(c.in(0), a.axis + 1, a.reverse); }
std::vector<OpSample<RunningExtremeAttrs>> Cummin::samples() { return running_samples(); }

Expr argmax(Expr x, int axis, bool keep_dim, DType dtype) {
  return make<Argmax>(*x.graph, {axis, keep_dim, dtype}, {x});
}
Expr argmin(Expr x, int axis, bool keep_dim, DType dtype) {
  return make<Argmin>(*x.graph, {axis, keep_dim, dtype}, {x});
}
Exprs cummax(Expr x, int axis, bool reverse) { return make_all<Cummax>(*x.graph, {axis, reverse}, {x}); }
Exprs cummin(Expr x, int axis, bool reverse) { return make_all<Cummin>(*x.graph, {axis, reverse}, {x}); }

}  // namespace rlx::ops
