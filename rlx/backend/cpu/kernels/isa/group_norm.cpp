// Plan: a group is read from memory once and then lies in L2: its mean, its centred squares and the result
// are three passes. Normalising over channels takes a block of four vectors of places through all channels,
// three times as well; a block of 512 channels is 128 KiB. Bound: one read and one write of memory an
// element.
#include "rlx/backend/cpu/kernels/group_norm.h"
#include "rlx/backend/cpu/simd/vec.h"

namespace rlx::cpu::RLX_ISA {
namespace {

RLX_INLINE F32 take(const float* p, int lanes) { return lanes == kLanes ? load(p) : load_n(p, lanes); }
RLX_INLINE void give(float* p, F32 v, int lanes) { lanes == kLanes ? store(p, v) : store_n(p, v, lanes); }
RLX_INLINE F32 cut(F32 v, int lanes) {
  if (lanes == kLanes) return v;
  for (int i = lanes; i < kLanes; ++i) v[i] = 0;
  return v;
}

/// Sum over i < n of value(i, lanes); lanes beyond n must be zero. Four sums hide the latency of addition.
template <class Value>
RLX_INLINE float total(int64_t n, Value value) {
  F32 s[4] = {};
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) s[j] = s[j] + value(i + j * kLanes, kLanes);
  }
  for (; i + kLanes <= n; i += kLanes) s[0] = s[0] + value(i, kLanes);
  if (i < n) s[1] = s[1] + value(i, int(n - i));
  return reduce_add((s[0] + s[1]) + (s[2] + s[3]));
}
template <class Body>
RLX_INLINE void vectors(int64_t n, Body body) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, kLanes);
  if (i < n) body(i, int(n - i));
}

struct Moments {
  float mean, scale;
};
Moments moments(const float* x, int64_t n, float epsilon) {
  const float mean = total(n, [&](int64_t i, int l) { return take(x + i, l); }) / float(n);
  const F32 m = set1(mean);
  const float squares = total(n, [&](int64_t i, int l) {
    const F32 d = cut(take(x + i, l) - m, l);
    return d * d;
  });
  return {mean, 1.0f / __builtin_sqrtf(squares / float(n) + epsilon)};
}

void group(const ChannelNorm& p, int64_t first, const float* x, float* y) {
  const int64_t channels = p.channels / p.groups, n = p.places;
  const Moments m = moments(x, channels * n, p.epsilon);
  for (int64_t c = 0; c < channels; ++c) {
    const F32 mean = set1(m.mean), scale = set1(m.scale),
              gamma = set1(p.gamma != nullptr ? p.gamma[first + c] : 1.0f),
              beta = set1(p.beta != nullptr ? p.beta[first + c] : 0.0f);
    vectors(n, [&](int64_t i, int l) {
      give(y + c * n + i, fma((take(x + c * n + i, l) - mean) * scale, gamma, beta), l);
    });
  }
}

// With h = (x - m) r and g = dy gamma:  dx = r (g - mean(g) - h mean(g h)).
void group_backward(const ChannelNormBackward& b, int64_t first, const float* x, const float* dy, float* dx,
                    float* sums) {
  const ChannelNorm& p = b.forward;
  const int64_t channels = p.channels / p.groups, n = p.places;
  const Moments m = moments(x, channels * n, p.epsilon);
  const F32 mean = set1(m.mean), scale = set1(m.scale);
  float sum_g = 0, sum_gh = 0;
  for (int64_t c = 0; c < channels; ++c) {
    const float* xc = x + c * n;
    const float* dc = dy + c * n;
    sums[c] = total(n, [&](int64_t i, int l) { return take(dc + i, l); });
    sums[p.channels + c] = total(
        n, [&](int64_t i, int l) { return take(dc + i, l) * cut((take(xc + i, l) - mean) * scale, l); });
    const float gamma = p.gamma != nullptr ? p.gamma[first + c] : 1.0f;
    sum_g += gamma * sums[c];
    sum_gh += gamma * sums[p.channels + c];
  }
  const float count = float(channels * n);
  const F32 mean_g = set1(sum_g / count), mean_gh = set1(sum_gh / count);
  for (int64_t c = 0; c < channels; ++c) {
    const F32 gamma = set1(p.gamma != nullptr ? p.gamma[first + c] : 1.0f);
    vectors(n, [&](int64_t i, int l) {
      const F32 h = (take(x + c * n + i, l) - mean) * scale;
      give(dx + c * n + i, scale * (take(dy + c * n + i, l) * gamma - mean_g - h * mean_gh), l);
    });
  }
}

