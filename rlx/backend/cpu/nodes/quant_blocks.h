// What nodes with GGUF blocks need to become packed products.
#pragma once

#include "rlx/backend/cpu/kernels/quant/quant_product.h"
#include "rlx/backend/cpu/nodes/packed.h"
#include "rlx/ops/quant/dequant_matmul.h"

namespace rlx::cpu {

/// No, unless operand 0 is x in f32, all is row-major, and the scheme is one of blocks with a packed product.
Support accepts_blocks(const Request&, const std::string& scheme);

/// Operand 1 as an array of QuantMatrix: `slabs` matrices [n, k] of blocks.
class Blocks {
 public:
  Blocks(const std::string& scheme, int64_t slabs, int64_t n, int64_t k);
  Packing packing() const;
  PackedNow now() const;

 private:
  const quant::BlockFormat& format() const { return *scheme_.format; }
  size_t lent_bytes() const { return round_up(QuantMatrix::packed_bytes(format(), n_, k_)); }

  std::string text_;
  quant::Scheme scheme_;
  int64_t slabs_, n_, k_;
  int64_t slab_;  // bytes as they come
};

/// A product of rows of x by weights that come later.
QuantProduct block_product(const Shape& x, const Shape& y, ops::Activations);
size_t workspace_of(const QuantProduct&);

/// For notes: how activations meet the blocks.
std::string_view activations_note(const QuantProduct&);

}  // namespace rlx::cpu
