// Codebook formats: neighbours share one index into a table of the patterns of levels that weights take most.
//
// Blocks of 256 elements. An element is a level of its point (grid_points.h) with a sign of its own, or, in
// iq1, with a shift its neighbours share; a scale s covers a run of elements:
//
//             levels                     value                           run   point   bits an element
//   iq1_s     -1 0 1                     d (2s + 1) (level +- 1/8)        32    of 8    1.56
//   iq1_m     as iq1_s                   as iq1_s                         16    of 8    1.75
//   iq2_xxs   8 25 43                    +- d (2s + 1) / 8 * level        32    of 8    2.06
//   iq2_xs    as iq2_xxs                 as iq2_xxs                       16    of 8    2.31
//   iq2_s     as iq2_xxs                 as iq2_xxs                       16    of 8    2.56
//   iq3_xxs   4 12 20 28 36 44 52 62     +- d (2s + 1) / 4 * level        32    of 4    3.06
//   iq3_s     1 3 5 7 9 11 13 15         +- d (2s + 1) * level            32    of 4    3.44
//
// Bytes, with i = octet of elements, g = group of 32, all little-endian:
//
//   iq1_s     d | 32 low bytes of index | u16 [8]: bits 3l..3l+2 top of index l of the group, 12-14 s, 15 shift
//             is negative
//   iq1_m     32 low bytes | 16 bytes, a nibble for each index: three top bits, then the sign of the shift |
//             u16 [4]: four s of 3 bits; the nibbles on top of them, lowest first, are d
//   iq2_xxs   d | [8] of 4 indices, u32: bits 7l..7l+6 signs of octet l, 28-31 s
//   iq2_xs    d | u16 [32]: bits 0-8 index, 9-15 signs | 8 bytes: a nibble s for each run
//   iq2_s     d | 32 low bytes | 32 bytes of signs | 8 bytes: two top bits for each index | 8 as iq2_xs
//   iq3_xxs   d | 64 indices | u32 [8] as in iq2_xxs
//   iq3_s     d | 64 low bytes | 8 bytes: a top bit for each index | 32 bytes of signs | 4 bytes: a nibble s
//             for each group
//
// Signs in seven bits are those of elements 0-6 of the octet; the number of negative elements is even, which
// gives the eighth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rlx/quant/half.h"

namespace rlx::quant {

/// A block taken apart, the same for all of these formats.
struct GridCodes {
  Half d;
  uint8_t scale[16];   // s of each 16 elements; equal in pairs where a run has 32
  uint16_t index[64];  // of each point: 32 of 8 elements or 64 of 4
  uint8_t signs[32];   // of each octet: bit j set, element j is negative; iq1: all bits set, the shift is
};

/// value = d (2s + 1) unit * number; a number is a level with its sign, or 8 level +- 1 for iq1.
struct GridFormat {
  std::string_view name;
  std::span<const uint16_t> points;
  std::span<const int8_t> levels;   // the numbers of the digits of a point
  std::span<const int8_t> numbers;  // [points][width]
  int block_bytes;
  int width;    // elements of a point, 8 or 4
  int run;      // elements under one scale, 32 or 16
  int scales;   // s < scales
  int shifted;  // elements under one shift, 0 where elements have signs
  bool even_signs;
  float unit;
  void (*take_apart)(const std::byte* block, GridCodes&);
  void (*put_together)(const GridCodes&, std::byte* block);

  bool has_signs() const { return shifted == 0; }
};

/// Null when the name is not one of these formats.
const GridFormat* find_grid_format(std::string_view name);

/// For each cell, a choice of a level for every element of a point (the first element in the lowest digit), the kGridCandidates points nearest to it.
std::vector<uint16_t> grid_candidates(const GridFormat&);

/// Signs of an octet from those of its first seven elements.
uint8_t with_even_signs(int seven);

/// Any whole number of blocks; every byte pattern is a block.
void decode_grid(const GridFormat&, const std::byte* in, float* out, int64_t count);

void decode_iq1_s(const std::byte* in, float* out, int64_t count);
void decode_iq1_m(const std::byte* in, float* out, int64_t count);
void decode_iq2_xxs(const std::byte* in, float* out, int64_t count);
void decode_iq2_xs(const std::byte* in, float* out, int64_t count);
void decode_iq2_s(const std::byte* in, float* out, int64_t count);
void decode_iq3_xxs(const std::byte* in, float* out, int64_t count);
void decode_iq3_s(const std::byte* in, float* out, int64_t count);

/// Signs that must be even in number cost the smallest element of an octet its sign. All elements count
/// alike: weighting them by the activations they meet, as published files of these formats do, needs
/// activations, which an encoder of weights has not.
void encode_iq1_s(const float* in, std::byte* out, int64_t count);
void encode_iq1_m(const float* in, std::byte* out, int64_t count);
void encode_iq2_xxs(const float* in, std::byte* out, int64_t count);
void encode_iq2_xs(const float* in, std::byte* out, int64_t count);
void encode_iq2_s(const float* in, std::byte* out, int64_t count);
void encode_iq3_xxs(const float* in, std::byte* out, int64_t count);
void encode_iq3_s(const float* in, std::byte* out, int64_t count);

}  // namespace rlx::quant
