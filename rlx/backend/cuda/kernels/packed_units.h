// What a thread takes of a row of packed weights at once where activations are codes of 8 bits: a unit. Of most formats it is one strip (block_decoders.h); those here multiply their codes as they lie, without
// what would make signed bytes of them, and strips that share bytes are one unit:
//   sum of (c p) q over a unit is one whole number, with codes of high nibbles left 16 times as large, and c the scales of strips
//   what is added to all codes of a strip (least values, or the 8 less of q4_0) is multiplied with the sum of its q
// Sums of q are kept as `keep` writes them. After kPackedShared, with kInUnits: there are such units of this format and they are to be taken.
#pragma once

namespace rlx::cuda {

inline constexpr char kPackedUnits[] = R"cuda(
// Four bytes without a sign by four with one; two numbers of 16 bits by the first two bytes.
inline i32 dot4_positive(u32 a, u32 b, i32 sum) {
  i32 out;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(sum));
  return out;
}
inline i32 dot2(u32 a, u32 b, i32 sum) {
  i32 out;
  asm("dp2a.lo.s32.s32 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(sum));
  return out;
}

// Of all other formats there is none.
template <class F> struct Unit {
  static constexpr int kStrips = 1;
  Unit(const u8*, int) {}
  template <int N> f32 times(const Pack<u32, 4> (&)[N], const i32*, int) const { return 0; }
  static void keep(i32*, int, int, i32, i32) {}
};

// 32 bytes of nibbles: strips 2 u and 2 u + 1 of a row.
template <bool Fifth> struct Unit<FourBitsK<Fifth>> {
  static constexpr int kStrips = 2;
  u32 low[8], high[8], leasts;
  i32 scale[2];
  f32 d, e;
  Unit(const u8* row, int u) {
    typedef FourBitsK<Fifth> F;
    const u8* const b = row + i64(u / 4) * F::kBytes;
    const int t = u % 4;
    u32 head[4], code[8], scales;
    words<alignment_at(F::kBytes, 0), 4>(b, head);
    words<alignment_at(F::kBytes, F::kCodes), 8>(b + F::kCodes + 32 * t, code);
    two_scales(head, t, scales, leasts);
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      low[i] = code[i] & 0x0f0f0f0fu;
      high[i] = Fifth ? code[i] >> 4 & 0x0f0f0f0fu : code[i] & 0xf0f0f0f0u;
    }
    if (Fifth) {
      u32 fifth[8];
      words<alignment_at(F::kBytes, 16), 8>(b + 16, fifth);
      #pragma unroll
      for (int i = 0; i < 8; ++i) {
        const u32 bits = fifth[i] >> (2 * t);
        low[i] |= (bits & 0x01010101u) << 4, high[i] |= (bits & 0x02020202u) << 3;
      }
    }
    scale[0] = i32(scales & 255u) << (Fifth ? 0 : 4), scale[1] = i32(scales >> 8);
    f16 h;
    h.bits = u16(head[0]);
    d = as_f32(h) * (Fifth ? 1.0f : 0.0625f);
    h.bits = u16(head[0] >> 16);
    e = as_f32(h);
  }
  template <int N> f32 times(const Pack<u32, 4> (&q)[N], const i32* sums, int at) const {
    i32 first = 0, second = 0;
    #pragma unroll
    for (int i = 0; i < 8; ++i) first = dot4(low[i], q[i / 4].v[i % 4], first), second = dot4_positive(high[i], q[2 + i / 4].v[i % 4], second);
    return fmaf(-e, f32(dot2(u32(sums[at]), leasts, 0)), d * f32(first * scale[0] + second * scale[1]));
  }
  static void keep(i32* sums, int at, int place, i32 first, i32 second) { reinterpret_cast<i16*>(sums + at)[place] = i16(first + second); }
};