constexpr int kVectors = 4;

struct PlaceMoments {
  F32 mean[kVectors], scale[kVectors];
};

// Lanes of the four vectors that exist; those beyond n are zero everywhere.
RLX_INLINE int lanes_at(int64_t n, int v) {
  const int64_t left = n - v * kLanes;
  return int(left < 0 ? 0 : (left < kLanes ? left : kLanes));
}

template <class Body>
RLX_INLINE void each_vector(int64_t n, Body body) {
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const int l = lanes_at(n, v);
    if (l > 0) body(v, v * kLanes, l);
  }
}

PlaceMoments place_moments(const ChannelNorm& p, const float* x, int64_t n) {
  PlaceMoments m;
  const float count = float(p.channels);
  F32 sum[kVectors] = {}, squares[kVectors] = {};
  for (int64_t c = 0; c < p.channels; ++c) {
    each_vector(n, [&](int v, int at, int l) { sum[v] = sum[v] + take(x + c * p.places + at, l); });
  }
  for (int v = 0; v < kVectors; ++v) m.mean[v] = sum[v] / count;
  for (int64_t c = 0; c < p.channels; ++c) {
    each_vector(n, [&](int v, int at, int l) {
      const F32 d = take(x + c * p.places + at, l) - m.mean[v];
      squares[v] = fma(d, d, squares[v]);
    });
  }
  for (int v = 0; v < kVectors; ++v) m.scale[v] = 1.0f / sqrt(squares[v] / count + p.epsilon);
  return m;
}

void places(const ChannelNorm& p, const float* x, float* y, int64_t n) {
  const PlaceMoments m = place_moments(p, x, n);
  for (int64_t c = 0; c < p.channels; ++c) {
    const F32 gamma = set1(p.gamma != nullptr ? p.gamma[c] : 1.0f),
              beta = set1(p.beta != nullptr ? p.beta[c] : 0.0f);
    each_vector(n, [&](int v, int at, int l) {
      const F32 h = (take(x + c * p.places + at, l) - m.mean[v]) * m.scale[v];
      give(y + c * p.places + at, fma(h, gamma, beta), l);
    });
  }
}

void places_backward(const ChannelNormBackward& b, const float* x, const float* dy, float* dx, float* sums,
                     int64_t n) {
  const ChannelNorm& p = b.forward;
  const PlaceMoments m = place_moments(p, x, n);
  F32 sum_g[kVectors] = {}, sum_gh[kVectors] = {};
  for (int64_t c = 0; c < p.channels; ++c) {
    const F32 gamma = set1(p.gamma != nullptr ? p.gamma[c] : 1.0f);
    F32 plain = {}, with_h = {};
    each_vector(n, [&](int v, int at, int l) {
      const F32 h = (take(x + c * p.places + at, l) - m.mean[v]) * m.scale[v],
                d = take(dy + c * p.places + at, l);
      sum_g[v] = fma(gamma, d, sum_g[v]);
      sum_gh[v] = fma(gamma * d, h, sum_gh[v]);
      plain = plain + d;
      with_h = with_h + cut(d * h, l);
    });
    sums[c] += reduce_add(plain);
    sums[p.channels + c] += reduce_add(with_h);
  }
  const float count = float(p.channels);
  for (int64_t c = 0; c < p.channels; ++c) {
    const F32 gamma = set1(p.gamma != nullptr ? p.gamma[c] : 1.0f);
    each_vector(n, [&](int v, int at, int l) {
      const F32 h = (take(x + c * p.places + at, l) - m.mean[v]) * m.scale[v],
                d = take(dy + c * p.places + at, l);
      give(dx + c * p.places + at, m.scale[v] * (d * gamma - sum_g[v] / count - h * (sum_gh[v] / count)), l);
    });
  }
}

}  // namespace

ChannelNormKernels channel_norm_kernels() {
  return {kVectors * kLanes, group, group_backward, places, places_backward};
}

}  // namespace rlx::cpu::RLX_ISA
