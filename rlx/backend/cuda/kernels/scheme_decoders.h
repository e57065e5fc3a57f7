// Decoders of weights [k, n] whose scales lie beside their codes (rlx/quant/scheme.h has the layouts), a patch of four rows k, k + 1, .. and Columns
// neighbouring columns at a time:
//
//   weight (k, n) = code * factor of its group and column, or (code - zero) * factor, and kCodeUnit times that where codes are held smaller than they are
//
// A scheme is a struct with
//   at(codes, k, c)        where the codes of a row begin
//   fetch(codes, k, c)     the words of a patch; k is a multiple of 4
//   code(r, j)             the code of row k + r, column c + j, exact in f32
//   codes(h, j, T)         those of rows k + 2h and k + 2h + 1 as two T, f16 or bf16, exact; the first is the low half
// Rows behind the last are codes that are finite numbers: nothing is multiplied with them but zeros. Before it stand kFeatures (k), kColumns (n), kGroup (rows that share a
// factor; 0: all do, and whoever stores the sums applies it), kHasZero, kWide (n is a multiple of Columns and all addresses are of 16 bytes), and the functions `pair`, `pair_sum`
// and `pair_product` of scheme_product.h.
//
// It is CUDA C++ as text, and valid C++: a test defines RLX_DEVICE_TEXT to keep it as code and runs it on the host.
#pragma once

#ifndef RLX_DEVICE_TEXT
#define RLX_DEVICE_TEXT(name, ...) inline constexpr char name[] = #__VA_ARGS__ "\n";
#endif

