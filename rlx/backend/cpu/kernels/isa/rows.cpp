// Plan: a row is read from memory once and then lives in L1 (a row of 8192 elements is 32 KiB), so each
// further pass over it is cheap: norms take three (sum, centred squares, result), softmax three (maximum,
// exponentials with their sum, scaling). Four independent sums hide the latency of addition. The last pass
// asks for the next row, so that memory does not wait for arithmetic, and writes past the caches when the
// result is too large for them. Bound: one read and one write of memory per element.
#include "rlx/backend/cpu/kernels/rows.h"
#include "rlx/backend/cpu/simd/math.h"

namespace rlx::cpu::RLX_ISA {
namespace {

struct Add {
  RLX_INLINE F32 operator()(F32 a, F32 b) const { return a + b; }
};
// A NaN on either side wins: max returns its second operand when either is one.
struct Max {
  RLX_INLINE F32 operator()(F32 a, F32 b) const { return a == a ? max(a, b) : a; }
};

/// combine over i of value(i, lanes) for i in steps of one vector; the tail is filled with `neutral`.
template <class Combine, class Value>
RLX_INLINE F32 gather_row(int64_t n, F32 neutral, Combine combine, Value value) {
  F32 s0 = neutral, s1 = neutral, s2 = neutral, s3 = neutral;
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    s0 = combine(s0, value(i, kLanes));
    s1 = combine(s1, value(i + kLanes, kLanes));
    s2 = combine(s2, value(i + 2 * kLanes, kLanes));
    s3 = combine(s3, value(i + 3 * kLanes, kLanes));
  }
  for (; i + kLanes <= n; i += kLanes) s0 = combine(s0, value(i, kLanes));
  if (i < n) s1 = combine(s1, value(i, int(n - i)));
  return combine(combine(s0, s1), combine(s2, s3));
}

RLX_INLINE I32 lane_index() {
  I32 v;
  for (int i = 0; i < kLanes; ++i) v[i] = i;
  return v;
}
RLX_INLINE F32 fetch(const float* p, int lanes) { return lanes == kLanes ? load(p) : load_n(p, lanes); }
RLX_INLINE F32 fetch_or(const float* p, int lanes, F32 other) {
  return lanes == kLanes ? load(p) : (lane_index() < lanes ? load_n(p, lanes) : other);
}
RLX_INLINE void put(float* p, F32 v, int lanes) {
  if (lanes == kLanes) {
    store(p, v);
  } else {
    store_n(p, v, lanes);
  }
}

template <bool streaming>
RLX_INLINE void put_result(float* p, F32 v, int lanes) {
  if (streaming && lanes == kLanes) {
    stream(p, v);
  } else {
    put(p, v, lanes);
  }
}

// Rows up to this length (8 KiB) are fetched while the row before is being finished; the hardware follows
// longer ones by itself.
constexpr int64_t kFetchedAhead = 2048;
RLX_INLINE const float* row_ahead(const float* x, int64_t stride, int64_t n, bool last) {
  return last || n > kFetchedAhead ? x : x + stride;
}

template <class Value>
RLX_INLINE float sum_row(int64_t n, Value value) {
  return reduce_add(gather_row(n, F32{}, Add{}, value));
}
template <class Body>
RLX_INLINE void each(int64_t n, Body body) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, kLanes);
  if (i < n) body(i, int(n - i));
}

struct Moments {
  float mean, inverse_deviation;
};
// `first(i, lanes)` is the row on its first reading, and may make it: zero beyond the lanes.
template <class First>
RLX_INLINE Moments moments(NormKind kind, const float* x, int64_t n, float epsilon, First first) {
  Moments m{0, 0};
  float squares;
  if (kind == NormKind::layer) {
    m.mean = sum_row(n, first) / float(n);
    const F32 mean = set1(m.mean);
    squares = sum_row(n, [&](int64_t i, int l) {
      const F32 d = fetch_or(x + i, l, mean) - mean;
      return d * d;
    });
  } else {
    squares = sum_row(n, [&](int64_t i, int l) {
      const F32 v = first(i, l);
      return v * v;
    });
  }
  m.inverse_deviation = 1.0f / __builtin_sqrtf(squares / float(n) + epsilon);
  return m;
}
RLX_INLINE Moments moments(NormKind kind, const float* x, int64_t n, float epsilon) {
  return moments(kind, x, n, epsilon, [&](int64_t i, int l) { return fetch(x + i, l); });
}

