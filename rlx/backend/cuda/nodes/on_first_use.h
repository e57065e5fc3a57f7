// Kernels for addresses that few programs have. Which addresses a step meets is known when it runs: the kernel for aligned ones is made with the program, the one
// for any address when it is first needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <mutex>

namespace rlx::cuda {

inline constexpr size_t kVectorBytes = 16;  // what one thread loads at once at most

inline bool is_aligned(const std::byte* address, size_t bytes = kVectorBytes) {
  return reinterpret_cast<uintptr_t>(address) % bytes == 0;
}
inline bool are_aligned(std::initializer_list<const std::byte*> addresses) {
  for (const std::byte* const a : addresses) {
    if (!is_aligned(a)) return false;
  }
  return true;
}

/// A value that is made at its first use, by whichever thread comes first.
template <class T>
class OnFirstUse {
 public:
  template <class Make>
  const T& get(const Make& make) const {
    std::call_once(once_, [&] { value_ = make(); });
    return value_;
  }

 private:
  mutable std::once_flag once_;
  mutable T value_;
};

}  // namespace rlx::cuda
