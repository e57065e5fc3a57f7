#include "bench/loops/region_loops.h"

#include "rlx/backend/cpu/simd/narrow.h"
#include "rlx/backend/cpu/simd/transpose.h"
#include "rlx/backend/cpu/simd/unary_math.h"

namespace rlx::cpu::RLX_ISA {
namespace {

using rlx::bench::Loop;

template <class T>
T* at(char* const* a, int i, int64_t offset = 0) {
  return reinterpret_cast<T*>(a[i]) + offset;
}

RLX_INLINE void put(float* p, F32 v, bool stream_it) {
  if (stream_it) {
    stream(p, v);
  } else {
    store(p, v);
  }
}

/// body(i) for every vector of a line; its length is a multiple of the vector's.
template <int unroll, class Body>
RLX_INLINE void each(int64_t n, Body body) {
  for (int64_t i = 0; i < n; i += unroll * kLanes) {
#pragma GCC unroll 4
    for (int u = 0; u < unroll; ++u) body(i + u * kLanes);
  }
}

void bias_gelu(char* const* a, int64_t rows, int64_t n, bool s) {
  for (int64_t r = 0; r < rows; ++r) {
    const float *x = at<float>(a, 0, r * n), *b = at<float>(a, 1);
    float* y = at<float>(a, 2, r * n);
    each<1>(n, [&](int64_t i) { put(y + i, gelu(load(x + i) + load(b + i)), s); });
  }
}

void swiglu(char* const* a, int64_t, int64_t n, bool s) {
  const float *x = at<float>(a, 0), *g = at<float>(a, 1);
  float* y = at<float>(a, 2);
  each<1>(n, [&](int64_t i) { put(y + i, silu(load(x + i)) * load(g + i), s); });
}

void adamw(char* const* a, int64_t, int64_t n, bool) {
  float *p = at<float>(a, 0), *m = at<float>(a, 1), *v = at<float>(a, 2);
  const float* g = at<float>(a, 3);
  float *p1 = at<float>(a, 4), *m1 = at<float>(a, 5), *v1 = at<float>(a, 6);
  each<2>(n, [&](int64_t i) {
    const F32 grad = load(g + i), mean = load(m + i) * 0.9f + grad * 0.1f;
    const F32 square = load(v + i) * 0.999f + grad * grad * 0.001f;
    store(m1 + i, mean);
    store(v1 + i, square);
    const F32 step = mean / (sqrt(square * 1.5f) + 1e-8f);
    store(p1 + i, load(p + i) * 0.99999f + step * -1e-3f);
  });
}

template <class Body>
RLX_INLINE float sum_of(int64_t n, Body body) {
  F32 s[4] = {};
  for (int64_t i = 0; i < n; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) s[u] += body(i + u * kLanes);
  }
  return reduce_add((s[0] + s[1]) + (s[2] + s[3]));
}

void layer_norm(char* const* a, int64_t rows, int64_t n, bool stream_it) {
  for (int64_t r = 0; r < rows; ++r) {
    const float *x = at<float>(a, 0, r * n), *w = at<float>(a, 1), *b = at<float>(a, 2);
    float* y = at<float>(a, 3, r * n);
    const float mean = sum_of(n, [&](int64_t i) { return load(x + i); }) / float(n);
    const float var = sum_of(n,
                             [&](int64_t i) {
                               const F32 d = load(x + i) - mean;
                               return d * d;
                             }) /
                      float(n);
    const float scale = 1 / __builtin_sqrtf(var + 1e-5f);
    each<4>(n, [&](int64_t i) {
      put(y + i, (load(x + i) - mean) * scale * load(w + i) + load(b + i), stream_it);
    });
  }
}

void softmax(char* const* a, int64_t rows, int64_t n, bool stream_it) {
  static thread_local float t[1 << 14];
  for (int64_t r = 0; r < rows; ++r) {
    const float *x = at<float>(a, 0, r * n), *k = at<float>(a, 1);
    float* y = at<float>(a, 2, r * n);
    F32 m[4];
    for (F32& v : m) v = set1(-__builtin_inff());
    for (int64_t i = 0; i < n; i += 4 * kLanes) {
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) {
        const F32 v = load(x + i + u * kLanes) + load(k + i + u * kLanes);
        store(t + i + u * kLanes, v);
        m[u] = m[u] != m[u] ? m[u] : max(m[u], v);
      }
    }
    const float top = reduce_max(max(max(m[0], m[1]), max(m[2], m[3])));
    const float total = sum_of(n, [&](int64_t i) {
      const F32 e = exp(load(t + i) - top);
      store(t + i, e);
      return e;
    });
    each<4>(n, [&](int64_t i) { put(y + i, load(t + i) / total, stream_it); });
  }
}

