// Counts the allocations of a program. It replaces operator new, so one source of a test program includes it.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace rlx::test {
inline std::atomic<int64_t> allocations{0};
}

// Not inlined: the compiler would see malloc on one side and operator delete on the other, and warn.
[[gnu::noinline]] void* operator new(size_t bytes) {
  rlx::test::allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(bytes > 0 ? bytes : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  rlx::test::allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes > 0 ? bytes : 1);
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }
