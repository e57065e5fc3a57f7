// Sums of codes to codes, rounded as if by exact arithmetic.
#pragma once

#include "rlx/backend/cpu/simd/vec.h"

namespace rlx::cpu::RLX_ISA {

/// Halves away from zero: floor(|v| + 0.5) with the sign of v.
RLX_INLINE F64 half_away(F64 v) {
  const F64 y = abs(v) + 0.5, near = round_small(y), whole = near > y ? near - 1.0 : near;
  return (F64)((I64)whole | ((I64)v & INT64_MIN));
}

/// round(sum * scale), clamped to [least, most], which are whole numbers: clamping first gives the same code
/// and keeps the rounding in range.
///
/// Most codes come out of f32: three roundings of 2^-24 move a value below kMostCode by less than half of
/// kMargin, so unless it lies that near to a half the nearest whole number is the one f64 would find. The
/// others, and all exact halves, are done again in f64.
struct ExactCodes {
  static constexpr double kMostCode = 2048, kMargin = 0x1p-11, kMostScale = 0x1p60;
  double least, most;
  bool away;

  /// Two vectors of f64 for each of f32.
  struct Scales {
    F64 low, high;
    F32 narrow;
    bool is_narrow;
  };
  RLX_INLINE Scales scales(F64 low, F64 high) const {
    bool narrow = least > -kMostCode && most < kMostCode;
    for (int j = 0; j < kLanes64; ++j) {
      narrow = narrow && low[j] > -kMostScale && low[j] < kMostScale;
      narrow = narrow && high[j] > -kMostScale && high[j] < kMostScale;
    }
    return {low, high, to_float(F64Pair{low, high}), narrow};
  }
  RLX_INLINE I32 codes(I32 sum, const Scales& s) const {
    if (s.is_narrow) {
      const F32 x = min(max(to_float(sum) * s.narrow, set1(float(least))), set1(float(most)));
      const F32 distance = abs(x - round_small(x));
      if (mask_bits((I32)(distance > float(0.5 - kMargin))) == 0) return round_to_int(x);
    }
    const auto code = [&](F64 v, F64 by) {
      const F64 clamped = min(max(v * by, set1(least)), set1(most));
      return away ? half_away(clamped) : clamped;
    };
    const F64Pair wide = to_double(sum);
    return round_to_int(F64Pair{code(wide.low, s.low), code(wide.high, s.high)});
  }
};

}  // namespace rlx::cpu::RLX_ISA
