// Two groups of w by four rows of x, for levels with 16 registers.
//
// With one group every product of codes asks for four codes of x from memory, and codes of w that were taken apart leave the
// registers. Two groups share the codes of x: eight sums of pairs, a word of each group and one of x are in registers, sums in
// f32 are in memory and met once a strip. For 4-bit codes a strip of 2048 products is 64 multiplications and 56 additions of
// pairs, 40 loads of codes of x and about 130 instructions for codes and scales, 24 of them to take codes apart, 70 with five bits. Where
// several fours of rows follow, codes and scales are taken apart once for all of them and read from the nearest caches.
// Sums in f32 are formed as for one group, so the bits are the same.
#pragma once

#include "rlx/backend/cpu/kernels/isa/quant_product_dot.h"
#include "rlx/backend/cpu/kernels/isa/quant_product_strip.h"

#if defined(RLX_AVX2)

namespace rlx::cpu::RLX_ISA {

/// Whether word v of codes is one or two operations on one word of memory, so that none is kept.
constexpr bool has_plain_words(const QuantLayout& l) { return !l.is_grid() && l.bits == 4; }

/// Word v of the numbers of a strip.
template <QuantLayout layout>
RLX_INLINE U32 number_word(const std::byte* strip, int v) {
  const U32 word = load_bytes<U32>(strip + v % 4 * kVectorBytes);
  const U32 code = (v < 4 ? word : word >> 4) & 0x0f0f0f0fu;
  if constexpr (layout.code == CodeForm::e2m1) return look_up(kTwiceE2m1Offset12, code);
  return code;
}

/// The numbers and scales of strip t of a pair of groups, taken apart as they are asked for: word(group, v).
template <QuantLayout layout>
struct PairWords {
  const Head<layout> (&head)[2];
  const std::byte* strip[2];
  int64_t t;
  U32 kept[2][has_plain_words(layout) ? 1 : 8];

  RLX_INLINE F32 scale(int group, int s) const { return head[group].scale(t, s); }
  RLX_INLINE F32 least(int group, int s) const { return head[group].least(t, s); }

  RLX_INLINE PairWords(const Head<layout> (&heads)[2], const std::byte* first, const std::byte* second,
                       int64_t at)
      : head(heads), strip{first, second}, t(at) {
    if constexpr (!has_plain_words(layout)) {
      load_numbers<layout>(head[0], first, t, kept[0]);
      load_numbers<layout>(head[1], second, t, kept[1]);
    }
  }
  RLX_INLINE __m256i word(int group, int v) const {
    if constexpr (has_plain_words(layout)) return (__m256i)number_word<layout>(strip[group], v);
    return (__m256i)kept[group][v];
  }
};

inline constexpr int kPairRows = 4;

/// The numbers and scales of one strip of a pair of groups, taken apart.
template <QuantLayout layout>
struct TakenStrip {
  static constexpr int kRuns = layout.runs_per_strip();
  alignas(kVectorBytes) uint32_t words[2][8][kLanes];
  float scales[2][kRuns][kLanes];
  float leasts[2][layout.has_least() ? kRuns : 1][kLanes];

