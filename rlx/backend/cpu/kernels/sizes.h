// Arithmetic of sizes shared by the kernels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rlx::cpu {

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Up to a whole cache line, so that what follows in a workspace stays aligned.
constexpr size_t round_up(size_t bytes) { return (bytes + 63) / 64 * 64; }

/// Whether a pass that reads and writes so many bytes should write its result past the caches: they cannot
/// all stay there, and the read of each line before its write is saved.
constexpr bool too_large_for_caches(int64_t bytes_moved) { return bytes_moved >= int64_t(32) << 20; }

/// The same for a result y that is written in whole vectors from its start: streaming needs aligned lines.
inline bool may_stream(const void* y, int64_t bytes_moved) {
  return too_large_for_caches(bytes_moved) && reinterpret_cast<uintptr_t>(y) % 64 == 0;
}

}  // namespace rlx::cpu
