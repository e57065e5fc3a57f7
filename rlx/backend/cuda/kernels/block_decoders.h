// Decoders of packed blocks (rlx/quant has the layouts), 32 weights at a time:
//
//   weight e of a strip = scale[e / 16] * code e + offset[e / 16]     e = 0 .. 31, codes i8, four in a word
//
// The products are rounded before the sums, so that a weight has the bits that rlx/quant gives it. A format is a struct
// with kBytes and kElements of a block, kApart where two strips so far apart share their bytes, kHalves (the halves of a strip have scales of their own), kOffsets (offsets are not
// all 0) and strip(block, s), strip s of a block. kAlign is what addresses of blocks are multiples of, at most.
//
// It is CUDA C++ as text, and valid C++: a test defines RLX_DEVICE_TEXT to keep it as code and runs it on the host.
#pragma once

#ifndef RLX_DEVICE_TEXT
#define RLX_DEVICE_TEXT(name, ...) inline constexpr char name[] = #__VA_ARGS__ "\n";
#endif

namespace rlx::cuda {

// clang-format off
RLX_DEVICE_TEXT(kBlockDecoders,
struct Strip { u32 code[8]; f32 scale[2]; f32 offset[2]; };

// What addresses `offset` behind a block are multiples of, up to 16.
constexpr int alignment_at(int bytes, int offset) {
  const int all = bytes | offset | 16 | kAlign;
  return all & -all;
}

// N words from an address that is a multiple of Align: whole words are read, of which the last only where it is needed.
template <int Align, int N>
void words(const u8* p, u32* to) {
  if (Align % 16 == 0 && N % 4 == 0) {
    for (int i = 0; i < N / 4; ++i) {
      const Pack<u32, 4> x = load<4>(reinterpret_cast<const u32*>(p) + 4 * i);
      for (int j = 0; j < 4; ++j) to[4 * i + j] = x.v[j];
    }
  } else if (Align % 4 == 0) {
    for (int i = 0; i < N; ++i) to[i] = reinterpret_cast<const u32*>(p)[i];
  } else {
    const u32 odd = u32(reinterpret_cast<u64>(p)) & 3u;
    const u32* const at = reinterpret_cast<const u32*>(p - odd);
    u32 now = at[0];
    for (int i = 0; i < N; ++i) {
      const u32 next = i + 1 < N || odd != 0 ? at[i + 1] : 0u;
      to[i] = __funnelshift_r(now, next, odd * 8);
      now = next;
    }
  }
}
// At an even place of a block of an even size.
inline u32 two_bytes(const u8* p) {
  return kAlign % 2 == 0 ? *reinterpret_cast<const u16*>(p) : u32(p[0]) | u32(p[1]) << 8;
}
inline f32 half_at(const u8* p) { f16 h; h.bits = u16(two_bytes(p)); return as_f32(h); }
inline u32 byte_of(u32 word, int i) { return word >> (8 * i) & 255u; }

// Bytes 0 .. 127 less n each, as signed bytes; n has the same byte four times.
inline u32 less(u32 x, u32 n) { return ((x | 0x80808080u) - n) ^ 0x80808080u; }
// Bits 0 .. 3 as bytes of ones.
inline u32 byte_mask(u32 bits) { return ((bits & 15u) * 0x00204081u & 0x01010101u) * 255u; }
// Bytes 1 .. 127 with the signs of bits 0 .. 3.
inline u32 with_signs(u32 x, u32 bits) {
  const u32 m = byte_mask(bits);
  return (x ^ m) + (m & 0x01010101u);
}
// Sixteen bytes, of which each byte 0 .. 15 of `x` picks one.
inline u32 look_up(u32 x, u32 t0, u32 t1, u32 t2, u32 t3) {
  const u32 near = x | x >> 4;
  const u32 pick = (near & 0xffu) | (near >> 8 & 0xff00u);
  const u32 low = __byte_perm(t0, t1, pick & 0x7777u);
  const u32 high = __byte_perm(t2, t3, pick & 0x7777u);
  const u32 m = (x >> 3 & 0x01010101u) * 255u;
  return (low & ~m) | (high & m);
}
inline u32 iq4_codes(u32 x) { return look_up(x, 0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u); }
// Twice the numbers of E2M1.
inline u32 e2m1_codes(u32 x) { return look_up(x, 0x03020100u, 0x0c080604u, 0xfdfeff00u, 0xf4f8fafcu); }

// Sixteen bytes of nibbles: the low ones are elements 0 .. 15, the high ones 16 .. 31.
inline void nibbles(const u32* w, Strip& s) {
  for (int i = 0; i < 4; ++i) {
    s.code[i] = w[i] & 0x0f0f0f0fu;
    s.code[4 + i] = w[i] >> 4 & 0x0f0f0f0fu;
  }
}
inline void all_scaled(Strip& s, f32 scale, f32 offset) {
  s.scale[0] = s.scale[1] = scale;
  s.offset[0] = s.offset[1] = offset;
}
inline void in_halves(Strip& s, f32 first, f32 second) {
  s.scale[0] = first;
  s.scale[1] = second;
  s.offset[0] = s.offset[1] = 0.0f;
}

// d (m) | fifth bits | nibbles; Fifth, Min say which of them there are.
template <bool Fifth, bool Min>
struct Linear {
  static constexpr int kCodes = (Min ? 4 : 2) + (Fifth ? 4 : 0);
  static constexpr int kBytes = kCodes + 16;
  static constexpr int kElements = 32;
  static constexpr bool kHalves = false;
  static constexpr bool kOffsets = Min;
  static Strip strip(const u8* b, int) {
    Strip s;
    u32 w[4];
    words<alignment_at(kBytes, kCodes), 4>(b + kCodes, w);
    nibbles(w, s);
    if (Fifth) {
      u32 bits;
      words<alignment_at(kBytes, kCodes - 4), 1>(b + kCodes - 4, &bits);
      for (int i = 0; i < 8; ++i) s.code[i] |= byte_mask(bits >> (4 * i)) & 0x10101010u;
    }
    if (!Min)
      for (int i = 0; i < 8; ++i) s.code[i] = less(s.code[i], Fifth ? 0x10101010u : 0x08080808u);
    all_scaled(s, half_at(b), Min ? half_at(b + 2) : 0.0f);
    return s;
  }
};
typedef Linear<false, false> Q4_0;
typedef Linear<false, true> Q4_1;
typedef Linear<true, false> Q5_0;
typedef Linear<true, true> Q5_1;

// d (sum) | 32 codes.
template <int Codes>
struct Bytes32 {
  static constexpr int kBytes = Codes + 32;
  static constexpr int kElements = 32;
  static constexpr bool kHalves = false;
  static constexpr bool kOffsets = false;
  static Strip strip(const u8* b, int) {
    Strip s;
    words<alignment_at(kBytes, Codes), 8>(b + Codes, s.code);
    all_scaled(s, half_at(b), 0.0f);
    return s;
  }
};
typedef Bytes32<2> Q8_0;
typedef Bytes32<4> Q8_1;

struct Q8_K {
  static constexpr int kBytes = 292;
  static constexpr int kElements = 256;
  static constexpr bool kHalves = false;
  static constexpr bool kOffsets = false;
  static Strip strip(const u8* b, int k) {
    Strip s;
    u32 d;
    words<alignment_at(kBytes, 0), 1>(b, &d);
    words<alignment_at(kBytes, 4), 8>(b + 4 + 32 * k, s.code);
    all_scaled(s, from_bits(d), 0.0f);
    return s;
  }
};

// Four codes of two bits in a byte: strip k of a block is plane k % 4 of half k / 4.
inline void two_bits(u32* code, int k) {
  for (int i = 0; i < 8; ++i) code[i] = code[i] >> (2 * (k % 4)) & 0x03030303u;
}

struct Q2_K {
  static constexpr int kBytes = 84;
  static constexpr int kElements = 256;
  static constexpr bool kHalves = true;
  static constexpr bool kOffsets = true;
  static Strip strip(const u8* b, int k) {
    Strip s;
    words<alignment_at(kBytes, 16), 8>(b + 16 + k / 4 * 32, s.code);
    two_bits(s.code, k);
    const f32 d = half_at(b + 80);
    const f32 least = half_at(b + 82);
    for (int h = 0; h < 2; ++h) {
      const u32 x = b[2 * k + h];
      s.scale[h] = d * f32(x & 15u);
      s.offset[h] = -(least * f32(x >> 4));
    }
    return s;
  }
};

struct Q3_K {
  static constexpr int kBytes = 110;
  static constexpr int kElements = 256;
  static constexpr bool kHalves = true;
  static constexpr bool kOffsets = false;
  static f32 scale_of(const u8* scales, int i) {
    const u32 bottom = i < 8 ? scales[i] & 15u : u32(scales[i - 8]) >> 4;
    const u32 top = u32(scales[8 + i % 4]) >> (2 * (i / 4)) & 3u;
    return f32(i32(bottom | top << 4) - 32);
  }
  static Strip strip(const u8* b, int k) {
    Strip s;
    u32 high[8];
    words<alignment_at(kBytes, 0), 8>(b, high);
    words<alignment_at(kBytes, 32), 8>(b + 32 + k / 4 * 32, s.code);
    two_bits(s.code, k);
    for (int i = 0; i < 8; ++i) s.code[i] = less(s.code[i] | (high[i] >> k & 0x01010101u) << 2, 0x04040404u);
    const f32 d = half_at(b + 108);
    in_halves(s, d * scale_of(b + 96, 2 * k), d * scale_of(b + 96, 2 * k + 1));
    return s;
  }
};

// Pairs of strips that share bytes: which pair of a row a strip belongs to, and whether it is its second.
inline int pair_of(int apart, int strip) { return strip / (2 * apart) * apart + strip % apart; }
inline int place_in_pair(int apart, int strip) { return strip / apart % 2; }

// d | dmin | 12 bytes of scales and mins: those of strips 2 t and 2 t + 1, as bytes 0 and 1.
inline void two_scales(const u32* head, int t, u32& scales, u32& mins) {
  const int by = t % 2 * 16;
  const u32 x = head[1] >> by;
  const u32 y = head[2] >> by;
  const u32 z = head[3] >> by;
  scales = t < 2 ? x & 0x3f3fu : (z & 0x0f0fu) | (x >> 2 & 0x3030u);
  mins = t < 2 ? y & 0x3f3fu : (z >> 4 & 0x0f0fu) | (y >> 2 & 0x3030u);
}

// The same | fifth bits | nibbles
template <bool Fifth>
struct FourBitsK {
  static constexpr int kCodes = Fifth ? 48 : 16;
  static constexpr int kBytes = kCodes + 128;
  static constexpr int kElements = 256;
  static constexpr int kApart = 1;
  static constexpr bool kHalves = false;
  static constexpr bool kOffsets = true;
  static Strip strip(const u8* b, int k) {
    Strip s;
    u32 head[4];
    words<alignment_at(kBytes, 0), 4>(b, head);
    words<alignment_at(kBytes, kCodes), 8>(b + kCodes + k / 2 * 32, s.code);
    for (int i = 0; i < 8; ++i) s.code[i] = s.code[i] >> (4 * (k % 2)) & 0x0f0f0f0fu;
    if (Fifth) {
      u32 fifth[8];
      words<alignment_at(kBytes, 16), 8>(b + 16, fifth);
      for (int i = 0; i < 8; ++i) s.code[i] |= (fifth[i] >> k & 0x01010101u) << 4;
    }
    u32 scales;
    u32 mins;
    two_scales(head, k / 2, scales, mins);
    const u32 scale = byte_of(scales, k % 2);
    const u32 least = byte_of(mins, k % 2);
    f16 d;
    f16 m;
    d.bits = u16(head[0]);
    m.bits = u16(head[0] >> 16);
    all_scaled(s, as_f32(d) * f32(scale), -(as_f32(m) * f32(least)));
    return s;
  }
};
typedef FourBitsK<false> Q4_K;
typedef FourBitsK<true> Q5_K;

struct Q6_K {
  static constexpr int kBytes = 210;
  static constexpr int kElements = 256;
  static constexpr int kApart = 2;
  static constexpr bool kHalves = true;
  static constexpr bool kOffsets = false;
  static Strip strip(const u8* b, int k) {
    Strip s;
    u32 high[8];
    words<alignment_at(kBytes, 32), 8>(b + k / 4 * 64 + k % 2 * 32, s.code);
    words<alignment_at(kBytes, 128), 8>(b + 128 + k / 4 * 32, high);
    for (int i = 0; i < 8; ++i) {
      const u32 low = s.code[i] >> (k % 4 / 2 * 4) & 0x0f0f0f0fu;
      s.code[i] = less(low | (high[i] >> (2 * (k % 4)) & 0x03030303u) << 4, 0x20202020u);
    }
    const f32 d = half_at(b + 208);
    in_halves(s, d * f32(i8(b[192 + 2 * k])), d * f32(i8(b[193 + 2 * k])));
    return s;
  }
};

struct IQ4_NL {
  static constexpr int kBytes = 18;
  static constexpr int kElements = 32;
  static constexpr bool kHalves = false;
  static constexpr bool kOffsets = false;
  static Strip strip(const u8* b, int) {
    Strip s;
    u32 w[4];
    words<alignment_at(kBytes, 2), 4>(b + 2, w);
    nibbles(w, s);
    for (int i = 0; i < 8; ++i) s.code[i] = iq4_codes(s.code[i]);
    all_scaled(s, half_at(b), 0.0f);
    return s;
  }
};

struct IQ4_XS {
  static constexpr int kBytes = 136;
  static constexpr int kElements = 256;
  static constexpr bool kHalves = false;
  static constexpr bool kOffsets = false;
  static Strip strip(const u8* b, int k) {
    Strip s;
    u32 w[4];
    words<alignment_at(kBytes, 8), 4>(b + 8 + 16 * k, w);
    nibbles(w, s);
    for (int i = 0; i < 8; ++i) s.code[i] = iq4_codes(s.code[i]);
    const u32 bottom = u32(b[4 + k / 2]) >> (4 * (k % 2)) & 15u;
    const u32 top = two_bytes(b + 2) >> (2 * k) & 3u;
    all_scaled(s, half_at(b) * f32(i32(bottom | top << 4) - 32), 0.0f);
    return s;
  }
};

struct MXFP4 {
  static constexpr int kBytes = 17;
  static constexpr int kElements = 32;
  static constexpr bool kHalves = false;
  static constexpr bool kOffsets = false;
  static Strip strip(const u8* b, int) {
    Strip s;
    u32 w[4];
    words<1, 4>(b + 1, w);
    nibbles(w, s);
    for (int i = 0; i < 8; ++i) s.code[i] = e2m1_codes(s.code[i]);
    // 2^(e - 128), for codes are doubled; the smallest two are subnormal.
    const u32 e = b[0];
    all_scaled(s, from_bits(e >= 2 ? (e - 1) << 23 : 0x00200000u << e), 0.0f);
    return s;
  }
};

struct NVFP4 {
  static constexpr int kBytes = 36;
  static constexpr int kElements = 64;
  static constexpr bool kHalves = true;
  static constexpr bool kOffsets = false;
  static f32 half_scale(u32 code) {  // E4M3 without its sign; the NaN code counts as 0
    code &= 127u;
    if (code == 127u) return 0.0f;
    const u32 exponent = code >> 3;
    return exponent == 0 ? f32(code & 7u) * 0.0009765625f : from_bits((exponent + 119u) << 23 | (code & 7u) << 20);
  }
  static Strip strip(const u8* b, int k) {
    Strip s;
    u32 w[4];
    words<alignment_at(kBytes, 4), 4>(b + 4 + 16 * k, w);
    for (int h = 0; h < 2; ++h) {
      for (int i = 0; i < 2; ++i) {
        s.code[4 * h + i] = e2m1_codes(w[2 * h + i] & 0x0f0f0f0fu);
        s.code[4 * h + 2 + i] = e2m1_codes(w[2 * h + i] >> 4 & 0x0f0f0f0fu);
      }
    }
    in_halves(s, half_scale(b[2 * k]), half_scale(b[2 * k + 1]));
    return s;
  }
};

struct TQ2_0 {
  static constexpr int kBytes = 66;
  static constexpr int kElements = 256;
  static constexpr bool kHalves = false;
  static constexpr bool kOffsets = false;
  static Strip strip(const u8* b, int k) {
    Strip s;
    words<alignment_at(kBytes, 32), 8>(b + k / 4 * 32, s.code);
    two_bits(s.code, k);
    for (int i = 0; i < 8; ++i) s.code[i] = less(s.code[i], 0x01010101u);
    all_scaled(s, half_at(b + 64), 0.0f);
    return s;
  }
};

struct TQ1_0 {
  static constexpr int kBytes = 54;
  static constexpr int kElements = 256;
  static constexpr bool kHalves = false;
  static constexpr bool kOffsets = false;
  // Digit k of the base-3 fractions in four bytes, less 1.
  static u32 digits(u32 w, int k) {
    const u32 power = k == 0 ? 1u : k == 1 ? 3u : k == 2 ? 9u : k == 3 ? 27u : 81u;
    const u32 even = ((w & 0x00ff00ffu) * power & 0x00ff00ffu) * 3u >> 8 & 0x00ff00ffu;
    const u32 odd = ((w >> 8 & 0x00ff00ffu) * power & 0x00ff00ffu) * 3u >> 8 & 0x00ff00ffu;
    return less(even | odd << 8, 0x01010101u);
  }
  static Strip strip(const u8* b, int k) {
    Strip s;
    u32 w[8];
    if (k < 5) {
      words<alignment_at(kBytes, 0), 8>(b, w);
      for (int i = 0; i < 8; ++i) s.code[i] = digits(w[i], k);
    } else {
      words<alignment_at(kBytes, 32), 5>(b + 32, w);
      for (int i = 0; i < 4; ++i) {
        s.code[i] = digits(w[i], 2 * (k - 5));
        s.code[4 + i] = k < 7 ? digits(w[i], 2 * (k - 5) + 1) : digits(w[4], i);
      }
    }
    all_scaled(s, half_at(b + 52), 0.0f);
    return s;
  }
};
)

// Before it stand the words of the codebook, `points`: two for a point of eight elements, one for a point of four. Those of
// iq1 are 8 more than their numbers.
RLX_DEVICE_TEXT(kGridDecoders,
inline u32 even_signs(u32 seven) { return seven | (u32(__popc(seven)) & 1u) << 7; }

inline void put_eight(Strip& s, int octet, u32 index, u32 signs) {
  s.code[2 * octet] = with_signs(points[2 * index], signs);
  s.code[2 * octet + 1] = with_signs(points[2 * index + 1], signs >> 4);
}
inline void put_shifted(Strip& s, int octet, u32 index, bool negative) {
  const u32 n = negative ? 0x09090909u : 0x07070707u;
  s.code[2 * octet] = less(points[2 * index], n);
  s.code[2 * octet + 1] = less(points[2 * index + 1], n);
}
inline f32 grid_scale(f32 d, u32 s, f32 unit) { return d * (f32(2 * s + 1) * unit); }
inline u32 nibble_at(const u8* p, int i) { return u32(p[i / 2]) >> (4 * (i % 2)) & 15u; }

struct IQ1_S {
  static constexpr int kBytes = 50;
  static constexpr int kElements = 256;
  static constexpr bool kHalves = false;
  static constexpr bool kOffsets = false;
  static Strip strip(const u8* b, int k) {
    Strip s;
    const u32 h = two_bytes(b + 34 + 2 * k);
    for (int l = 0; l < 4; ++l) put_shifted(s, l, b[2 + 4 * k + l] | (h >> (3 * l) & 7u) << 8, h >> 15 != 0);
    all_scaled(s, grid_scale(half_at(b), h >> 12 & 7u, 0.125f), 0.0f);
    return s;
  }
};

struct IQ1_M {
  static constexpr int kBytes = 56;
  static constexpr int kElements = 256;
  static constexpr bool kHalves = true;
  static constexpr bool kOffsets = false;
  static Strip strip(const u8* b, int k) {
    Strip s;
    f16 d;
    d.bits = 0;
    for (int i = 0; i < 4; ++i) d.bits = u16(d.bits | two_bytes(b + 48 + 2 * i) >> 12 << (4 * i));
    for (int l = 0; l < 4; ++l) {
      const u32 top = nibble_at(b + 32, 4 * k + l);
      put_shifted(s, l, b[4 * k + l] | (top & 7u) << 8, (top & 8u) != 0);
    }
    const u32 both = two_bytes(b + 48 + k / 2 * 2) >> (6 * (k % 2));
    in_halves(s, grid_scale(as_f32(d), both & 7u, 0.125f), grid_scale(as_f32(d), both >> 3 & 7u, 0.125f));
    return s;
  }
};

struct IQ2_XXS {
  static constexpr int kBytes = 66;
  static constexpr int kElements = 256;
  static constexpr bool kHalves = false;
  static constexpr bool kOffsets = false;
  static Strip strip(const u8* b, int k) {
    Strip s;
    u32 w[2];
    words<alignment_at(kBytes, 2), 2>(b + 2 + 8 * k, w);
    for (int l = 0; l < 4; ++l) put_eight(s, l, byte_of(w[0], l), even_signs(w[1] >> (7 * l) & 127u));
    all_scaled(s, grid_scale(half_at(b), w[1] >> 28, 0.125f), 0.0f);
    return s;
  }
};

struct IQ2_XS {
  static constexpr int kBytes = 74;
  static constexpr int kElements = 256;
  static constexpr bool kHalves = true;
  static constexpr bool kOffsets = false;
  static Strip strip(const u8* b, int k) {
    Strip s;
    u32 w[2];
    words<alignment_at(kBytes, 2), 2>(b + 2 + 8 * k, w);
    for (int l = 0; l < 4; ++l) {
      const u32 x = w[l / 2] >> (16 * (l % 2)) & 0xffffu;
      put_eight(s, l, x & 511u, even_signs(x >> 9));
    }
    const u32 both = b[66 + k];
    in_halves(s, grid_scale(half_at(b), both & 15u, 0.125f), grid_scale(half_at(b), both >> 4, 0.125f));
    return s;
  }
};

struct IQ2_S {
  static constexpr int kBytes = 82;
  static constexpr int kElements = 256;
  static constexpr bool kHalves = true;
  static constexpr bool kOffsets = false;
  static Strip strip(const u8* b, int k) {
    Strip s;
    const u32 high = b[66 + k];
    for (int l = 0; l < 4; ++l)
      put_eight(s, l, b[2 + 4 * k + l] | (high >> (2 * l) & 3u) << 8, b[34 + 4 * k + l]);
    const u32 both = b[74 + k];
    in_halves(s, grid_scale(half_at(b), both & 15u, 0.125f), grid_scale(half_at(b), both >> 4, 0.125f));
    return s;
  }
};

struct IQ3_XXS {
  static constexpr int kBytes = 98;
  static constexpr int kElements = 256;
  static constexpr bool kHalves = false;
  static constexpr bool kOffsets = false;
  static Strip strip(const u8* b, int k) {
    Strip s;
    u32 w[2];
    u32 tail;
    words<alignment_at(kBytes, 2), 2>(b + 2 + 8 * k, w);
    words<alignment_at(kBytes, 66), 1>(b + 66 + 4 * k, &tail);
    for (int i = 0; i < 8; ++i) {
      const u32 signs = even_signs(tail >> (7 * (i / 2)) & 127u);
      s.code[i] = with_signs(points[byte_of(w[i / 4], i % 4)], signs >> (4 * (i % 2)));
    }
    all_scaled(s, grid_scale(half_at(b), tail >> 28, 0.25f), 0.0f);
    return s;
  }
};

struct IQ3_S {
  static constexpr int kBytes = 110;
  static constexpr int kElements = 256;
  static constexpr bool kHalves = false;
  static constexpr bool kOffsets = false;
  static Strip strip(const u8* b, int k) {
    Strip s;
    u32 w[2];
    u32 signs;
    words<alignment_at(kBytes, 2), 2>(b + 2 + 8 * k, w);
    words<alignment_at(kBytes, 74), 1>(b + 74 + 4 * k, &signs);
    const u32 high = b[66 + k];
    for (int i = 0; i < 8; ++i)
      s.code[i] = with_signs(points[byte_of(w[i / 4], i % 4) | (high >> i & 1u) << 8], signs >> (4 * i));
    all_scaled(s, grid_scale(half_at(b), nibble_at(b + 106, k), 1.0f), 0.0f);
    return s;
  }
};
)
// clang-format on

}  // namespace rlx::cuda
