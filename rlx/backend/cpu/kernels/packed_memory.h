// Where a packed form lies.
#pragma once

#include "rlx/base/aligned.h"

namespace rlx::cpu {

/// Memory of the form's own, or lent by a caller who keeps it as long as the form: a form of one run lies in the workspace of its step.
class PackedMemory {
 public:
  PackedMemory() = default;
  PackedMemory(size_t bytes, std::byte* lent)
      : own_(lent ? nullptr : allocate_aligned(bytes)), data_(lent ? lent : own_.get()) {}
  std::byte* get() const { return data_; }

 private:
  AlignedBytes own_;
  std::byte* data_ = nullptr;
};

}  // namespace rlx::cpu
