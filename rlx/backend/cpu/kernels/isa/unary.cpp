// Plan: one pass over the data, one vector at a time; the polynomials keep the arithmetic units busy enough
// that unrolling brought nothing. Bound: memory, at one read and one write per element, for all but pow. The
// last partial vector goes through a masked load and store, so every element sees the same arithmetic.
#include "rlx/backend/cpu/kernels/unary.h"

#include "rlx/backend/cpu/kernels/isa/indices.h"
#include "rlx/backend/cpu/simd/unary_math.h"

namespace rlx::cpu::RLX_ISA {
namespace {

template <class T>
inline constexpr int kWidth = kVectorBytes / int(sizeof(T));

template <class T, class Source, class F>
RLX_INLINE void map(T* y, int64_t n, bool streaming, Source source, F f) {
  constexpr int width = kWidth<T>;
  int64_t i = 0;
  if (streaming) {
    for (; i + width <= n; i += width) stream(y + i, f(source(i, width)));
    stream_fence();
  } else {
    for (; i + width <= n; i += width) store(y + i, f(source(i, width)));
  }
  if (i < n) store_n(y + i, f(source(i, int(n - i))), int(n - i));
}

template <class T>
RLX_INLINE auto fetch(const T* p, int n) {
  return n == kWidth<T> ? load(p) : load_n(p, n);
}

template <Unary op, class T>
void run_unary(const T* x, T* y, int64_t n, bool streaming) {
  map(
      y, n, streaming, [=](int64_t i, int lanes) { return fetch(x + i, lanes); },
      [](auto v) { return apply<op>(v); });
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

template <class T>
void run_power(const T* a, const T* b, T* y, int64_t n) {
  constexpr int width = kWidth<T>;
  for (int64_t i = 0; i < n; i += width) {
    const int lanes = n - i < width ? int(n - i) : width;
    store_n(y + i, pow(fetch(a + i, lanes), fetch(b + i, lanes)), lanes);
  }
}

template <int... i>
UnaryKernels make(Indices<i...>) {
  return {{run_unary<Unary(i), float>...},
          {run_affine<Unary(i)>...},
          {run_unary<Unary(i), double>...},
          run_power<float>,
          run_power<double>};
}

}  // namespace

UnaryKernels unary_kernels() { return make(MakeIndices<kUnaryCount>()); }

}  // namespace rlx::cpu::RLX_ISA
