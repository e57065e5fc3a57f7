// The body of a loop or branch, built and ready to run inside a step.
#pragma once

#include "rlx/backend/builder.h"

namespace rlx::backend {

class Body {
 public:
  /// `operand_of_leaf`: for each leaf of the body the operand of the step that it always is, -1 where it changes from run to
  /// run. Weights among those stay weights inside: forms that the body's steps ask for are added to the packings of the
  /// step, from number `step.packings.size()` on.
  Body(const Request&, const ir::Graph& body, const std::vector<int>& operand_of_leaf, Step& step);

  size_t leaves() const { return leaves_; }
  size_t outputs() const { return outputs_.size(); }
  const Shape& output(size_t i) const { return outputs_[i]; }
  const Plan& plan() const { return program_->plan(); }
  /// Bytes of workspace: its arena and room for the addresses of leaves and outputs.
  size_t workspace() const;

  /// Where to put addresses before `run`, inside the workspace that was given.
  std::byte** leaf_addresses(std::byte* workspace) const;
  std::byte** output_addresses(std::byte* workspace) const { return leaf_addresses(workspace) + leaves_; }
  /// `which`: for whoever looks at the steps inside.
  void run(const Launch& launch, std::byte* workspace, const BodyRun& which) const;

 private:
  std::shared_ptr<const Executable> program_;
  size_t leaves_ = 0, first_packing_ = 0;
  std::vector<Shape> outputs_;
};

/// Asks whether the observer of a step wants to see the steps of one run of a body, and tells it when that ends.
class Look {
 public:
  Look(Observer* observer, const BodyRun& which)
      : observer_(observer != nullptr && observer->enter(which) ? observer : nullptr) {}
  ~Look() {
    if (observer_) observer_->leave();
  }
  Look(const Look&) = delete;
  Look& operator=(const Look&) = delete;
  /// Who looks inside; null: nobody.
  Observer* observer() const { return observer_; }

 private:
  Observer* observer_;
};

/// Whether a loop has to run so that every step of it is seen.
inline bool every_step_wanted(const Launch& l) { return l.observer && l.observer->wants_every_step(); }

/// Bytes rounded up to a multiple of 64, the alignment of buffers.
inline size_t aligned_size(size_t bytes) { return (bytes + 63) / 64 * 64; }

/// Whether every one of n elements is not 0.
bool all_nonzero(DType, const std::byte* data, int64_t n);

}  // namespace rlx::backend
