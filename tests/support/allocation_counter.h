// Counts the allocations of a program. It replaces operator new and aligned_alloc, so one source of a test program includes it.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace rlx::test {
inline std::atomic<int64_t> allocations{0};
}

// Memory of tensors comes from here (rlx/base/aligned.h). Sanitizers have one of their own.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" void* __libc_memalign(size_t alignment, size_t bytes);
extern "C" [[gnu::noinline]] void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  rlx::test::allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, bytes);
}
#endif

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
[[gnu::noinline]] void* operator new(size_t bytes, std::align_val_t align) {
  const size_t a = size_t(align);
  if (void* p = std::aligned_alloc(a, (bytes + a) / a * a)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(size_t bytes, std::align_val_t align, const std::nothrow_t&) noexcept {
  const size_t a = size_t(align);
  return std::aligned_alloc(a, (bytes + a) / a * a);
}
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }
