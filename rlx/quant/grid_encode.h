// Encoding into codebooks. For a given scale the best point of a word is the nearest one; for given points the
// best scale is a least-squares problem. So, as in fit.h: several starting scales for each run, the two steps
// in turn from the best of them, then the scales of the runs are rounded to d (2s + 1) unit and the points
// picked again.
//
// Nearest points: each element is rounded to its nearest level, which names a cell of base^width. Where the
// cell is a point, it is the answer; else one of the points nearest to the cell is. Weights of elements count in distances and sums.
//
// Plain numbers only: it is compiled for GPUs too (rlx/backend/cuda/nodes/encode_blocks.cpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "rlx/quant/fit.h"
#include "rlx/quant/grid.h"

namespace rlx::quant {

inline constexpr int kGridCandidates = 16;
inline constexpr int kRunRefinements = 4, kBlockRefinements = 3;

/// A codebook with the kGridCandidates nearest points of every cell.
class GridBook {
 public:
  GridBook(const GridFormat& f, const uint16_t* candidates) : format_(f), candidates_(candidates) {
    for (size_t i = 0; i + 1 < f.levels.size(); ++i)
      between_[i] = 0.5f * float(f.levels[i] + f.levels[i + 1]);
  }

  /// The point nearest to v[0 .. width), with weights w of its elements.
  int nearest(const float* v, const float* w) const {
    const int base = int(format_.levels.size());
    int cell = 0;
    for (int j = format_.width; j-- > 0;) {
      int digit = 0;
      for (int i = 0; i + 1 < base; ++i) digit += v[j] > between_[i];
      cell = cell * base + digit;
    }
    const uint16_t* candidates = candidates_ + cell * kGridCandidates;
    if (format_.points[candidates[0]] == cell) return candidates[0];
    int best = 0;
    float least = std::numeric_limits<float>::infinity();
    for (int i = 0; i < kGridCandidates; ++i) {
      const int8_t* g = point(candidates[i]);
      float distance = 0;
      for (int j = 0; j < format_.width; ++j)
        distance += w[j] * ((v[j] - float(g[j])) * (v[j] - float(g[j])));
      if (distance < least) least = distance, best = candidates[i];
    }
    return best;
  }

  const GridFormat& format() const { return format_; }
  const int8_t* point(int index) const { return &format_.numbers[size_t(index * format_.width)]; }

 private:
  const GridFormat& format_;
  const uint16_t* candidates_;
  float between_[7];  // the limits of the cells along one element
};

// Points and signs of up to 32 elements, and the sums that say how well they fit.
struct GridChoice {
  uint16_t index[8];
  uint8_t signs[4];
  float xg = 0, gg = 0;  // weighted sums of x * number and of number^2

  float scale() const { return gg > 0 ? xg / gg : 0.0f; }
  float gain() const { return gg > 0 && xg > 0 ? xg * xg / gg : 0.0f; }  // error removed by that scale
  float gain_at(float scale) const { return scale * (2 * xg - scale * gg); }
};

class GridEncoder {
 public:
  explicit GridEncoder(const GridBook& book) : format_(book.format()), book_(book) {}

  void encode(const float* in, const float* weights, std::byte* out) {
    for (int e = 0; e < 256; ++e) w_[e] = weights != nullptr ? weights[e] : 1.0f;
    // What d cannot reach is stored as the largest it can; this also keeps the sums below in range.
    const float top = 65504.0f * float(2 * format_.scales - 1) * format_.unit * largest_number();
    for (int e = 0; e < 256; ++e) x_[e] = std::min(std::max(in[e], -top), top);
    GridCodes codes{};
    float largest = 0;
    for (int r = 0; r < runs(); ++r) {
      scales_[r] = search_scale(x_ + r * format_.run, w_ + r * format_.run);
      largest = std::max(largest, scales_[r]);
    }
    codes.d = Half::saturated(largest / (format_.unit * float(2 * format_.scales - 1)));
    float best = round_runs(codes);
    for (int i = 0; i < kBlockRefinements; ++i) {
      GridCodes next = codes;
      next.d = Half::saturated(block_scale_);
      const float gain = round_runs(next);
      if (gain <= best) break;
      best = gain, codes = next;
    }
    if (codes.d.value() == 0) codes = GridCodes{};
    format_.put_together(codes, out);
  }

 private:
  int runs() const { return 256 / format_.run; }
  float largest_number() const { return float(format_.levels.back() + (format_.has_signs() ? 0 : 1)); }

  // One octet with the given sign of the shift; adds to the sums.
  void choose_octet(const float* x, const float* w, float inverse, bool negative_shift, uint16_t* index,
                    uint8_t& signs, float& xg, float& gg) const {
    float v[8];
    float shift = 0;
    if (format_.has_signs()) {
      signs = signs_of(x, w);
      for (int j = 0; j < 8; ++j) v[j] = signs >> j & 1 ? -x[j] : x[j];
    } else {
      signs = negative_shift ? 0xff : 0;
      shift = negative_shift ? -1.0f : 1.0f;
      std::memcpy(v, x, sizeof v);
    }
    for (int first = 0; first < 8; first += format_.width) {
      float scaled[8];
      for (int j = 0; j < format_.width; ++j) scaled[j] = v[first + j] * inverse - shift;
      const int point = book_.nearest(scaled, w + first);
      index[first / format_.width] = uint16_t(point);
      const int8_t* g = book_.point(point);
      for (int j = 0; j < format_.width; ++j) {
        const float number = float(g[j]) + shift;
        xg += w[first + j] * (v[first + j] * number);
        gg += w[first + j] * (number * number);
      }
    }
  }

