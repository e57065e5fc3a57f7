// One GPU: what it is, its context, its memory.
#pragma once

#include "rlx/backend/cuda/driver/driver.h"
#include "rlx/backend/memory.h"

namespace rlx::cuda {

class Gpu {
 public:
  /// The first GPU, opened at the first call; an environment error that says why there is none.
  static const Gpu& first();

  const std::string& name() const { return name_; }
  int major() const { return major_; }
  int minor() const { return minor_; }
  int multiprocessors() const { return multiprocessors_; }
  int driver_version() const { return driver_version_; }  // 13000: 13.0
  /// Makes its context the one of the calling thread. Every way into the driver begins with it.
  const Driver& use() const;
  Context_* context() const { return context_; }
  const backend::Memory& memory() const { return *memory_; }

 private:
  Gpu();

  const Driver& driver_;
  std::string name_;
  int major_ = 0, minor_ = 0, multiprocessors_ = 0, driver_version_ = 0;
  Context_* context_ = nullptr;
  std::unique_ptr<backend::Memory> memory_, staging_;
};

inline DevicePointer device_pointer(const void* p) { return reinterpret_cast<DevicePointer>(p); }

}  // namespace rlx::cuda
