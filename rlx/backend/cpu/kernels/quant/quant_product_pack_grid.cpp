#include <array>
#include <cstring>

#include "rlx/backend/cpu/kernels/quant/quant_grids.h"
#include "rlx/backend/cpu/kernels/quant/quant_product_pack.h"
#include "rlx/quant/grid_points.h"

namespace rlx::cpu {
namespace {

// The bytes of one strip of one row, apart from the head.
struct Strip {
  uint8_t low[8];
  uint32_t signs;
  uint8_t tops[2];
};

// Bits above the eighth of index i: how many in the first byte of them.
int top_bits(const QuantLayout& l) { return l.code == CodeForm::iq3_s ? 1 : 2; }

// Moves the pieces of a strip between its place in the group and `s`.
template <class Bytes, class Move>
Bytes* move_strip(const QuantLayout& l, int lanes, int lane, Bytes* at, Strip& s, Move move) {
  for (int i = 0; i < l.indices(); ++i, at += lanes) move(at + lane, &s.low[i], 1);
  if (l.has_signs()) move(at + 4 * lane, &s.signs, 4), at += 4 * lanes;
  for (int i = 0; i < l.tops(); ++i, at += lanes) move(at + lane, &s.tops[i], 1);
  return at;
}

// Bit v of byte j belongs to element 4v + j of the strip.
uint32_t sign_plane(const uint8_t* octets) {
  uint32_t plane = 0;
  for (int e = 0; e < 32; ++e) plane |= uint32_t(octets[e / 8] >> (e % 8) & 1) << (8 * (e % 4) + e / 4);
  return plane;
}
void take_signs(uint32_t plane, uint8_t* octets) {
  std::memset(octets, 0, 4);
  for (int e = 0; e < 32; ++e) octets[e / 8] |= uint8_t((plane >> (8 * (e % 4) + e / 4) & 1) << (e % 8));
}

// Strip t of a block as it is packed; returns the byte of the head.
uint8_t make_strip(const QuantLayout& l, const quant::GridCodes& c, int t, Strip& s) {
  s = {};
  uint8_t shifts = 0;
  for (int i = 0; i < l.indices(); ++i) {
    const int index = c.index[t * l.indices() + i], top = index >> 8;
    s.low[i] = uint8_t(index);
    s.tops[0] |= uint8_t((top & ((1 << top_bits(l)) - 1)) << (top_bits(l) * i));
    shifts |= uint8_t(top >> 2 << i);
    if (l.is_iq1() && c.signs[4 * t + i]) shifts |= uint8_t(16 << i);
  }
  s.signs = sign_plane(c.signs + 4 * t);
  s.tops[1] = shifts;
  if (l.code == CodeForm::iq1_s) {
    return uint8_t((shifts & 15) | c.scale[2 * t] << 4 | (c.signs[4 * t] ? 0x80 : 0));
  }
  return uint8_t(c.scale[2 * t] | (l.run == 16 ? c.scale[2 * t + 1] << 4 : 0));
}

void take_strip(const QuantLayout& l, const Strip& s, uint8_t head, int t, quant::GridCodes& c) {
  const bool one_shift = l.code == CodeForm::iq1_s;
  const int shifts = one_shift ? (head & 15) | (head & 0x80 ? 0xf0 : 0) : s.tops[1];
  for (int i = 0; i < l.indices(); ++i) {
    int top = l.tops() > 0 ? s.tops[0] >> (top_bits(l) * i) & ((1 << top_bits(l)) - 1) : 0;
    if (l.is_iq1()) top |= (shifts >> i & 1) << 2;
    c.index[t * l.indices() + i] = uint16_t(s.low[i] | top << 8);
    if (l.is_iq1()) c.signs[4 * t + i] = shifts >> (4 + i) & 1 ? 0xff : 0;
  }
  if (l.has_signs()) take_signs(s.signs, c.signs + 4 * t);
  c.scale[2 * t] = uint8_t(one_shift ? head >> 4 & 7 : head & 15);
  c.scale[2 * t + 1] = l.run == 16 ? uint8_t(head >> 4) : c.scale[2 * t];
}

template <class Word, size_t base, size_t count>
constexpr std::array<Word, count> grid_words(const uint16_t (&points)[count], const int8_t (&levels)[base],
                                             int offset) {
  std::array<Word, count> words{};
  const auto numbers = quant::expand_points<sizeof(Word)>(points, levels);
  for (size_t i = 0; i < numbers.size(); ++i) {
    words[i / sizeof(Word)] |= Word(uint8_t(numbers[i] + offset)) << (8 * (i % sizeof(Word)));
  }
  return words;
}

}  // namespace

using namespace quant;  // the points and their levels
constinit const std::array<uint64_t, 2048> kGridIq1 = grid_words<uint64_t>(kPointsIq1, kLevelsIq1, 8);
constinit const std::array<uint64_t, 256> kGridIq2Xxs = grid_words<uint64_t>(kPointsIq2Xxs, kLevelsIq2, 128);
constinit const std::array<uint64_t, 512> kGridIq2Xs = grid_words<uint64_t>(kPointsIq2Xs, kLevelsIq2, 128);
constinit const std::array<uint64_t, 1024> kGridIq2S = grid_words<uint64_t>(kPointsIq2S, kLevelsIq2, 128);
constinit const std::array<uint32_t, 256> kGridIq3Xxs =
    grid_words<uint32_t>(kPointsIq3Xxs, kLevelsIq3Xxs, 128);
constinit const std::array<uint32_t, 512> kGridIq3S = grid_words<uint32_t>(kPointsIq3S, kLevelsIq3S, 128);

void pack_grid_block(const QuantLayout& l, const GridFormat& format, const std::byte* block, int lanes,
                     int lane, std::byte* group) {
  GridCodes codes;
  format.take_apart(block, codes);
  std::memcpy(group + 2 * lane, &codes.d, 2);
  std::byte* heads = group + 2 * lanes;
  std::byte* at = group + l.head_bytes() * lanes;
  for (int t = 0; t < l.elements / 32; ++t) {
    Strip s;
    heads[t * lanes + lane] = std::byte(make_strip(l, codes, t, s));
    at = move_strip(l, lanes, lane, at, s,
                    [](std::byte* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); });
  }
}

void unpack_grid_block(const QuantLayout& l, const GridFormat& format, const std::byte* group, int lanes,
                       int lane, std::byte* block) {
  GridCodes codes{};
  std::memcpy(&codes.d, group + 2 * lane, 2);
  const std::byte* heads = group + 2 * lanes;
  const std::byte* at = group + l.head_bytes() * lanes;
  for (int t = 0; t < l.elements / 32; ++t) {
    Strip s{};
    at = move_strip(l, lanes, lane, at, s,
                    [](const std::byte* from, void* to, size_t bytes) { std::memcpy(to, from, bytes); });
    take_strip(l, s, uint8_t(heads[t * lanes + lane]), t, codes);
  }
  format.put_together(codes, block);
}

}  // namespace rlx::cpu
