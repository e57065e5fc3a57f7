// Operands of whole numbers: indices, labels, keys.
#pragma once

#include "rlx/backend/cpu/kernels/index.h"
#include "rlx/backend/cpu/nodes/families.h"

namespace rlx::cpu {

/// An operand of integers, or of floats that hold whole numbers. Kernels read i32 and i64 where they lie;
/// others are widened into the step's workspace first. A float that is no whole number is a user error.
struct WholeNumbers {
  WholeNumbers(const Request&, size_t operand);

  /// What the operand says where it lies: i32 or i64.
  bool plain() const { return dtype == DType::i32 || dtype == DType::i64; }
  size_t workspace() const;       // for indices()
  size_t wide_workspace() const;  // for wide()
  Indices indices(const Launch&, std::byte* workspace, IndexMode mode = IndexMode::error) const;
  const int64_t* wide(const Launch&, std::byte* workspace) const;
  /// The same, and every one of them is at least 0 and below `size`.
  const int64_t* wide_below(int64_t size, const Launch&, std::byte* workspace) const;

  size_t operand;
  DType dtype;
  int64_t count;
  std::string_view op, name;  // for messages
};

/// Integers and the floats that may stand for them, row-major.
Support accepts_whole_numbers(const Request&, size_t operand);

/// Element i of an array of integers.
int64_t integer_at(DType, const std::byte* data, int64_t i);

}  // namespace rlx::cpu
