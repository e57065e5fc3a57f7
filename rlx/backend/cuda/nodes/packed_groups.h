// Products of many rows with packed weights, on the matrix units of groups of warps.
#pragma once

#include <optional>

#include "rlx/backend/cuda/nodes/families.h"
#include "rlx/quant/format.h"

namespace rlx::cuda {

/// y [m, n] = x [m, k] with weights [n, k] in blocks, x in codes of 8 bits.
struct PackedSizes {
  const quant::BlockFormat* format = nullptr;
  DType type = DType::f32;  // of x and y
  int64_t m = 0, n = 0, k = 0;
};

class PackedGroups {
 public:
  /// Nothing where another kernel is to be taken: few rows, other processors, formats without a decoder for it.
  static std::optional<PackedGroups> make(const Device&, const PackedSizes&);

  /// x as chunks of codes.
  size_t workspace() const;
  /// x, w and y lie at multiples of 16 bytes, the workspace of 128.
  void run(const Stream&, const std::byte* x, const std::byte* w, std::byte* y, std::byte* workspace) const;

  const Source& source() const { return product_->source(); }

 private:
  PackedSizes p_;
  int64_t processors_ = 1;
  FunctionRef rounding_, product_;
};

}  // namespace rlx::cuda