/// Writes the normalised row; `ahead(i)` asks for what the next row reads.
template <bool streaming, class Ahead>
RLX_INLINE void finish_norm(const Norm& p, const float* x, const Moments& m, float* y, Ahead ahead) {
  const F32 mean = set1(m.mean), scale = set1(m.inverse_deviation), offset = set1(p.gamma_offset);
  const auto finish = [&](auto affine) {
    each(p.n, [&](int64_t i, int l) {
      ahead(i);
      put_result<streaming>(y + i, affine((fetch(x + i, l) - mean) * scale, i, l), l);
    });
  };
  if (p.gamma == nullptr && p.beta == nullptr) {
    finish([&](F32 v, int64_t, int) { return v; });
  } else if (p.beta == nullptr) {
    finish([&](F32 v, int64_t i, int l) { return v * (fetch(p.gamma + i, l) + offset); });
  } else {
    finish([&](F32 v, int64_t i, int l) {
      const F32 g = p.gamma != nullptr ? fetch(p.gamma + i, l) + offset : set1(1.0f);
      return fma(v, g, fetch(p.beta + i, l));
    });
  }
}

RLX_INLINE void keep_moments(const Norm& p, int64_t row, const Moments& m) {
  if (p.mean != nullptr) p.mean[row] = m.mean;
  if (p.inverse_deviation != nullptr) p.inverse_deviation[row] = m.inverse_deviation;
}

template <bool streaming>
void norm_rows(const Norm& p, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* x = p.x + row * p.x_stride;
    const float* next = row_ahead(x, p.x_stride, p.n, row + 1 == end);
    const Moments m = moments(p.kind, x, p.n, p.epsilon);
    keep_moments(p, row, m);
    finish_norm<streaming>(p, x, m, p.y + row * p.y_stride, [&](int64_t i) { __builtin_prefetch(next + i); });
  }
  if (streaming) stream_fence();
}

/// The sum is made while its moments are taken. Where results go past the caches, the row is kept on the stack beside.
template <bool streaming>
void residual_norm_rows(const Norm& p, int64_t begin, int64_t end) {
  float kept[streaming ? kStreamedNorm : 1];
  for (int64_t row = begin; row < end; ++row) {
    const float* x = p.x + row * p.x_stride;
    const float* r = p.residual + row * p.x_stride;
    const bool last = row + 1 == end;
    const float *next_x = row_ahead(x, p.x_stride, p.n, last), *next_r = row_ahead(r, p.x_stride, p.n, last);
    float* y = p.y + row * p.y_stride;
    float* sum = p.sum != nullptr ? p.sum + row * p.y_stride : y;
    float* near = streaming ? kept : sum;
    const Moments m = moments(p.kind, near, p.n, p.epsilon, [&](int64_t i, int l) {
      const F32 v = fetch(x + i, l) + fetch(r + i, l);
      if (streaming) {
        put(near + i, v, l);
        if (p.sum != nullptr) put_result<true>(sum + i, v, l);
      } else {
        put(sum + i, v, l);
      }
      return v;
    });
    keep_moments(p, row, m);
    finish_norm<streaming>(p, near, m, y, [&](int64_t i) {
      __builtin_prefetch(next_x + i);
      __builtin_prefetch(next_r + i);
    });
  }
  if (streaming) stream_fence();
}

void norm(const Norm& p, int64_t begin, int64_t end, bool streaming) {
  const auto rows = p.residual != nullptr ? (streaming ? residual_norm_rows<true> : residual_norm_rows<false>)
                                          : (streaming ? norm_rows<true> : norm_rows<false>);
  rows(p, begin, end);
}

// With h = (x - mean) r and g = dy gamma:  dx = r (g - mean(g) - h mean(g h)), without mean(g) for rms.
void norm_backward(const NormBackward& p, int64_t begin, int64_t end, float* dgamma, float* dbeta) {
  for (int64_t row = begin; row < end; ++row) {
    const float* x = p.x + row * p.n;
    const float* dy = p.dy + row * p.n;
    const Moments m = moments(p.kind, x, p.n, p.epsilon);
    const F32 mean = set1(m.mean), r = set1(m.inverse_deviation), offset = set1(p.gamma_offset);
    const auto g = [&](int64_t i, int l) {
      return p.gamma != nullptr ? fetch(dy + i, l) * (fetch(p.gamma + i, l) + offset) : fetch(dy + i, l);
    };
    const auto h = [&](int64_t i, int l) { return (fetch(x + i, l) - mean) * r; };
    if (dgamma != nullptr) {
      each(p.n, [&](int64_t i, int l) {
        put(dgamma + i, fma(fetch(dy + i, l), h(i, l), fetch(dgamma + i, l)), l);
      });
    }
    if (dbeta != nullptr) {
      each(p.n, [&](int64_t i, int l) { put(dbeta + i, fetch(dbeta + i, l) + fetch(dy + i, l), l); });
    }
    if (p.dx == nullptr) continue;
    float* dx = p.dx + row * p.n;
    const float n = float(p.n);
    const F32 mean_gh = set1(sum_row(p.n, [&](int64_t i, int l) { return g(i, l) * h(i, l); }) / n);
    const F32 mean_g = p.kind == NormKind::layer ? set1(sum_row(p.n, g) / n) : F32{};
    each(p.n, [&](int64_t i, int l) { put(dx + i, r * (g(i, l) - mean_g - h(i, l) * mean_gh), l); });
  }
}

