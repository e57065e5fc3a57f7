#include "rlx/backend/cuda/driver/gpu.h"

#include <algorithm>
#include <cstring>

#include "rlx/base/error.h"

namespace rlx::cuda {
namespace {

// Attributes of CUdevice_attribute.
constexpr int kMultiprocessorCount = 16, kMajor = 75, kMinor = 76;
constexpr int kOldestMajor = 8;  // what the kernels are written for: asynchronous copies, bf16
constexpr size_t kWord = 16;     // kernels read whole words, also that of the last byte of packed weights

/// Memory of the GPU itself.
class GpuMemory final : public backend::Memory {
 public:
  GpuMemory(const Gpu& gpu, const backend::Memory& staging) : gpu_(gpu), staging_(staging) {}

  std::byte* allocate(size_t bytes) const override {
    const Driver& d = gpu_.use();
    DevicePointer p = 0;
    const size_t whole = (bytes / kWord + 1) * kWord;
    const Result r = d.MemAlloc(&p, whole);
    if (r != 0) {
      size_t free = 0, total = 0;
      d.MemGetInfo(&free, &total);
      throw environment_error("cuda: no memory for ", bytes, " bytes; ", free, " of ", total, " are free on ",
                              gpu_.name());
    }
    // Kernels read packed weights by words, the last of which may end behind them: no result depends on it, but it is no unwritten memory.
    check(d.MemsetD8(p + bytes, 0, whole - bytes), "a fill on the GPU");
    return reinterpret_cast<std::byte*>(p);
  }
  void release(std::byte* p) const noexcept override { gpu_.use().MemFree(device_pointer(p)); }
  const backend::Memory& staging() const override { return staging_; }
  void upload(std::byte* to, const std::byte* from, size_t n) const override {
    if (n > 0) finish(gpu_.use().MemcpyHtoD(device_pointer(to), from, n), "a copy to the GPU");
  }
  void download(std::byte* to, const std::byte* from, size_t n) const override {
    if (n > 0) check(gpu_.use().MemcpyDtoH(to, device_pointer(from), n), "a copy from the GPU");
  }
  void copy(std::byte* to, const std::byte* from, size_t n) const override {
    if (n > 0)
      finish(gpu_.use().MemcpyDtoD(device_pointer(to), device_pointer(from), n), "a copy on the GPU");
  }
  void clear(std::byte* at, size_t n) const override {
    if (n > 0) finish(gpu_.use().MemsetD8(device_pointer(at), 0, n), "a fill on the GPU");
  }

 private:
  // The driver returns before a fill, a copy on the GPU or a small copy to it has ended, and streams of queues do not wait for the one it uses.
  void finish(Result r, const char* what) const {
    check(r, what);
    check(gpu_.use().StreamSynchronize(nullptr), what);
  }

  const Gpu& gpu_;
  const backend::Memory& staging_;
};

/// Memory of the host that is never moved, so that the GPU copies it without help.
class PinnedMemory final : public backend::Memory {
 public:
  explicit PinnedMemory(const Gpu& gpu) : gpu_(gpu) {}

  bool on_host() const override { return true; }
  std::byte* allocate(size_t bytes) const override {
    void* p = nullptr;
    check(gpu_.use().MemHostAlloc(&p, std::max<size_t>(bytes, 1), 0), "an allocation of pinned memory");
    return static_cast<std::byte*>(p);
  }
  void release(std::byte* p) const noexcept override { gpu_.use().MemFreeHost(p); }
  const backend::Memory& staging() const override { return *this; }
  void upload(std::byte* to, const std::byte* from, size_t n) const override { copy(to, from, n); }
  void download(std::byte* to, const std::byte* from, size_t n) const override { copy(to, from, n); }
  void copy(std::byte* to, const std::byte* from, size_t n) const override { std::memcpy(to, from, n); }
  void clear(std::byte* at, size_t n) const override { std::memset(at, 0, n); }

 private:
  const Gpu& gpu_;
};

}  // namespace

Gpu::Gpu() : driver_(driver()) {
  int count = 0;
  check(driver_.DeviceGetCount(&count), "counting devices");
  if (count == 0) throw environment_error("cuda: no CUDA device: the driver knows none");
  DeviceNumber number = 0;
  check(driver_.DeviceGet(&number, 0), "asking for device 0");
  char name[256] = {};
  check(driver_.DeviceGetName(name, sizeof name, number), "asking for a name");
  name_ = name;
  check(driver_.DeviceGetAttribute(&major_, kMajor, number), "asking for a capability");
  check(driver_.DeviceGetAttribute(&minor_, kMinor, number), "asking for a capability");
  check(driver_.DeviceGetAttribute(&multiprocessors_, kMultiprocessorCount, number), "asking for processors");
  check(driver_.DriverGetVersion(&driver_version_), "asking for a version");
  if (major_ < kOldestMajor)
    throw environment_error("cuda: no CUDA device: ", name_, " has compute capability ", major_, ".", minor_,
                            "; ", kOldestMajor, ".0 or newer is needed");
  check(driver_.DevicePrimaryCtxRetain(&context_, number), "opening a context");
  staging_ = std::make_unique<PinnedMemory>(*this);
  memory_ = std::make_unique<GpuMemory>(*this, *staging_);
}

const Gpu& Gpu::first() {
  // Never destroyed: memory may be released by objects that live until the process ends.
  static const Gpu* const gpu = new Gpu();
  return *gpu;
}

const Driver& Gpu::use() const {
  driver_.CtxSetCurrent(context_);
  return driver_;
}

}  // namespace rlx::cuda