  // A sign that must turn is that of the element with the least weighted square.
  uint8_t signs_of(const float* x, const float* w) const {
    int signs = 0, smallest = 0;
    bool odd = false;
    for (int j = 0; j < 8; ++j) {
      if (x[j] < 0) signs |= 1 << j, odd = !odd;
      if (w[j] * (x[j] * x[j]) < w[smallest] * (x[smallest] * x[smallest])) smallest = j;
    }
    return uint8_t(format_.even_signs && odd ? signs ^ 1 << smallest : signs);
  }

  // The points of one run at a scale.
  GridChoice choose(const float* x, const float* w, float scale) const {
    GridChoice c;
    const float inverse = inverse_or_zero(scale);
    const int together = format_.has_signs() ? 8 : format_.shifted, points = 8 / format_.width;
    for (int first = 0; first < format_.run; first += together) {
      GridChoice sides[2];
      const int tried = format_.has_signs() ? 1 : 2;
      for (int side = 0; side < tried; ++side) {
        GridChoice& s = sides[side];
        for (int i = first / 8; i < (first + together) / 8; ++i) {
          choose_octet(x + 8 * i, w + 8 * i, inverse, side == 1, s.index + i * points, s.signs[i], s.xg,
                       s.gg);
        }
      }
      const GridChoice& s = sides[tried == 2 && sides[1].gain_at(scale) > sides[0].gain_at(scale) ? 1 : 0];
      for (int i = first / 8; i < (first + together) / 8; ++i) {
        std::copy_n(s.index + i * points, points, c.index + i * points);
        c.signs[i] = s.signs[i];
      }
      c.xg += s.xg, c.gg += s.gg;
    }
    return c;
  }

  // The largest element is at some level: try each, and scales around those.
  float search_scale(const float* x, const float* w) const {
    float largest = 0;
    for (int j = 0; j < format_.run; ++j) largest = std::max(largest, std::abs(x[j]));
    if (largest < 1e-30f) return 0;
    GridChoice best;
    const auto consider = [&](float scale) {
      const GridChoice c = choose(x, w, scale);
      if (c.gain() <= best.gain()) return false;
      best = c;
      return true;
    };
    const float top = largest_number();
    for (int k = -4; k <= 8; ++k) consider(largest / (top * (1 + 0.05f * float(k))));
    for (const int8_t level : format_.levels) {
      if (level > 0 && float(level) < top) consider(largest / float(level));
    }
    for (int i = 0; i < kRunRefinements; ++i) {
      if (!consider(best.scale())) break;
    }
    return best.scale();
  }

  // The best s of each run for the d of `codes`, with its points. Returns the squared error removed, and
  // leaves the d that would suit this choice best in block_scale_.
  float round_runs(GridCodes& codes) {
    const float d = codes.d.value();
    float removed = 0, xg = 0, gg = 0;
    for (int r = 0; r < runs(); ++r) {
      const float* x = x_ + r * format_.run;
      GridChoice best;
      int best_s = 0;
      float most = -std::numeric_limits<float>::infinity();
      // Rounding the scale moves the optimum: look at the neighbours too.
      const float multiple_of_d = scales_[r] * inverse_or_zero(d) / format_.unit;
      const int middle = int(nearest_code(0.5f * (multiple_of_d - 1), 0, float(format_.scales - 1)));
      for (int s = std::max(middle - 1, 0); s <= std::min(middle + 1, format_.scales - 1); ++s) {
        const float scale = d * (format_.unit * float(2 * s + 1));
        const GridChoice c = choose(x, w_ + r * format_.run, scale);
        if (c.gain_at(scale) > most) most = c.gain_at(scale), best = c, best_s = s;
      }
      store(best, best_s, r, codes);
      const float multiple = format_.unit * float(2 * best_s + 1);
      removed += most, xg += multiple * best.xg, gg += multiple * multiple * best.gg;
    }
    block_scale_ = gg > 0 ? xg / gg : 0.0f;
    return removed;
  }

  void store(const GridChoice& c, int s, int r, GridCodes& codes) const {
    const int points = format_.run / format_.width, octets = format_.run / 8;
    std::copy_n(c.index, points, codes.index + r * points);
    std::copy_n(c.signs, octets, codes.signs + r * octets);
    for (int i = 0; i < format_.run / 16; ++i) codes.scale[r * format_.run / 16 + i] = uint8_t(s);
  }

  const GridFormat& format_;
  const GridBook& book_;
  float x_[256], w_[256];
  float scales_[16];  // of the runs, before they are rounded
  float block_scale_ = 0;
};

}  // namespace rlx::quant
