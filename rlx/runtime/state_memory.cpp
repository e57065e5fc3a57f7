#include "rlx/runtime/state_memory.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "rlx/base/error.h"

namespace rlx::runtime {
namespace {

constexpr size_t kLine = 64, kHugePage = size_t(2) << 20;

constexpr size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

/// The memory of the host; what is allocated is cut from one block, in order. Deletes itself with its last part.
class StateMemory final : public backend::Memory {
 public:
  explicit StateMemory(size_t bytes) {
    const size_t alignment = bytes >= 2 * kHugePage ? kHugePage : kLine;
    block_ = bytes > SIZE_MAX - alignment ? nullptr : std::calloc(1, bytes + alignment);
    if (block_ == nullptr) throw environment_error("memory: none left, asked for ", bytes, " bytes");
    next_ = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<uintptr_t>(block_), alignment));
#ifdef MADV_HUGEPAGE
    // Advice: a refusal changes nothing.
    if (alignment == kHugePage) madvise(next_, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
  }
  ~StateMemory() override { std::free(block_); }

  bool on_host() const override { return true; }
  std::byte* allocate(size_t bytes) const override {
    parts_.fetch_add(1, std::memory_order_relaxed);
    std::byte* part = next_;
    next_ += round_up(bytes, kLine);
    return part;
  }
  void release(std::byte*) const noexcept override {
    if (parts_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  const Memory& staging() const override { return backend::host_memory(); }
  void upload(std::byte* to, const std::byte* from, size_t n) const override { copy(to, from, n); }
  void download(std::byte* to, const std::byte* from, size_t n) const override { copy(to, from, n); }
  void copy(std::byte* to, const std::byte* from, size_t n) const override {
    backend::host_memory().copy(to, from, n);
  }
  void clear(std::byte* at, size_t n) const override { backend::host_memory().clear(at, n); }

 private:
  void* block_ = nullptr;
  mutable std::byte* next_ = nullptr;
  mutable std::atomic<int> parts_{0};
};

}  // namespace

std::vector<SharedBlock> cleared_states(const backend::Memory& memory, std::span<const size_t> bytes) {
  std::vector<SharedBlock> states;
  states.reserve(bytes.size());
  if (bytes.empty()) return states;
  if (!memory.on_host()) {
    for (const size_t size : bytes) {
      states.emplace_back(backend::Block(memory, size));
      memory.clear(states.back().get(), size);
    }
    return states;
  }
  size_t all = 0;
  for (const size_t size : bytes) all += round_up(size, kLine);
  const auto* parts = new StateMemory(all);
  const backend::Block held(
      *parts, 0);  // while the parts are cut: one that is let go takes none of the others with it
  for (const size_t size : bytes) states.emplace_back(backend::Block(*parts, size));
  return states;
}

}  // namespace rlx::runtime
