// Walking over blocks, for the sources of this room.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rlx::quant {

/// Calls visit(block, values) for each block of `elements` values. Blocks have alignment 1.
template <class Block, class Visit>
void decode_each(const std::byte* in, float* out, int64_t count, int elements, Visit visit) {
  static_assert(alignof(Block) == 1);
  const Block* block = reinterpret_cast<const Block*>(in);
  for (int64_t i = 0; i < count; i += elements) visit(*block++, out + i);
}

template <class Block, class Visit>
void encode_each(const float* in, std::byte* out, int64_t count, int elements, Visit visit) {
  static_assert(alignof(Block) == 1);
  Block* block = reinterpret_cast<Block*>(out);
  for (int64_t i = 0; i < count; i += elements) visit(in + i, *block++);
}

/// Calls visit(values, weights of them, block); weights are null where there are none.
template <class Block, class Visit>
void encode_each_weighted(const float* in, const float* weights, std::byte* out, int64_t count, int elements,
                          Visit visit) {
  static_assert(alignof(Block) == 1);
  Block* block = reinterpret_cast<Block*>(out);
  for (int64_t i = 0; i < count; i += elements)
    visit(in + i, weights != nullptr ? weights + i : nullptr, *block++);
}

}  // namespace rlx::quant