namespace rlx::cuda {

// clang-format off
RLX_DEVICE_TEXT(kSchemeDecoders,
struct Weights { const u8* codes; const void* scale; const f32* zero; };

inline int column_inside(int c) { return c < kColumns ? c : kColumns - 1; }

template <int Words>
void aligned_words(const u8* p, u32* to) {
  const u32* const from = reinterpret_cast<const u32*>(p);
  constexpr int kTogether = Words % 4 == 0 ? 4 : Words;
  for (int i = 0; i < Words; i += kTogether) {
    const Pack<u32, kTogether> x = load<kTogether>(from + i);
    for (int j = 0; j < kTogether; ++j) to[i + j] = x.v[j];
  }
}

// A byte for each weight, rows of n bytes: `rows` of them.
template <int Columns>
void byte_rows(const u8* codes, i64 first, int count, i64 rows, int c, u32 (*to)[Columns / 4]) {
  for (int r = 0; r < count; ++r) {
    u32* const words = to[r];
    const bool inside = first + r < rows;
    const u8* const row = codes + (inside ? first + r : 0) * kColumns;
    if (kWide && inside) {
      aligned_words<Columns / 4>(row + c, words);
      continue;
    }
    for (int i = 0; i < Columns / 4; ++i) {
      words[i] = 0;
      for (int j = 0; !kWide && inside && j < 4; ++j) words[i] |= u32(row[column_inside(c + 4 * i + j)]) << (8 * j);
    }
  }
}

// Byte j of two words as the low bytes of two halves, or the high ones; the other bytes are any.
inline u32 two_low(u32 a, u32 b, int j) { return __byte_perm(a, b, u32(j) | u32(4 + j) << 8); }
inline u32 two_high(u32 a, u32 b, int j) { return __byte_perm(a, b, u32(j) << 4 | u32(4 + j) << 12); }

// A whole number below 2^16 is added to the bits of 2^23.
inline f32 whole(u32 x, f32 less) { return from_bits(0x4b000000u | x) - less; }

template <int Columns>
struct Int8 {
  u32 w[4][Columns / 4];
  static const u8* at(const u8* all, i64 k, int c) { return all + k * kColumns + c; }
  void fetch(const u8* all, int k, int c) { byte_rows<Columns>(all, k, 4, kFeatures, c, w); }
  f32 code(int r, int j) const { return from_bits(__byte_perm(w[r][j / 4] ^ 0x80808080u, 0x4b000000u, 0x7540u | u32(j % 4))) - 8388736.0f; }
  u32 codes(int h, int j, f16 t) const {
    const u32 both = two_low(w[2 * h][j / 4] ^ 0x80808080u, w[2 * h + 1][j / 4] ^ 0x80808080u, j % 4);
    return pair_sum((both & 0x00ff00ffu) | 0x64006400u, 0xe480e480u, t);
  }
  u32 codes(int h, int j, bf16 t) const { return pair(code(2 * h, j), code(2 * h + 1, j), t); }
};

// Codes 0 .. 15 less 8, or as they are where zeros are given.
template <int Columns>
struct Int4 {
  static constexpr int kWords = (Columns + 7) / 8;
  u32 w[4][kWords];
  static const u8* at(const u8* all, i64 k, int c) { return all + (k * kColumns + c) / 2; }
  void fetch(const u8* all, int k, int c) {
    for (int r = 0; r < 4; ++r) {
      const bool inside = k + r < kFeatures;
      const i64 row = i64(inside ? k + r : 0) * kColumns;
      for (int i = 0; i < kWords; ++i) w[r][i] = 0;
      if (!inside) continue;
      if (kWide) {
        const u8* const from = at(all, k + r, c);
        if (Columns == 4) {
          w[r][0] = *reinterpret_cast<const u16*>(from);
        } else {
          aligned_words<kWords>(from, w[r]);
        }
        continue;
      }
      for (int j = 0; j < Columns; ++j) {
        const i64 at = row + column_inside(c + j);
        w[r][j / 8] |= (u32(all[at / 2]) >> (at % 2 * 4) & 15u) << (j % 8 * 4);
      }
    }
  }
  f32 code(int r, int j) const { return whole(w[r][j / 8] >> (j % 8 * 4) & 15u, kHasZero ? 8388608.0f : 8388616.0f); }
  u32 nibbles(int h, int j) const {
    const u32 four = __byte_perm(w[2 * h][j / 8], w[2 * h + 1][j / 8], j % 8 < 4 ? 0x5410u : 0x7632u);
    return four >> (j % 4 * 4) & 0x000f000fu;
  }
  u32 codes(int h, int j, f16 t) const { return pair_sum(nibbles(h, j) | 0x64006400u, kHasZero ? 0xe400e400u : 0xe408e408u, t); }
  u32 codes(int h, int j, bf16 t) const { return pair_sum(nibbles(h, j) | 0x43004300u, kHasZero ? 0xc300c300u : 0xc308c308u, t); }
};

// The bits of E4M3 under the exponent of f16 are 2^-8 of its number; the NaN code gets all ones there.
template <int Columns>
struct E4M3 {
  u32 w[4][Columns / 4];
  static const u8* at(const u8* all, i64 k, int c) { return all + k * kColumns + c; }
  void fetch(const u8* all, int k, int c) { byte_rows<Columns>(all, k, 4, kFeatures, c, w); }
  static u32 halves(u32 h) {
    const u32 size = h >> 1 & 0x3f803f80u;
    return (h & 0x80008000u) | size | ((size + 0x00800080u) & 0x40004000u);
  }
  f32 code(int r, int j) const {
    f16 x;
    x.bits = u16(halves((w[r][j / 4] >> (j % 4 * 8) & 255u) << 8));
    return as_f32(x);
  }
  u32 codes(int h, int j, f16) const { return halves(two_high(w[2 * h][j / 4], w[2 * h + 1][j / 4], j % 4)); }
  u32 codes(int h, int j, bf16 t) const { return pair(code(2 * h, j), code(2 * h + 1, j), t); }
};

// The high byte of an f16.
template <int Columns>
struct E5M2 {
  u32 w[4][Columns / 4];
  static const u8* at(const u8* all, i64 k, int c) { return all + k * kColumns + c; }
  void fetch(const u8* all, int k, int c) { byte_rows<Columns>(all, k, 4, kFeatures, c, w); }
  f32 code(int r, int j) const {
    f16 x;
    x.bits = u16((w[r][j / 4] >> (j % 4 * 8) & 255u) << 8);
    return as_f32(x);
  }
  u32 codes(int h, int j, f16) const { return two_high(w[2 * h][j / 4], w[2 * h + 1][j / 4], j % 4) & 0xff00ff00u; }
  u32 codes(int h, int j, bf16 t) const { return pair(code(2 * h, j), code(2 * h + 1, j), t); }
};

// E2M1, two rows in a byte. Its bits under the exponent of f16 are 2^-14 of its number, under those of bf16 and f32 2^-126; all are held as 2^-14.
template <int Columns>
struct E2M1 {
  u32 w[2][Columns / 4];
  static const u8* at(const u8* all, i64 k, int c) { return all + k / 2 * kColumns + c; }
  void fetch(const u8* all, int k, int c) { byte_rows<Columns>(all, k / 2, 2, (i64(kFeatures) + 1) / 2, c, w); }
  f32 code(int r, int j) const {
    const u32 x = w[r / 2][j / 4] >> (j % 4 * 8 + r % 2 * 4);
    return from_bits((x & 7u) << 22 | (x & 8u) << 28) * 5.192296858534828e33f;
  }
  u32 nibbles(int h, int j) const { return two_low(w[h][j / 4], w[h][j / 4] >> 4, j % 4); }
  u32 codes(int h, int j, f16) const {
    const u32 x = nibbles(h, j);
    return (x << 12 & 0x80008000u) | (x << 9 & 0x0e000e00u);
  }
  u32 codes(int h, int j, bf16 t) const {
    const u32 x = nibbles(h, j);
    return pair_product((x << 12 & 0x80008000u) | (x << 6 & 0x01c001c0u), 0x77807780u, t);
  }
};

// The factors and zeros of row k: [ceil(k / kGroup), n].
template <int Columns>
struct Scales {
  u32 s[Columns];
  u32 z[Columns];
  static void row(const f32* from, int c, u32* to) {
    if (kWide) {
      aligned_words<Columns>(reinterpret_cast<const u8*>(from + c), to);
      return;
    }
    for (int j = 0; j < Columns; ++j) to[j] = reinterpret_cast<const u32*>(from)[column_inside(c + j)];
  }
  void fetch(const Weights& all, int k, int c) {
    const i64 at = i64((k < kFeatures ? k : kFeatures - 1) / kGroup) * kColumns;
    row(static_cast<const f32*>(all.scale) + at, c, s);
    if (kHasZero) row(all.zero + at, c, z);
  }
  f32 scale(int j) const { return from_bits(s[j]); }
  f32 zero(int j) const { return from_bits(z[j]); }
};

// Factors of E4M3; the NaN code counts as 0.
template <int Columns>
struct E4M3Scales {
  u32 s[Columns / 4];
  void fetch(const Weights& all, int k, int c) {
    const i64 groups = (kFeatures + kGroup - 1) / kGroup;
    byte_rows<Columns>(static_cast<const u8*>(all.scale), (k < kFeatures ? k : kFeatures - 1) / kGroup, 1, groups, c, &s);
  }
  f32 scale(int j) const {
    const u32 x = s[j / 4] >> (j % 4 * 8) & 255u;
    return (x & 127u) == 127u ? 0.0f : from_bits((x & 127u) << 20 | (x & 128u) << 24) * 1.329227995784916e36f;
  }
  f32 zero(int) const { return 0.0f; }
};

struct NoScales {
  void fetch(const Weights&, int, int) {}
  f32 scale(int) const { return 1.0f; }
  f32 zero(int) const { return 0.0f; }
};

// The weight of a code in f32, with the bits that rlx/quant gives it but for kCodeUnit.
template <class Factors>
f32 weight_of(f32 code, const Factors& f, int j) {
  if (kGroup == 0) return code;
  return (kHasZero ? code - f.zero(j) : code) * f.scale(j);
}
)
// clang-format on

}  // namespace rlx::cuda
