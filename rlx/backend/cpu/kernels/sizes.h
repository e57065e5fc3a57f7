// Arithmetic of sizes shared by the kernels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rlx::cpu {

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Up to a whole cache line, so that what follows in a workspace stays aligned.
constexpr size_t round_up(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace rlx::cpu