// d | nibbles, less 8
template <> struct Unit<Linear<false, false>> {
  static constexpr int kStrips = 1;
  u32 low[4], high[4];
  f32 d;
  Unit(const u8* row, int u) {
    typedef Linear<false, false> F;
    const u8* const b = row + i64(u) * F::kBytes;
    u32 code[4];
    words<alignment_at(F::kBytes, F::kCodes), 4>(b + F::kCodes, code);
    #pragma unroll
    for (int i = 0; i < 4; ++i) low[i] = code[i] & 0x0f0f0f0fu, high[i] = code[i] & 0xf0f0f0f0u;
    d = half_at(b) * 0.0625f;
  }
  template <int N> f32 times(const Pack<u32, 4> (&q)[N], const i32* sums, int at) const {
    i32 first = 0, second = sums[at];
    #pragma unroll
    for (int i = 0; i < 4; ++i) first = dot4(low[i], q[0].v[i], first), second = dot4_positive(high[i], q[1].v[i], second);
    return d * f32(first * 16 + second);
  }
  static void keep(i32* sums, int at, int, i32 first, i32 second) { sums[at] = -128 * (first + second); }
};

// 32 bytes of low bits and 32 of high ones, less 32, with a scale for each 16: strips 4 h + j and 4 h + j + 2 of a block.
template <> struct Unit<Q6_K> {
  static constexpr int kStrips = 2;
  u32 low[8], high[8], scales[2];
  f32 d;
  Unit(const u8* row, int u) {
    const u8* const b = row + i64(u / 4) * Q6_K::kBytes;
    const int h = u % 4 / 2, j = u % 2;
    u32 code[8], top[8];
    words<alignment_at(Q6_K::kBytes, 32), 8>(b + 64 * h + 32 * j, code);
    words<alignment_at(Q6_K::kBytes, 128), 8>(b + 128 + 32 * h, top);
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      const u32 bits = top[i] >> (2 * j);
      low[i] = (code[i] & 0x0f0f0f0fu) | (bits & 0x03030303u) << 4, high[i] = (code[i] >> 4 & 0x0f0f0f0fu) | (bits & 0x30303030u);
    }
    scales[0] = two_bytes(b + 192 + 8 * h + 2 * j), scales[1] = two_bytes(b + 196 + 8 * h + 2 * j);
    d = half_at(b + 208);
  }
  template <int N> f32 times(const Pack<u32, 4> (&q)[N], const i32* sums, int at) const {
    i32 all = 0, less = 0;
    #pragma unroll
    for (int p = 0; p < 2; ++p) {
      i32 first = 0, second = 0;
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        first = dot4((p == 0 ? low : high)[i], q[2 * p].v[i], first);
        second = dot4((p == 0 ? low : high)[4 + i], q[2 * p + 1].v[i], second);
      }
      all += first * i32(i8(scales[p])) + second * i32(i8(scales[p] >> 8));
      less = dot2(u32(sums[2 * at + p]), scales[p], less);
    }
    return d * f32(all - 32 * less);
  }
  static void keep(i32* sums, int at, int place, i32 first, i32 second) { sums[2 * at + place] = i32(u32(first) & 65535u | u32(second) << 16); }
};

constexpr int kUnitStrips = kInUnits ? Unit<Format>::kStrips : 1, kUnits = kStrips / kUnitStrips;
template <class F, int kStripsOfUnit> struct UnitPlaces {
  static int unit(int strip) { return pair_of(F::kApart, strip); }
  static int place(int strip) { return place_in_pair(F::kApart, strip); }
};
template <class F> struct UnitPlaces<F, 1> {
  static int unit(int strip) { return strip; }
  static int place(int) { return 0; }
};
inline int unit_of(int strip) { return UnitPlaces<Format, kUnitStrips>::unit(strip); }
inline int place_in_unit(int strip) { return UnitPlaces<Format, kUnitStrips>::place(strip); }
)cuda";

}  // namespace rlx::cuda
