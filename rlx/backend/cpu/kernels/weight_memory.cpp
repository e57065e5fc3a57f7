#include "rlx/backend/cpu/kernels/weight_memory.h"

#include <mutex>

#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/aligned.h"

namespace rlx::cpu {
namespace {

// Only touched pages of a region take memory, 2 MiB at a time.
constexpr size_t kRegion = size_t(16) << 20, kSmallest = size_t(64) << 10, kLargest = size_t(4) << 20;

struct Region {
  AlignedBytes bytes = allocate_aligned(kRegion);
  size_t used = 0;  // guarded by the lock below
};

}  // namespace

std::shared_ptr<std::byte> allocate_weights(size_t bytes) {
  if (bytes < kSmallest || bytes >= kLargest) {
    const auto own = std::make_shared<AlignedBytes>(allocate_aligned(bytes));
    return {own, own->get()};
  }
  static std::mutex lock;
  static std::weak_ptr<Region> last;
  const std::lock_guard guard(lock);
  std::shared_ptr<Region> region = last.lock();
  if (!region || region->used + bytes > kRegion) {
    region = std::make_shared<Region>();
    last = region;
  }
  std::byte* at = region->bytes.get() + region->used;
  region->used += round_up(bytes);
  return {region, at};
}

}  // namespace rlx::cpu
