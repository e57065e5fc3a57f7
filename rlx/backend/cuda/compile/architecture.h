// What the processors that an architecture names can do, as far as kernels are chosen by it.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

namespace rlx::cuda {

/// Hopper, by the name of its own code: matrix units of groups of warps, and kernels around its copy engine. Later
/// architectures have other ones.
inline constexpr std::string_view kHopper = "sm_90a";

/// 90 of "sm_90a"; 0 where it is no such name.
inline int architecture_number(std::string_view architecture) {
  constexpr std::string_view kPrefix = "sm_";
  int number = 0;
  if (!architecture.starts_with(kPrefix)) return 0;
  architecture.remove_prefix(kPrefix.size());
  std::from_chars(architecture.data(), architecture.data() + architecture.size(), number);
  return number;
}

/// Whether blocks of a cluster reach each other's shared memory.
inline bool has_clusters(std::string_view architecture) { return architecture_number(architecture) >= 90; }

/// Bytes of shared memory that a block may have: much on processors of servers.
inline int64_t shared_memory_of(std::string_view architecture) {
  const int n = architecture_number(architecture);
  if (n >= 90 && n < 110) return 227 << 10;
  return n == 80 || n == 87 ? 163 << 10 : 99 << 10;
}

}  // namespace rlx::cuda
