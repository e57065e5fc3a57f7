#include "rlx/quant/fit.h"

#include <cmath>

namespace rlx::quant {
namespace {

constexpr int kLanes = 8;
constexpr float kTiny = 1e-30f;
// Far beyond what an f16 scale can express, and small enough for sums of squares: above it nothing is
// searched.
constexpr float kHuge = 1e15f;
constexpr int kRefinements = 6;

float sum(const float (&lanes)[kLanes]) {
  float total = 0;
  for (const float v : lanes) total += v;
  return total;
}

float signed_extreme(const float* x, int n) {
  float extreme = 0;
  for (int i = 0; i < n; ++i) {
    if (std::abs(x[i]) > std::abs(extreme)) extreme = x[i];
  }
  return extreme;
}

// Weights of elements. With Ones the products by 1 vanish.
struct Ones {
  float operator[](int) const { return 1; }
};

struct Moments {
  float xg = 0, gg = 0;  // sums of w*x*g and w*g*g over grid values g
  float scale() const { return gg > 0 ? xg / gg : 0.0f; }
  float gain() const { return gg > 0 ? xg * xg / gg : 0.0f; }  // squared error removed by that scale
};

template <class Grid, class Weights>
Moments moments(const float* x, int n, Weights w, float inverse, Grid grid) {
  float xg[kLanes] = {}, gg[kLanes] = {};
  for (int i = 0; i < n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      const float g = grid(x[i + l] * inverse);
      xg[l] += w[i + l] * (x[i + l] * g);
      gg[l] += w[i + l] * (g * g);
    }
  }
  return {sum(xg), sum(gg)};
}

// Tries the scales that map `extreme` to end + k*step for |k| <= kSteps at both ends of the grid, then
// alternates codes and scale from the best.
template <class Grid, class Weights>
float search_scale(const float* x, int n, Weights w, float lo, float hi, float step, Grid grid) {
  constexpr int kSteps = 8;
  const float extreme = signed_extreme(x, n);
  if (std::abs(extreme) < kTiny) return 0;
  if (std::abs(extreme) > kHuge) return extreme / lo;
  Moments best;
  const auto consider = [&](float inverse) {
    const Moments m = moments(x, n, w, inverse, grid);
    if (m.gain() <= best.gain()) return false;
    best = m;
    return true;
  };
  for (int k = -kSteps; k <= kSteps; ++k) {
    consider((lo + float(k) * step) / extreme);
    if (-lo != hi) consider((hi + float(k) * step) / extreme);
  }
  for (int r = 0; r < kRefinements; ++r) {
    if (!consider(inverse_or_zero(best.scale()))) break;
  }
  return best.scale();
}

}  // namespace

float fit_symmetric(const float* x, int n, int lo, int hi, const float* w) {
  const float low = float(lo), high = float(hi);
  // A step of the extreme code; coarse grids gain from a wider search.
  const float step = std::min(0.1f, float(hi) / 40);
  const auto grid = [=](float v) { return nearest_code(v, low, high); };
  return w != nullptr ? search_scale(x, n, w, low, high, step, grid)
                      : search_scale(x, n, Ones(), low, high, step, grid);
}

float fit_table(const float* x, int n, const TableGrid& table, const float* w) {
  const float lo = table.value(0), hi = table.value(15), step = hi / 60;
  const auto grid = [&](float v) { return table.value(table.nearest(v)); };
  return w != nullptr ? search_scale(x, n, w, lo, hi, step, grid)
                      : search_scale(x, n, Ones(), lo, hi, step, grid);
}

namespace {

template <class Weights>
Affine search_affine(const float* x, int n, Weights w, int hi, bool m_not_positive) {
  float low = x[0], high = x[0];
  for (int i = 1; i < n; ++i) low = std::min(low, x[i]), high = std::max(high, x[i]);
  if (m_not_positive) low = std::min(low, 0.0f);
  if (high - low < kTiny) return {0, low};
  if (high > kHuge || low < -kHuge) return {high / float(hi) - low / float(hi), low};

  // Work on x - low, so that a large common offset does not eat the precision of the sums.
  const float top = float(hi);
  float count = 0;
  for (int i = 0; i < n; ++i) count += w[i];
  float best_gain = -1;
  Affine best{0, 0};
  float sum_x = 0;
  for (int i = 0; i < n; ++i) sum_x += w[i] * (x[i] - low);
  const auto consider = [&](float inverse, float offset) {
    float q1[kLanes] = {}, q2[kLanes] = {}, xq[kLanes] = {};
    for (int i = 0; i < n; i += kLanes) {
      for (int l = 0; l < kLanes; ++l) {
        const float v = x[i + l] - low;
        const float q = nearest_code((v - offset) * inverse, 0, top);
        q1[l] += w[i + l] * q, q2[l] += w[i + l] * (q * q), xq[l] += w[i + l] * (v * q);
      }
    }
    const float sq = sum(q1), sqq = sum(q2), sxq = sum(xq);
    const float determinant = count * sqq - sq * sq;
    if (!(determinant > 0)) return false;
    float d = (count * sxq - sum_x * sq) / determinant;
    float m = (sqq * sum_x - sq * sxq) / determinant;
    if (m_not_positive && m + low > 0) {  // hold m at -low: then x itself is d*q
      m = -low;
      d = (sxq - m * sq) / sqq;
    }
    if (!(d > 0)) return false;
    // Squared error removed, for any (d, m): 2<x, dq+m> - |dq+m|^2, with sums over weighted elements.
    const float gain = 2 * (d * sxq + m * sum_x) - (d * d * sqq + 2 * d * m * sq + count * m * m);
    if (gain <= best_gain) return false;
    best_gain = gain, best = {d, m};
    return true;
  };
  const float range = high - low;
  // Coarse grids gain from leaving the ends out: the grid may cover as little as three quarters of the range.
  for (int a = -2; a <= 6; ++a) {
    for (int b = -1; b <= 3; ++b) {
      const float covered = range * (1 - 0.04f * float(a)), offset = range * 0.04f * float(b);
      consider(top / covered, offset);
    }
  }
  for (int r = 0; r < kRefinements; ++r) {
    if (!consider(inverse_or_zero(best.d), best.m)) break;
  }
  return {best.d, best.m + low};
}

template <class Weights>
float weighted_error(const float* x, int n, Weights w, float d, float m, float low, float high) {
  const float inverse = inverse_or_zero(d);
  float error[kLanes] = {};
  for (int i = 0; i < n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      const float e = x[i + l] - m - d * nearest_code((x[i + l] - m) * inverse, low, high);
      error[l] += w[i + l] * (e * e);
    }
  }
  return sum(error);
}

}  // namespace

Affine fit_affine(const float* x, int n, int hi, bool m_not_positive, const float* w) {
  return w != nullptr ? search_affine(x, n, w, hi, m_not_positive)
                      : search_affine(x, n, Ones(), hi, m_not_positive);
}

float affine_error(const float* x, int n, float d, float m, int lo, int hi, const float* w) {
  return w != nullptr ? weighted_error(x, n, w, d, m, float(lo), float(hi))
                      : weighted_error(x, n, Ones(), d, m, float(lo), float(hi));
}

}  // namespace rlx::quant
