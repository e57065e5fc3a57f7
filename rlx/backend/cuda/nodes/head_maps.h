// What the copy engine of Hopper is told of a tensor of heads.
#pragma once

#include "rlx/backend/cuda/nodes/attention_heads.h"

namespace rlx::cuda {

/// As TensorMap of the kernels (kernels/matrix_groups.h), which is aligned there.
struct TensorMap {
  uint64_t words[16];
};

/// A tensor [batch][head][row][lane] of 16 or 8 bits that tiles of 128 bytes of lanes are copied from. Where it lies is known when it runs.
struct HeadMap {
  HeadTensor tensor;
  int64_t heads = 1;
  bool is_bf16 = false, is_bytes = false;

  /// Whether the engine can read it: no axis is repeated, and rows begin at multiples of 16 bytes.
  bool is_possible() const;
  /// Tiles of `rows` rows and 64 lanes (128 of bytes); what lies outside of the tensor is zero.
  TensorMap encode(const Driver&, const std::byte* at, int rows) const;
};

}  // namespace rlx::cuda
