// Plan: one pass over the data, one vector at a time; the polynomials keep the arithmetic units busy enough
// that unrolling brought nothing. Bound: memory, at one read and one write per element, for all but pow. The
// last partial vector goes through a masked load and store, so every element sees the same arithmetic.
#include "rlx/backend/cpu/kernels/unary.h"

#include "rlx/backend/cpu/kernels/isa/indices.h"
#include "rlx/backend/cpu/simd/unary_math.h"

namespace rlx::cpu::RLX_ISA {
namespace {

template <class Source, class F>
RLX_INLINE void map(float* y, int64_t n, bool streaming, Source source, F f) {
  int64_t i = 0;
  if (streaming) {
    for (; i + kLanes <= n; i += kLanes) stream(y + i, f(source(i, kLanes)));
    stream_fence();
  } else {
    for (; i + kLanes <= n; i += kLanes) store(y + i, f(source(i, kLanes)));
  }
  if (i < n) store_n(y + i, f(source(i, int(n - i))), int(n - i));
}

RLX_INLINE F32 fetch(const float* p, int n) { return n == kLanes ? load(p) : load_n(p, n); }

template <Unary op>
void run_f32(const float* x, float* y, int64_t n, bool streaming) {
  map(
      y, n, streaming, [=](int64_t i, int lanes) { return fetch(x + i, lanes); },
      [](F32 v) { return apply<op>(v); });
}

template <Unary op>
void run_affine(const float* x, const float* w, const float* b, float* y, int64_t n, bool streaming) {
  map(
      y, n, streaming,
      [=](int64_t i, int lanes) {
        return fma(fetch(x + i, lanes), fetch(w + i, lanes), fetch(b + i, lanes));
      },
      [](F32 v) { return apply<op>(v); });
}

template <Unary op>
double scalar(double x) {
  if constexpr (op == Unary::identity) return x;
  if constexpr (op == Unary::neg) return -x;
  if constexpr (op == Unary::abs) return x < 0 ? -x : x + 0.0;
  if constexpr (op == Unary::square) return x * x;
  if constexpr (op == Unary::sqrt) return __builtin_sqrt(x);
  if constexpr (op == Unary::rsqrt) return 1.0 / __builtin_sqrt(x);
  if constexpr (op == Unary::reciprocal) return 1.0 / x;
  if constexpr (op == Unary::exp) return ::exp(x);
  if constexpr (op == Unary::expm1) return ::expm1(x);
  if constexpr (op == Unary::log) return ::log(x);
  if constexpr (op == Unary::log1p) return ::log1p(x);
  if constexpr (op == Unary::sin) return ::sin(x);
  if constexpr (op == Unary::cos) return ::cos(x);
  if constexpr (op == Unary::tanh) return ::tanh(x);
  if constexpr (op == Unary::sigmoid) return 1.0 / (1.0 + ::exp(-x));
  if constexpr (op == Unary::erf) return ::erf(x);
  if constexpr (op == Unary::relu) return x > 0 ? x : (x == x ? 0.0 : x);
  if constexpr (op == Unary::silu) return x / (1.0 + ::exp(-x));
  if constexpr (op == Unary::gelu) return 0.5 * x * ::erfc(x * -0.7071067811865476);
  if constexpr (op == Unary::gelu_tanh) {
    return x / (1.0 + ::exp(-2 * 0.7978845608028654 * (x + 0.044715 * x * x * x)));
  }
  if constexpr (op == Unary::gelu_quick) return x / (1.0 + ::exp(-1.702 * x));
  if constexpr (op == Unary::softplus) return (x > 0 ? x : 0.0) + ::log1p(::exp(x > 0 ? -x : x));
}

template <Unary op>
void run_f64(const double* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = scalar<op>(x[i]);
}

void run_power(const float* a, const float* b, float* y, int64_t n) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(y + i, pow(load(a + i), load(b + i)));
  if (i < n) store_n(y + i, pow(load_n(a + i, int(n - i)), load_n(b + i, int(n - i))), int(n - i));
}

template <int... i>
UnaryKernels make(Indices<i...>) {
  return {{run_f32<Unary(i)>...}, {run_affine<Unary(i)>...}, {run_f64<Unary(i)>...}, run_power};
}

}  // namespace

UnaryKernels unary_kernels() { return make(MakeIndices<kUnaryCount>()); }

}  // namespace rlx::cpu::RLX_ISA
