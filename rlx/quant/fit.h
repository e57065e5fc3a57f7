// Scale search shared by the encoders: least squared error of a block on a grid of codes.
//
// For fixed codes q the best scale is a least-squares problem with a closed form; for a fixed scale the best
// codes are the nearest ones. The search starts from several scales around the one that maps the largest
// value to the end of the grid, takes the best after one least-squares step, then alternates the two until
// nothing improves. All functions want finite input and a length that is a multiple of 8.
// `w` weighs the squared error of each element; null: all alike.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rlx::quant {

/// Nearest integer, half to even, for |v| < 2^22. Vectorises, unlike std::nearbyint on plain x86-64.
inline float round_even(float v) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: the sum has no fraction bits left
  return (v + kShift) - kShift;
}

inline float nearest_code(float v, float lo, float hi) { return round_even(std::min(std::max(v, lo), hi)); }

/// 1/d, or 0 for a scale too small to divide by: then every code is the one nearest to zero.
inline float inverse_or_zero(float d) { return d > 1e-30f || d < -1e-30f ? 1 / d : 0.0f; }

/// x ~ d * q with whole q in [lo, hi]. d may be negative: an uneven range is turned to suit the block.
float fit_symmetric(const float* x, int n, int lo, int hi, const float* w = nullptr);

struct Affine {
  float d, m;
};
/// x ~ d * q + m with whole q in [0, hi] and d >= 0; m <= 0 when asked, for formats that subtract a
/// non-negative minimum.
Affine fit_affine(const float* x, int n, int hi, bool m_not_positive, const float* w = nullptr);

/// A grid of 16 ascending whole values within [-128, 127], with the nearest one found by look-up: midpoints
/// are multiples of 1/2, so the cell [k/2, (k+1)/2) has one answer.
class TableGrid {
 public:
  constexpr explicit TableGrid(const int8_t (&table)[16]) {
    int entry = 0;
    for (int k = 0; k < kCells; ++k) {
      while (entry < 15 && k - kZero >= table[entry] + table[entry + 1]) ++entry;
      nearest_[k] = uint8_t(entry);
    }
    for (int i = 0; i < 16; ++i) value_[i] = table[i];
  }
  int nearest(float v) const {
    const float cell = std::min(std::max(2 * v + float(kZero), 0.0f), float(kCells - 1));
    return nearest_[int(cell)];
  }
  float value(int entry) const { return value_[entry]; }

 private:
  static constexpr int kCells = 512, kZero = 256;
  uint8_t nearest_[kCells] = {};
  float value_[16] = {};
};

/// x ~ d * value of an entry.
float fit_table(const float* x, int n, const TableGrid&, const float* w = nullptr);

/// Sum of w (x - d*q - m)^2 over nearest codes q in [lo, hi].
float affine_error(const float* x, int n, float d, float m, int lo, int hi, const float* w = nullptr);

}  // namespace rlx::quant