RLX_INLINE float row_max(const float* x, int64_t n) {
  const F32 lowest = set1(-__builtin_inff());
  return reduce_max(
      gather_row(n, lowest, Max{}, [&](int64_t i, int l) { return fetch_or(x + i, l, lowest); }));
}
/// Without regard to NaN, which the exponentials pass on. A maximum of -inf makes them all NaN, as it should.
RLX_INLINE float row_max_of_numbers(const float* x, int64_t n) {
  const F32 lowest = set1(-__builtin_inff());
  return reduce_max(gather_row(
      n, lowest, [](F32 a, F32 b) { return max(b, a); },
      [&](int64_t i, int l) { return fetch_or(x + i, l, lowest); }));
}

/// 2^t for t <= 0 or a little above, 2 ulp and what rounding t costs.
RLX_INLINE F32 exp2_below(F32 t) {
  t = max(set1(-150.0f), t);
  const F32 n = round_small(t), r = t - n;
  // 2^r for |r| <= 1/2, 8e-9.
  const F32 p = polynomial(r, {1.0f, 0.6931471825f, 0.240226507f, 0.05550381014f, 0.009618103253f,
                               0.001338130254f, 0.0001544488395f});
  return scale_by_power(p, n);
}

/// y = 2^exponent(x), its sum; the lanes beyond n count nothing. `beside(i, lanes)` runs along.
template <class Exponent, class Beside>
RLX_INLINE float powers(const float* x, float* y, int64_t n, Exponent exponent, Beside beside) {
  const F32 lowest = set1(-__builtin_inff());
  return sum_row(n, [&](int64_t i, int l) {
    const F32 e = exp2_below(exponent(fetch_or(x + i, l, lowest)));
    const F32 kept = l == kLanes ? e : (lane_index() < l ? e : F32{});
    put(y + i, kept, l);
    beside(i, l);
    return kept;
  });
}

/// y = exp(scale x - top), its sum: the difference is taken first, so that it is exact where it counts.
template <class Beside>
RLX_INLINE float exponentials(const float* x, float* y, int64_t n, float scale, float top, Beside beside) {
  const F32 s = set1(scale), t = set1(-top);
  return powers(x, y, n, [&](F32 v) { return fma(v, s, t) * kLog2e; }, beside);
}

/// The same times a number that all lanes of a row share, which quotients do not see: the error of the shift, which is rounded once it is in powers
/// of 2. Far from 0 it would be a power by itself, and times log2 e the lowest number, which masks hold, is infinite.
template <class Beside>
RLX_INLINE float proportions(const float* x, float* y, int64_t n, float scale, float top, Beside beside) {
  if (__builtin_fabsf(top) > 1e6f && __builtin_fabsf(top) < __builtin_inff())
    return exponentials(x, y, n, scale, top, beside);
  const F32 s = set1(scale * kLog2e), t = set1(-top * kLog2e);
  return powers(x, y, n, [&](F32 v) { return fma(v, s, t); }, beside);
}

/// The last pass over a row goes along with the exponentials of the next one: its writes and the reads ahead
/// keep memory busy while the polynomials are computed. Two rows of exponentials are on the stack.
void softmax_streamed(const Softmax& p, int64_t begin, int64_t end) {
  float kept[2][kStreamedSoftmax];
  F32 inverse = {};
  float* last = nullptr;
  for (int64_t row = begin; row < end; ++row) {
    const float* x = p.x + row * p.x_stride;
    const float* ahead = row_ahead(x, p.x_stride, p.n, row + 1 == end);
    const float* before = kept[(row + 1) % 2];
    float* e = kept[row % 2];
    const float top = row_max_of_numbers(x, p.n) * p.scale;
    const float sum = last == nullptr ? proportions(x, e, p.n, p.scale, top, [](int64_t, int) {})
                                      : proportions(x, e, p.n, p.scale, top, [&](int64_t i, int l) {
                                          __builtin_prefetch(ahead + i);
                                          put_result<true>(last + i, fetch(before + i, l) * inverse, l);
                                        });
    inverse = set1(1.0f / sum);
    last = p.y + row * p.y_stride;
  }
  if (last != nullptr) {
    const float* e = kept[(end + 1) % 2];
    each(p.n, [&](int64_t i, int l) { put_result<true>(last + i, fetch(e + i, l) * inverse, l); });
  }
  stream_fence();
}

