// Whole parts of sizes.
#pragma once

#include <cstdint>

namespace rlx::cuda {

/// Parts of b that a has, the last one perhaps shorter.
constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
/// The least multiple of `to` that is not below x.
constexpr int64_t round_up(int64_t x, int64_t to) { return ceil_div(x, to) * to; }

}  // namespace rlx::cuda
