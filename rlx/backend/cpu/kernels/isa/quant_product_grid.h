// Codes of the codebook formats (quant_layout.h) as the words of a strip. Points are fetched one by one, eight
// bytes at a time where a point has eight elements: gather instructions take longer on the processors at hand,
// and half of what they would fetch is thrown away. Signs are applied to all bytes of a word at once.
#pragma once

#include <utility>

#include "rlx/backend/cpu/kernels/isa/quant_product_bytes.h"
#include "rlx/backend/cpu/kernels/quant/quant_grids.h"
#include "rlx/backend/cpu/kernels/quant/quant_layout.h"
#include "rlx/backend/cpu/simd/vec.h"

namespace rlx::cpu::RLX_ISA {

typedef int8_t SignedBytes __attribute__((vector_size(kVectorBytes)));

/// Word index[lane] of a grid of four elements.
template <class Index, size_t... lane>
RLX_INLINE U32 fetch_quads(const uint32_t* grid, const Index* index, std::index_sequence<lane...>) {
  return U32{grid[index[lane]]...};
}

/// Point index[lane] of a grid of eight elements: 0-3 in `low`, 4-7 in `high`. Neighbouring lanes are fetched
/// into two vectors such that each quarter of a result comes from the same quarter of both.
template <class Index, size_t... i, size_t... lane>
RLX_INLINE void fetch_octets(const uint64_t* grid, const Index* index, U32& low, U32& high,
                             std::index_sequence<i...>, std::index_sequence<lane...>) {
  const U32 a = (U32)U64{grid[index[4 * (i / 2) + i % 2]]...};
  const U32 b = (U32)U64{grid[index[4 * (i / 2) + i % 2 + 2]]...};
  low = __builtin_shufflevector(a, b, (lane / 4 * 4 + 2 * (lane % 2) + (lane % 4 / 2) * kLanes)...);
  high = __builtin_shufflevector(a, b, (lane / 4 * 4 + 2 * (lane % 2) + 1 + (lane % 4 / 2) * kLanes)...);
}

template <class Index>
RLX_INLINE void fetch(const uint64_t* grid, const Index* index, U32* words) {
  fetch_octets(grid, index, words[0], words[1], std::make_index_sequence<kLanes64>(),
               std::make_index_sequence<kLanes>());
}
template <class Index>
RLX_INLINE void fetch(const uint32_t* grid, const Index* index, U32* words) {
  words[0] = fetch_quads(grid, index, std::make_index_sequence<kLanes>());
}

template <CodeForm code>
RLX_INLINE const auto* grid_of() {
  if constexpr (code == CodeForm::iq2_xxs)
    return kGridIq2Xxs.data();
  else if constexpr (code == CodeForm::iq2_xs)
    return kGridIq2Xs.data();
  else if constexpr (code == CodeForm::iq2_s)
    return kGridIq2S.data();
  else if constexpr (code == CodeForm::iq3_xxs)
    return kGridIq3Xxs.data();
  else if constexpr (code == CodeForm::iq3_s)
    return kGridIq3S.data();
  else
    return kGridIq1.data();
}

/// `bits` of each lane moved from bit `from` on to bit `to` on.
template <int from, int to, uint32_t bits>
RLX_INLINE U32 moved(U32 v) {
  constexpr uint32_t mask = bits << to;
  if constexpr (from > to) return (v >> (from - to)) & mask;
  return (v << (to - from)) & mask;
}

/// Words of index i: its point, found by all bits of the index.
template <QuantLayout layout, int i>
RLX_INLINE void fetch_point(const uint8_t* low, U32 tops, U32 shifts, U32* words) {
  const auto* grid = grid_of<layout.code>();
  if constexpr (layout.tops() == 0) {
    fetch(grid, low + i * kLanes, words);
  } else {
    constexpr int bits = layout.code == CodeForm::iq3_s ? 1 : 2;
    U32 index = (U32)unsigned_bytes(reinterpret_cast<const std::byte*>(low + i * kLanes)) |
                moved<bits * i, 8, (1 << bits) - 1>(tops);
    if constexpr (layout.is_iq1()) index |= moved<i, 10, 1>(shifts);
    alignas(kVectorBytes) uint32_t indices[kLanes];
    std::memcpy(indices, &index, sizeof indices);
    fetch(grid, indices, words);
  }
}

/// The eight words of a strip: 0 .. 255, offset included. `head`: the byte of the strip in the head.
template <QuantLayout layout, int... i>
RLX_INLINE void load_points(const std::byte* head, const std::byte* strip, U32 (&c)[8],
                            std::integer_sequence<int, i...>) {
  constexpr int words = 8 / layout.indices();
  const auto* low = reinterpret_cast<const uint8_t*>(strip);
  const std::byte* at = strip + layout.indices() * kLanes;
  U32 signs = {}, tops = {}, shifts = {};
  if constexpr (layout.has_signs()) signs = load_bytes<U32>(at), at += kVectorBytes;
  if constexpr (layout.tops() > 0) tops = (U32)unsigned_bytes(at);
  if constexpr (layout.code == CodeForm::iq1_s) shifts = (U32)unsigned_bytes(head);
  if constexpr (layout.code == CodeForm::iq1_m) shifts = (U32)unsigned_bytes(at + kLanes);
  (fetch_point<layout, i>(low, tops, shifts, c + i * words), ...);
  if constexpr (layout.has_signs()) {
#pragma GCC unroll 8
    for (int v = 0; v < 8; ++v) {
      const SignedBytes negative = (SignedBytes)(signs << (7 - v)) < 0;
      c[v] = (U32)(((SignedBytes)c[v] ^ negative) - negative);
    }
  } else {
    // 8 (level + 1) + 2 is 8 level + 1 with its offset of 9, 8 (level + 1) is 8 level - 1.
    const auto two = [&](U32 bit) { return (U32)((bit == 0) & 0x02020202); };
    if constexpr (layout.code == CodeForm::iq1_s) {
      const U32 shift = two(shifts & 0x80u);
      for (int v = 0; v < 8; ++v) c[v] += shift;
    } else {
      for (int v = 0; v < 8; ++v) c[v] += two(shifts & (0x10u << (v / 2)));
    }
  }
}

template <QuantLayout layout>
RLX_INLINE void load_points(const std::byte* head, const std::byte* strip, U32 (&c)[8]) {
  load_points<layout>(head, strip, c, std::make_integer_sequence<int, layout.indices()>());
}

}  // namespace rlx::cpu::RLX_ISA