void softmax_rows(const Softmax& p, int64_t begin, int64_t end) {
  const F32 s = set1(p.scale);
  for (int64_t row = begin; row < end; ++row) {
    const float* x = p.x + row * p.x_stride;
    float* y = p.y + row * p.y_stride;
    const float top = row_max_of_numbers(x, p.n) * p.scale;
    if (p.logarithm) {
      const F32 t = set1(-top);
      const float sum = sum_row(p.n, [&](int64_t i, int l) {
        const F32 e = exp(fma(fetch(x + i, l), s, t));
        return l == kLanes ? e : (lane_index() < l ? e : F32{});
      });
      const F32 log_sum = set1(__builtin_logf(sum));
      each(p.n, [&](int64_t i, int l) { put(y + i, fma(fetch(x + i, l), s, t) - log_sum, l); });
    } else {
      const F32 inverse = set1(1.0f / proportions(x, y, p.n, p.scale, top, [](int64_t, int) {}));
      each(p.n, [&](int64_t i, int l) { put(y + i, fetch(y + i, l) * inverse, l); });
    }
  }
}

void softmax(const Softmax& p, int64_t begin, int64_t end, bool streaming) {
  if (streaming) {
    softmax_streamed(p, begin, end);
  } else {
    softmax_rows(p, begin, end);
  }
}

void softmax_backward(const SoftmaxBackward& p, int64_t begin, int64_t end) {
  const F32 scale = set1(p.scale);
  for (int64_t row = begin; row < end; ++row) {
    const float* y = p.y + row * p.n;
    const float* dy = p.dy + row * p.n;
    float* dx = p.dx + row * p.n;
    if (p.logarithm) {
      const F32 sum = set1(sum_row(p.n, [&](int64_t i, int l) { return fetch(dy + i, l); }));
      each(p.n, [&](int64_t i, int l) {
        put(dx + i, scale * (fetch(dy + i, l) - exp(fetch(y + i, l)) * sum), l);
      });
    } else {
      const F32 dot =
          set1(sum_row(p.n, [&](int64_t i, int l) { return fetch(y + i, l) * fetch(dy + i, l); }));
      each(p.n,
           [&](int64_t i, int l) { put(dx + i, scale * fetch(y + i, l) * (fetch(dy + i, l) - dot), l); });
    }
  }
}

void cross_entropy(const CrossEntropy& p, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* x = p.x + row * p.n;
    float* dx = p.dx != nullptr ? p.dx + row * p.n : nullptr;
    const int64_t target = p.target[row];
    if (target == p.ignored) {
      p.loss[row] = 0;
      if (dx != nullptr) each(p.n, [&](int64_t i, int l) { put(dx + i, F32{}, l); });
      continue;
    }
    const float top = row_max(x, p.n), chosen = x[target];
    float sum;
    if (dx != nullptr) {
      sum = exponentials(x, dx, p.n, 1.0f, top, [](int64_t, int) {});
      const float weight = p.weight != nullptr ? p.weight[row] : 1.0f;
      const F32 factor = set1(weight / sum);
      each(p.n, [&](int64_t i, int l) { put(dx + i, fetch(dx + i, l) * factor, l); });
      dx[target] -= weight;
    } else {
      sum = sum_row(p.n, [&](int64_t i, int l) {
        const F32 e = exp(fetch(x + i, l) - top);
        return l == kLanes ? e : (lane_index() < l ? e : F32{});
      });
    }
    p.loss[row] = top - chosen + __builtin_logf(sum);
  }
}

void sum_rows(const float* x, int64_t stride, int64_t rows, int64_t width, float* y) {
  each(width, [&](int64_t i, int l) {
    F32 s = {};
    for (int64_t j = 0; j < rows; ++j) s += fetch(x + j * stride + i, l);
    put(y + i, s, l);
  });
}

}  // namespace

RowKernels row_kernels() { return {norm, norm_backward, softmax, softmax_backward, cross_entropy, sum_rows}; }

}  // namespace rlx::cpu::RLX_ISA
