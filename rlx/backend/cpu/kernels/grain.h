// How much work is worth a second thread.
//
// A fork-join with workers that are awake costs 0.25 us (docs/performance/cpu.md), and the other core fetches what the first has in its
// cache. A part is therefore about what an L1 cache holds, 32 KiB: to read and write it takes a microsecond or two. Work that does
// less with an element than read it, compute a little and write it takes more of them, work that does more takes fewer.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rlx::cpu {

inline constexpr int64_t kGrainBytes = 32 << 10;
inline constexpr int64_t kGrain = kGrainBytes / 4;  // elements of f32
inline constexpr int64_t kLightGrain = 2 * kGrain;  // sums, casts: a part of a nanosecond each
inline constexpr int64_t kHeavyGrain = kGrain / 2;  // exponentials, random words, comparisons of a sort

/// Rows of n elements that are a part of `grain` elements.
constexpr int64_t rows_worth(int64_t grain, int64_t n) {
  return std::max<int64_t>(1, grain / std::max<int64_t>(1, n));
}

}  // namespace rlx::cpu