void chain(char* const* a, int64_t, int64_t n, bool s) {
  const float *px = at<float>(a, 0), *py = at<float>(a, 1);
  float* o = at<float>(a, 2);
  const auto larger = [](F32 p, F32 q) { return p != p ? p : max(p, q); };
  const auto smaller = [](F32 p, F32 q) { return p != p ? p : min(p, q); };
  each<2>(n, [&](int64_t i) {
    const F32 x = load(px + i), y = load(py + i);
    const F32 t0 = x + y, t1 = x * 0.7f, t2 = larger(t0, t1), t3 = t2 * t0, t4 = t3 - y, t5 = t4 * 0.3f,
              t6 = smaller(t5, x), t7 = t6 + t2, t8 = t7 * t7, t9 = t8 - t5, t10 = t9 > 0.0f ? t7 : t4,
              t11 = t10 * 1.1f, t12 = t11 + 0.25f, t13 = larger(t12, t0), t14 = t13 * y, t15 = t14 - t8,
              t16 = abs(t15), t17 = t16 + x, t18 = t17 * 0.9f, t19 = smaller(t18, t13), t20 = t19 - t11,
              t21 = t20 > 0.0f ? t18 : t16, t22 = t21 + t7;
    put(o + i, t22 * 0.5f, s);
  });
}

void bf16_rms(char* const* a, int64_t rows, int64_t n, bool) {
  static thread_local float t[1 << 14];
  for (int64_t r = 0; r < rows; ++r) {
    const Bf16 *x = at<Bf16>(a, 0, r * n), *e = at<Bf16>(a, 1, r * n);
    const float* w = at<float>(a, 2);
    Bf16 *h = at<Bf16>(a, 3, r * n), *y = at<Bf16>(a, 4, r * n);
    const float square = sum_of(n, [&](int64_t i) {
      const F32 v = load(x + i) + load(e + i);
      store(h + i, v);
      store(t + i, v);
      return v * v;
    });
    const float scale = 1 / __builtin_sqrtf(square / float(n) + 1e-5f);
    each<2>(n, [&](int64_t i) { store(y + i, load(t + i) * scale * load(w + i)); });
  }
}

// y[r][c] = x[c][r] / 2 + b[c], n by n.
void transpose_scale(char* const* a, int64_t n, int64_t, bool stream_it) {
  const float *x = at<float>(a, 0), *b = at<float>(a, 1);
  float* y = at<float>(a, 2);
  for (int64_t r = 0; r < n; r += kLanes) {
    for (int64_t c = 0; c < n; c += kLanes) {
      F32 v[kLanes];
#pragma GCC unroll 16
      for (int q = 0; q < kLanes; ++q) v[q] = load(x + (c + q) * n + r);
      transpose(v);
      const F32 bias = load(b + c);
#pragma GCC unroll 16
      for (int q = 0; q < kLanes; ++q) put(y + (r + q) * n + c, v[q] * 0.5f + bias, stream_it);
    }
  }
}

void gelu_gradient(char* const* a, int64_t, int64_t n, bool s) {
  const float *px = at<float>(a, 0), *d = at<float>(a, 1);
  float* y = at<float>(a, 2);
  constexpr float c0 = 0.7978845608f, c1 = c0 * 0.044715f;
  each<1>(n, [&](int64_t i) {
    const F32 x = load(px + i), q = x * x, t = tanh((q * c1 + c0) * x), inner = q * (3 * c1) + c0;
    const F32 grad = x * (1.0f - t * t) * inner * 0.5f + (t * 0.5f + 0.5f);
    put(y + i, grad * load(d + i), s);
  });
}

}  // namespace
}  // namespace rlx::cpu::RLX_ISA

namespace rlx::bench {

#define RLX_LOOPS_AT(level) region_loops_##level
#define RLX_LOOPS_OF(level) RLX_LOOPS_AT(level)
Loops RLX_LOOPS_OF(RLX_ISA)() {
  using namespace cpu::RLX_ISA;
  return {bias_gelu, swiglu, adamw, layer_norm, softmax, chain, bf16_rms, transpose_scale, gelu_gradient};
}

}  // namespace rlx::bench
