#include "rlx/base/aligned.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "rlx/base/error.h"

namespace rlx {
namespace {

constexpr size_t kLine = 64, kHugePage = size_t(2) << 20;

constexpr size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

void FreeAligned::operator()(std::byte* p) const { std::free(p); }

AlignedBytes allocate_aligned(size_t bytes) {
  const bool large = bytes >= 2 * kHugePage;
  const size_t alignment = large ? kHugePage : kLine;
  // Only whole huge pages are asked for; the tail of a large block stays with small ones.
  void* p = bytes > SIZE_MAX - kHugePage
                ? nullptr
                : std::aligned_alloc(alignment, std::max(alignment, round_up(bytes, alignment)));
  if (p == nullptr) throw environment_error("memory: none left, asked for ", bytes, " bytes");
#ifdef MADV_HUGEPAGE
  if (large) madvise(p, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);  // advice: a refusal changes nothing
#endif
  return AlignedBytes(static_cast<std::byte*>(p));
}

int64_t machine_memory() {
  static const int64_t bytes = int64_t(sysconf(_SC_PHYS_PAGES)) * int64_t(sysconf(_SC_PAGE_SIZE));
  return bytes;
}

}  // namespace rlx
