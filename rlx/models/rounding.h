// Activations rounded to 8 bits, as llama.cpp multiplies them with packed weights.
//
// A block of activations becomes codes q = round(x / d) times a scale. Formats of 256 elements go with blocks of 256 and
// d = -peak / 127 in f32; the others with blocks of 32, q by d = max |x| / 127, multiplied by d rounded to f16. Formats with a minimum m
// for each block add m s, where s = f16(d sum q) is kept beside the codes: that is not quite m times the sum of the rounded activations.
#pragma once

#include "rlx/io/tensor_view.h"
#include "rlx/ir/literal.h"
#include "rlx/lang/tensor.h"

namespace rlx::models {

struct Rounded {
  Tensor x;  // [.., k]
  Tensor
      minima_error;  // [.., k / 32]: s less the sum of x over the block, for formats with minima; else empty
};

/// Rows that are no whole number of blocks stay as they are.
Rounded round_activations(const Tensor& x, const quant::BlockFormat& format);

/// The minima of the blocks of a weight [n, k] in q4_1 or q5_1: f32 [n, k / 32].
Literal block_minima(const io::TensorView& weight);

}  // namespace rlx::models
