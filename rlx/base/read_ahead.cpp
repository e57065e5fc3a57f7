#include "rlx/base/read_ahead.h"

#include <atomic>
#include <cstdint>

namespace rlx {
namespace {

constexpr uintptr_t kLine = 64, kPiece = 8 * kLine;

// A pair that was torn between two announcements asks for lines that nobody wants, and nothing else.
struct alignas(kLine) Announced {
  std::atomic<uintptr_t> at{0}, end{0};
};
Announced announced;

}  // namespace

void announce_read(const void* at, size_t bytes) noexcept {
  const auto first = reinterpret_cast<uintptr_t>(at);
  announced.end.store(0, std::memory_order_relaxed);
  announced.at.store(first, std::memory_order_relaxed);
  announced.end.store(first + bytes, std::memory_order_relaxed);
}

bool read_announced() noexcept {
  const uintptr_t end = announced.end.load(std::memory_order_relaxed);
  if (announced.at.load(std::memory_order_relaxed) >= end) return false;
  const uintptr_t from = announced.at.fetch_add(kPiece, std::memory_order_relaxed);
  // Into the second cache: the first has what the next steps work on. A prefetch of an address that is none does nothing.
  for (uintptr_t line = from; line < from + kPiece && line < end; line += kLine)
    __builtin_prefetch(reinterpret_cast<const void*>(line), 0, 2);
  return true;
}

}  // namespace rlx
