// Where buffers lie in an arena.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rlx::passes {

/// A buffer that is in use from step `first` to step `last`, both included.
struct Lifetime {
  int64_t bytes = 0;
  int first = 0, last = 0;
};

struct Placement {
  std::vector<int64_t> offsets;  // one per buffer, multiples of the alignment
  int64_t bytes = 0;             // of the arena
  int64_t live_bytes = 0;        // the largest sum of sizes in use at one step: no placement needs less
};

/// Offsets such that buffers in use at the same step do not overlap. The smallest of several orders is taken: by size
/// (largest first), and by time with first fit, so the arena is never larger than that of first fit.
/// Time O(n^2) with a small factor: 10,000 buffers take about 0.2 s.
Placement place_buffers(std::span<const Lifetime> buffers, int64_t alignment = 64);

}  // namespace rlx::passes
