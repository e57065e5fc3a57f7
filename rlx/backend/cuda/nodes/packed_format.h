// The decoder of a packed format as text for kernels.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rlx/base/dtype.h"
#include "rlx/quant/format.h"
#include "rlx/quant/grid.h"

namespace rlx::cuda {

/// kernels/block_decoders.h with `Format` meaning this one, for blocks whose addresses are multiples of `align` as far as
/// their size allows it; nothing for plain types and those without a decoder.
std::optional<std::string> decoder_text(const quant::BlockFormat&, int align);

/// What stands before kernels of products with rows of k such weights: the decoder, T for this type, and what they share (kernels/packed_product.h).
std::string packed_text(const quant::BlockFormat&, DType, int64_t k, int align);

/// The words of a codebook as the decoders read them.
std::vector<uint32_t> codebook_words(const quant::GridFormat&);

}  // namespace rlx::cuda