  RLX_INLINE void take(const Head<layout> (&head)[2], const std::byte* const (&strip)[2], int64_t t) {
#pragma GCC unroll 2
    for (int g = 0; g < 2; ++g) {
      U32 c[8];
      load_numbers<layout>(head[g], strip[g], t, c);
#pragma GCC unroll 8
      for (int v = 0; v < 8; ++v) std::memcpy(words[g][v], &c[v], sizeof c[v]);
      for (int s = 0; s < kRuns; ++s) {
        store(scales[g][s], head[g].scale(t, s));
        if constexpr (layout.has_least()) store(leasts[g][s], head[g].least(t, s));
      }
    }
  }
  RLX_INLINE __m256i word(int group, int v) const { return (__m256i)load_bytes<U32>(words[group][v]); }
  RLX_INLINE F32 scale(int group, int s) const { return load(scales[group][s]); }
  RLX_INLINE F32 least(int group, int s) const { return load(leasts[group][s]); }
};

/// sums[g][m] += the products of words [from, from + words) of two groups with those of four rows.
template <QuantLayout layout, int words, class Words>
RLX_INLINE void dot_pair(I32 (&sums)[2][kPairRows], const Words& w, const Record* x, int from) {
  const auto codes = [&](int m, int v) { return _mm256_set1_epi32(x[m].words[v]); };
  constexpr int fit = words_that_fit(layout), together = fit >= words ? words : fit >= 4 ? 4 : 2;
  static_assert(fit >= 2);
#pragma GCC unroll 8
  for (int first = from; first < from + words; first += together) {
    __m256i p[2][kPairRows] = {};
#pragma GCC unroll 8
    for (int v = first; v < first + together; ++v) {
      const __m256i a = w.word(0, v), b = w.word(1, v);
#pragma GCC unroll 4
      for (int m = 0; m < kPairRows; ++m) {
        const __m256i c = codes(m, v);
        p[0][m] = _mm256_add_epi16(p[0][m], pairs(a, c));
        p[1][m] = _mm256_add_epi16(p[1][m], pairs(b, c));
        asm("" : "+x"(p[0][m]), "+x"(p[1][m]));  // else sums become trees and leave the registers
      }
    }
#pragma GCC unroll 4
    for (int m = 0; m < kPairRows; ++m) {
      sums[0][m] = add_pairs(sums[0][m], p[0][m]);
      sums[1][m] = add_pairs(sums[1][m], p[1][m]);
    }
  }
}

/// A strip of two groups by the records of four rows.
template <QuantLayout layout, class Words>
RLX_INLINE void strip_of_pair(const Words& w, const Record* x, float (&sums)[2][kPairRows][kLanes]) {
  constexpr int runs = layout.runs_per_strip(), words = 8 / runs;
#pragma GCC unroll 2
  for (int s = 0; s < runs; ++s) {
    I32 products[2][kPairRows] = {};
    dot_pair<layout, words>(products, w, x, s * words);
    F32 scale[2], least[2] = {};
#pragma GCC unroll 2
    for (int g = 0; g < 2; ++g) {
      scale[g] = w.scale(g, s);
      if constexpr (layout.has_least()) least[g] = w.least(g, s);
    }
#pragma GCC unroll 4
    for (int m = 0; m < kPairRows; ++m) {
      const F32 step = set1(x[m].scale), total = set1(as_float(x[m].correction[s]));
#pragma GCC unroll 2
      for (int g = 0; g < 2; ++g) {
        I32 product = products[g][m];
        if constexpr (starts_with_correction(layout)) product += (I32)total;
        F32 sum = fma(scale[g] * step, to_float(product), load(sums[g][m]));
        if constexpr (layout.has_least()) sum = fma(least[g], total, sum);
        store(sums[g][m], sum);
      }
    }
  }
}

/// use(head, strips, t) for every strip t of every block of two groups, the next two groups being asked for meanwhile.
template <QuantLayout layout, class Use>
RLX_INLINE void each_strip_of_pair(const QuantView& w, const std::byte* block, Use use) {
  const int64_t strips = layout.elements ? layout.elements / 32 : w.block_strips;
  const int64_t second = w.blocks * w.block_bytes;  // from a group to the next
  const std::byte* next = block + 2 * second;
  for (int64_t b = 0; b < w.blocks; ++b, block += w.block_bytes) {
    next += 2 * layout.head_bytes() * kLanes;
    const Head<layout> head[2] = {Head<layout>(block), Head<layout>(block + second)};
    const std::byte* strip = block + layout.head_bytes() * kLanes;
    for (int64_t t = 0; t < strips; ++t, strip += layout.strip_bytes() * kLanes) {
      for (int64_t line = 0; line < 2 * layout.strip_bytes() * kLanes; line += 64)
        __builtin_prefetch(next + line);
      next += 2 * layout.strip_bytes() * kLanes;
      const std::byte* const both[2] = {strip, strip + second};
      use(head, both, t);
    }
  }
}

/// sums[g][m]: row m of x by group g.
template <QuantLayout layout>
void rows_of_pair(const QuantView& w, const Record* x, const std::byte* block,
                  float (&sums)[2][kPairRows][kLanes]) {
  std::memset(sums, 0, sizeof sums);
  each_strip_of_pair<layout>(w, block,
                             [&](const Head<layout>(&head)[2], const std::byte* const(&strip)[2], int64_t t) {
                               strip_of_pair<layout>(PairWords<layout>(head, strip[0], strip[1], t), x, sums);
                               x += kPairRows;
                             });
}

/// Two groups taken apart: strips [0, w.strips()).
template <QuantLayout layout>
void take_pair(const QuantView& w, const std::byte* block, TakenStrip<layout>* taken) {
  each_strip_of_pair<layout>(w, block,
                             [&](const Head<layout>(&head)[2], const std::byte* const(&strip)[2], int64_t t) {
                               (taken++)->take(head, strip, t);
                             });
}

/// As rows_of_pair, of groups that were taken apart.
template <QuantLayout layout>
void rows_of_taken(const TakenStrip<layout>* taken, int64_t strips, const Record* x,
                   float (&sums)[2][kPairRows][kLanes]) {
  std::memset(sums, 0, sizeof sums);
  for (int64_t t = 0; t < strips; ++t, x += kPairRows) strip_of_pair<layout>(taken[t], x, sums);
}

}  // namespace rlx::cpu::RLX_ISA

#endif
