// The table of tensor storage formats: plain element types and the block formats of GGUF.
//
// A block format stores a fixed number of consecutive elements of a row in a fixed number of bytes. Its
// layout picture is beside its struct: linear32.h, k_quants.h, iq4.h, grid.h, ternary.h,
// fp4.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rlx/base/dtype.h"

namespace rlx::quant {

/// Whole blocks only: `count` elements, a multiple of the format's `elements`. No alignment is assumed.
using DecodeBlocks = void (*)(const std::byte* in, float* out, int64_t count);
/// The way back.
using EncodeBlocks = void (*)(const float* in, std::byte* out, int64_t count);

/// A way to store numbers, block by block.
struct BlockFormat {
  std::string_view name;          // lower-case, as in "q4_k"
  int ggml_id;                    // the type number in a GGUF file
  int elements;                   // per block; 1 for plain element types
  int bytes;                      // per block
  std::optional<DType> dtype;     // set for plain element types that tensors can have
  DecodeBlocks decode = nullptr;  // exact; null when the format is known by size only
  EncodeBlocks encode = nullptr;  // smallest squared error this library knows how to find

  bool is_plain() const { return elements == 1; }
};

/// Every type number GGUF has given out, in ascending order.
std::span<const BlockFormat> formats();

/// Null when there is no such format.
const BlockFormat* find_format(int64_t ggml_id);
/// By name in any letter case. Null when there is no such format.
const BlockFormat* find_format(std::string_view name);

/// The format a tensor of this dtype has in GGUF; null for dtypes GGUF cannot hold.
const BlockFormat* format_of(DType);

/// Bytes of `count` elements. A count that is no whole number of blocks is a user error.
int64_t encoded_bytes(const BlockFormat&, int64_t count);

/// Checked conversions: sizes must agree, the format must have a decoder or encoder. User errors name the
/// format and list those that would do. Block formats take finite values only; those beyond what a block's
/// scale can express are stored as the largest it can.
void decode(const BlockFormat&, std::span<const std::byte> in, std::span<float> out);
/// The way back. Sizes must agree.
void encode(const BlockFormat&, std::span<const float> in, std::span<std::byte> out);

/// Names of the formats that have a decoder, for messages: "f32, f16, q4_0, ...".
std::string decodable_names();

}  // namespace rlx::quant
