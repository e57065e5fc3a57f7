// What nodes with GGUF blocks need to become packed products.
#pragma once

#include "rlx/backend/cpu/kernels/quant_product.h"
#include "rlx/backend/cpu/nodes/families.h"
#include "rlx/ops/quant/dequant_matmul.h"

namespace rlx::cpu {

/// No, unless operand 0 is x in f32, all is row-major, and the scheme is one of blocks with a packed product.
Support accepts_blocks(const Request&, const std::string& scheme);

/// The form of operand 1: `slabs` matrices [n, k] of blocks, as an array of QuantMatrix.
Packing block_packing(const std::string& scheme, int64_t slabs, int64_t n, int64_t k);

/// A product of rows of x by weights that come later.
QuantProduct block_product(const Shape& x, const Shape& y, ops::Activations);
size_t workspace_of(const QuantProduct&);

/// For notes: how activations meet the blocks.
std::string_view activations_note(const QuantProduct&);

}  // namespace rlx::cpu
