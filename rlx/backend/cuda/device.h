// An NVIDIA GPU as a backend.
#pragma once

#include "rlx/backend/backend.h"
#include "rlx/backend/choosing.h"
#include "rlx/backend/cuda/compile/architecture.h"
#include "rlx/backend/cuda/compile/function.h"
#include "rlx/backend/cuda/driver/gpu.h"
#include "rlx/backend/grouping.h"

namespace rlx::cuda {

class Device final : public backend::Backend, public backend::Grouping, public backend::Choosing {
 public:
  /// Without a GPU it compiles what programs need and runs nothing.
  Device(std::string architecture, const Gpu* gpu);

  /// "cuda", or "cuda:sm_90a" without a GPU.
  std::string_view name() const override { return name_; }
  std::string description() const override;
  std::unique_ptr<backend::Step> prepare(const backend::Kernel&, const backend::Request&) const override;
  std::unique_ptr<backend::Step> prepare_copy(const backend::Arg& from, const backend::Arg& to,
                                              int threads) const override;
  std::optional<ir::Graph> grouped(const ir::Graph&) const override;
  std::shared_ptr<const backend::Executable> with_choices(const Make&) const override;
  const backend::Memory& memory() const override;
  std::unique_ptr<backend::Queue> make_queue() const override;

  Functions& functions() const { return functions_; }
  const Gpu* gpu() const { return gpu_; }
  /// Bytes that a block may have.
  int64_t shared_memory() const { return shared_memory_of(functions_.architecture()); }
  /// Of its GPU; of an H200 where there is none.
  int multiprocessors() const { return gpu_ ? gpu_->multiprocessors() : 132; }

 private:
  std::string name_;
  mutable Functions functions_;
  const Gpu* gpu_;
};

/// The first GPU of this machine, opened at the first call; an environment error that says why there is none.
const Device& device();
/// One that builds programs for an architecture, "sm_90a", and runs nothing; a user error for one that no kernel is written for.
const Device& device_for(std::string_view architecture);
/// Why there is no device, or nothing when there is one.
std::string device_problem();

}  // namespace rlx::cuda
