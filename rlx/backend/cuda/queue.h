// Work for the GPU in order: steps are launched, and what was run twice is recorded as one graph and
// repeated from then on.
#pragma once

#include "rlx/backend/cuda/chain.h"
#include "rlx/backend/cuda/driver/gpu.h"
#include "rlx/backend/executable.h"
#include "rlx/backend/marks.h"

namespace rlx::cuda {

/// What Launch::stream points to.
struct Stream {
  const Gpu& gpu;
  Stream_* handle = nullptr;
  /// A word that kernels set when an operand is wrong: see fault.h. Memory of the host that the GPU writes.
  uint64_t* fault = nullptr;
  /// While a program is recorded: steps that wait to become one kernel.
  Chain* chain = nullptr;
};
/// What waits is queued first.
inline Stream& stream_of(const backend::Launch& l) {
  Stream& s = *static_cast<Stream*>(l.stream);
  if (s.chain) s.chain->end(s.handle);
  return s;
}
/// Where a step that has a phase waits, or null.
inline Chain* chain_of(const backend::Launch& l) { return static_cast<Stream*>(l.stream)->chain; }

class GpuQueue final : public backend::Queue, public backend::Marks {
 public:
  GpuQueue(const Gpu& gpu, Functions& functions);
  ~GpuQueue() override;
  GpuQueue(const GpuQueue&) = delete;
  GpuQueue& operator=(const GpuQueue&) = delete;

  void upload(std::byte* to, const std::byte* from, size_t bytes) override;
  void download(std::byte* to, const std::byte* from, size_t bytes) override;
  void run(const backend::Executable&, const backend::Frame&) override;
  void wait() override;
  uint64_t mark() override;
  void wait_for(uint64_t mark) override;

  /// Steps that were recorded as parts of one kernel so far; why the driver took no such kernel, or nothing.
  size_t chained() const { return chain_ ? chain_->chained() : 0; }
  const std::string& chain_problem() const { return chain_problem_; }

 private:
  /// A program on fixed addresses.
  struct Recording {
    uint64_t program = 0;
    std::vector<const void*> bases;
    GraphExec_* graph = nullptr;  // null until it is run for the second time
    bool refused = false;         // the driver could not record it: it is launched step by step
    uint64_t used = 0;
  };
  static constexpr size_t kRecordings = 32;
  static constexpr size_t kMarks = 4;  // that are known

  Recording& recording_of(const backend::Executable&, const backend::Frame&, bool& known);
  GraphExec_* record(const backend::Executable&, const backend::Frame&);
  GraphExec_* record_as_it_is(const backend::Executable&, const backend::Frame&, Chain*);
  void forget(Recording&);
  void check_work(Result) const;
  void throw_fault();

  Stream stream_;
  Functions& functions_;
  backend::Block fault_;
  backend::Block meeting_;
  std::unique_ptr<Chain> chain_;
  std::string chain_problem_;
  std::vector<std::byte*> addresses_;
  std::vector<Recording> recordings_;
  std::vector<const void*> bases_;  // of the run in progress
  uint64_t runs_ = 0, marks_ = 0;
  Event_* events_[kMarks] = {};  // of the last marks
  std::string graph_;            // that was run last
};

}  // namespace rlx::cuda
