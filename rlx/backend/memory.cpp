#include "rlx/backend/memory.h"

#include <algorithm>
#include <cstring>

#include "rlx/backend/executable.h"
#include "rlx/base/aligned.h"

namespace rlx::backend {
namespace {

class HostMemory final : public Memory {
 public:
  bool on_host() const override { return true; }
  std::byte* allocate(size_t bytes) const override {
    return allocate_aligned(std::max<size_t>(bytes, 1)).release();
  }
  void release(std::byte* p) const noexcept override { FreeAligned()(p); }
  const Memory& staging() const override { return *this; }
  void upload(std::byte* to, const std::byte* from, size_t n) const override { copy(to, from, n); }
  void download(std::byte* to, const std::byte* from, size_t n) const override { copy(to, from, n); }
  void copy(std::byte* to, const std::byte* from, size_t n) const override {
    if (n > 0) std::memcpy(to, from, n);
  }
  void clear(std::byte* at, size_t n) const override {
    if (n > 0) std::memset(at, 0, n);
  }
};

class HostQueue final : public Queue {
 public:
  void upload(std::byte* to, const std::byte* from, size_t n) override { host_memory().copy(to, from, n); }
  void download(std::byte* to, const std::byte* from, size_t n) override { host_memory().copy(to, from, n); }
  void run(const Executable& program, const Frame& frame) override { program.run(frame); }
  void wait() override {}
};

}  // namespace

const Memory& host_memory() {
  static const HostMemory memory;
  return memory;
}

std::unique_ptr<Queue> make_host_queue() { return std::make_unique<HostQueue>(); }

}  // namespace rlx::backend
