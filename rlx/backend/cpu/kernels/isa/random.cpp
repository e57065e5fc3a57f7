// Plan: Philox4x32-10 needs two 32 x 32 -> 64 bit products in each of ten rounds for four words. Each counter
// word lies in the low half of a 64-bit lane, one block a lane: the product instruction reads only that half,
// so neither its result nor the exclusive-or of a stale upper half has to be cleaned, and a round is two
// products, two shifts and four exclusive-ors (two three-way ones with AVX-512). Two groups of blocks run
// side by side to hide the latency of the chain.
//
// A round of kLanes blocks makes 4 kLanes words in order of the elements: a buffer of the stack, then the
// numbers, straight to memory for whole vectors; past the caches for large fills of bits and f32 uniform
// numbers. Bound: arithmetic, about 45 cycles for 128 bytes on 512-bit registers split in halves; the store
// bandwidth where there are enough threads.
#include "rlx/backend/cpu/kernels/random.h"

#include "rlx/backend/cpu/simd/math.h"
#include "rlx/backend/cpu/simd/narrow.h"
#include "rlx/backend/cpu/simd/shuffle.h"

namespace rlx::cpu::RLX_ISA {
namespace {

typedef uint64_t U64 __attribute__((vector_size(kVectorBytes)));

constexpr int kBlocks = 2 * kLanes64;  // = kLanes: blocks made at once
constexpr int kWords = 4 * kBlocks;

/// The product of the low halves of the lanes.
RLX_INLINE U64 product_low(U64 a, U64 b) {
#if defined(RLX_AVX512)
  return (U64)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(RLX_AVX2)
  return (U64)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
  return (U64)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
  return (U64)vmull_u32(vmovn_u64((uint64x2_t)a), vmovn_u64((uint64x2_t)b));
#endif
}

struct Blocks {
  U64 w[4];
};

RLX_INLINE void philox_round(Blocks& c, uint32_t key0, uint32_t key1) {
  const U64 p0 = product_low(c.w[0], U64{} + 0xD2511F53u), p1 = product_low(c.w[2], U64{} + 0xCD9E8D57u);
  c.w[0] = (p1 >> 32) ^ c.w[1] ^ (U64{} + key0);
  c.w[2] = (p0 >> 32) ^ c.w[3] ^ (U64{} + key1);
  c.w[1] = p1;
  c.w[3] = p0;
}

/// Whether to write past the caches: when they could not hold the result, and the vectors are aligned.
RLX_INLINE bool streams(const RandomFill& p, const void* y, size_t size) {
  constexpr int64_t held = int64_t(8) << 20;
  return p.count * int64_t(size) > held && uintptr_t(y) % kVectorBytes == 0;
}

/// Words of the blocks in order of the lanes: w0 w1 w2 w3 of the first, then of the next.
template <bool streamed = false>
RLX_INLINE void store_words(const Blocks& c, uint32_t* to) {
  constexpr uint64_t low = 0xffffffffu;
  const U64 a = (c.w[0] & low) | (c.w[1] << 32), b = (c.w[2] & low) | (c.w[3] << 32);
  I64 first, second;
  for (int i = 0; i < kLanes64; ++i) {
    first[i] = i / 2 + i % 2 * kLanes64;
    second[i] = first[i] + kLanes64 / 2;
  }
  const U64 x = shuffle(a, b, (U64)first), y = shuffle(a, b, (U64)second);
  if constexpr (streamed) {
    stream(reinterpret_cast<float*>(to), (F32)x);
    stream(reinterpret_cast<float*>(to + kLanes), (F32)y);
  } else {
    std::memcpy(to, &x, sizeof x);
    std::memcpy(to + kLanes, &y, sizeof y);
  }
}

/// The kWords words of blocks index ... index + kBlocks - 1.
template <bool streamed = false>
RLX_INLINE void make_words(uint64_t key, uint64_t counter, uint64_t index, uint32_t* to) {
  U64 lane;
  for (int i = 0; i < kLanes64; ++i) lane[i] = uint64_t(i);
  Blocks c[2];
  for (int g = 0; g < 2; ++g) {
    const U64 place = lane + (index + uint64_t(g * kLanes64));
    c[g] = {{place, place >> 32, U64{} + counter, U64{} + (counter >> 32)}};
  }
  uint32_t key0 = uint32_t(key), key1 = uint32_t(key >> 32);
  for (int round = 0; round < 10; ++round, key0 += 0x9E3779B9u, key1 += 0xBB67AE85u) {
    philox_round(c[0], key0, key1);
    philox_round(c[1], key0, key1);
  }
  store_words<streamed>(c[0], to);
  store_words<streamed>(c[1], to + kWords / 2);
}

RLX_INLINE I32 load_words(const uint32_t* p) { return load_bytes<I32>(p); }

/// The top `bits` of each word as a fraction of 2^bits.
RLX_INLINE F32 unit_interval(I32 words, int bits) {
  const F32 whole = to_float((I32)((U32)words >> (32 - bits)));  // below 2^24: positive and exact
  return whole * power_of_two(I32{} - bits);
}

RLX_INLINE F64 to_real(I64 v) { return __builtin_convertvector(v, F64); }

/// [0, 1) of 53 bits for each pair of words: 27 from the first, 26 from the second.
RLX_INLINE F64 unit_interval64(const uint32_t* words) {
  const U64 pair = load_bytes<U64>(words);
  const U64 first = (pair & 0xffffffffu) >> 5, second = pair >> 38;
  return to_real((I64)first) * 0x1p-27 + to_real((I64)second) * 0x1p-53;
}

/// cos x for 0 <= x <= 6.3. The multiple of pi/2 nearest to x is at most 4, so taking it away in two parts,
/// the first of 22 bits, leaves what f32 can hold.
RLX_INLINE F32 cos_turn(F32 x) {
  const F32 n = round_small(x * 0.636619772f);
  const F32 r = fma(n, set1(-3.13916473e-07f), fma(n, set1(-1.57079601f), x)), z = r * r;
  const F32 s = fma(r * z, polynomial(z, {-1.f / 6, 1.f / 120, -1.f / 5040, 1.f / 362880}), r);
  const F32 c = fma(z * z, polynomial(z, {1.f / 24, -1.f / 720, 1.f / 40320, -1.f / 3628800}),
                    fma(z, set1(-0.5f), set1(1.0f)));
  const I32 k = to_int(n) + 1;
  const F32 y = (k & 1) != 0 ? c : s;
  return (F32)((I32)y ^ ((k & 2) << 30));
}

/// Even and odd words of two vectors, each as its own vector.
RLX_INLINE void split_pairs(const uint32_t* words, I32& even, I32& odd) {
  const I32 a = load_words(words), b = load_words(words + kLanes);
  I32 at;
  for (int i = 0; i < kLanes; ++i) at[i] = 2 * i;
  even = shuffle(a, b, at);
  odd = shuffle(a, b, at + 1);
}

RLX_INLINE F32 normal(const uint32_t* words, float mean, float deviation) {
  I32 even, odd;
  split_pairs(words, even, odd);
  const F32 u = unit_interval(even, 24), v = unit_interval(odd, 24);
  const F32 radius = sqrt(-2.0f * log_positive(1.0f - u));  // 1 - u >= 2^-24
  return mean + deviation * (radius * cos_turn(v * 6.28318531f));
}

/// Rounded to the narrow type and back.
template <class Narrow>
RLX_INLINE F32 rounded(F32 x) {
  Narrow buffer[kLanes];
  store(buffer, x);
  return load(buffer);
}
template <>
RLX_INLINE F32 rounded<float>(F32 x) {
  return x;
}

/// number(words) makes a vector of `lanes` elements of T from words_each words for each of them, in order.
template <class T, int words_each, int lanes, bool streamed = false, class Number>
RLX_INLINE void fill_with(uint64_t key, uint64_t counter, int64_t begin, int64_t end, T* y, Number number) {
  alignas(64) uint32_t words[kWords];
  alignas(64) T buffer[kWords / words_each];
  constexpr int made = kWords / words_each;
  for (int64_t e = begin; e < end; e += made) {
    make_words(key, counter, uint64_t(e) * words_each / 4, words);
    const bool whole = e + made <= end;
    T* to = whole ? y + e : buffer;
    for (int i = 0; i < made; i += lanes) {
      if constexpr (streamed) {
        stream(to + i, number(words + i * words_each));
      } else {
        store(to + i, number(words + i * words_each));
      }
    }
    if (!whole) std::memcpy(y + e, buffer, size_t(end - e) * sizeof(T));
  }
  if (streamed) stream_fence();
}

template <class T>
RLX_INLINE void fill_uniform(const RandomFill& p, uint64_t key, uint64_t counter, int64_t begin, int64_t end,
                             T* y, int bits) {
  const F32 span = rounded<T>(set1(float(p.high - p.low))), low = rounded<T>(set1(float(p.low)));
  const bool scaled = p.high - p.low != 1;
  const auto number = [&](const uint32_t* words) {
    const F32 u = unit_interval(load_words(words), bits);
    return (scaled ? rounded<T>(u * span) : u) + low;
  };
  if constexpr (sizeof(T) == sizeof(float)) {
    if (streams(p, y, sizeof(T))) return fill_with<T, 1, kLanes, true>(key, counter, begin, end, y, number);
  }
  fill_with<T, 1, kLanes>(key, counter, begin, end, y, number);
}

template <bool streamed>
RLX_INLINE void fill_words(uint64_t key, uint64_t counter, int64_t begin, int64_t end, uint32_t* y) {
  alignas(64) uint32_t words[kWords];
  for (int64_t e = begin; e < end; e += kWords) {
    if (e + kWords <= end) {
      make_words<streamed>(key, counter, uint64_t(e) / 4, y + e);
    } else {
      make_words(key, counter, uint64_t(e) / 4, words);
      std::memcpy(y + e, words, size_t(end - e) * 4);
    }
  }
  if (streamed) stream_fence();
}

template <class T>
void fill_normal(const RandomFill& p, uint64_t key, uint64_t counter, int64_t begin, int64_t end, T* y) {
  fill_with<T, 2, kLanes>(key, counter, begin, end, y,
                          [&](const uint32_t* words) { return normal(words, float(p.low), float(p.high)); });
}

/// Four words a number: u and v of 53 bits.
void fill_normal64(const RandomFill& p, uint64_t key, uint64_t counter, int64_t begin, int64_t end,
                   double* y) {
  alignas(64) uint32_t words[kWords];
  double unit[kWords / 2];
  for (int64_t e = begin; e < end; e += kBlocks) {
    make_words(key, counter, uint64_t(e), words);
    for (int i = 0; i < kWords / 2; i += kLanes64) store(unit + i, unit_interval64(words + 2 * i));
    for (int i = 0; i < kBlocks && e + i < end; ++i) {
      const double radius = __builtin_sqrt(-2 * std::log(1 - unit[2 * i]));
      y[e + i] = p.low + p.high * (radius * std::cos(6.283185307179586 * unit[2 * i + 1]));
    }
  }
}

void fill(const RandomFill& p, uint64_t key, uint64_t counter, int64_t begin, int64_t end, void* y) {
  if (p.kind == RandomKind::bits) {
    auto* words = static_cast<uint32_t*>(y);
    return streams(p, y, 4) ? fill_words<true>(key, counter, begin, end, words)
                            : fill_words<false>(key, counter, begin, end, words);
  }
  const bool normal_kind = p.kind == RandomKind::normal;
  switch (p.dtype) {
    case DType::f32:
      return normal_kind ? fill_normal(p, key, counter, begin, end, static_cast<float*>(y))
                         : fill_uniform(p, key, counter, begin, end, static_cast<float*>(y), 24);
    case DType::f16:
      return normal_kind ? fill_normal(p, key, counter, begin, end, static_cast<F16*>(y))
                         : fill_uniform(p, key, counter, begin, end, static_cast<F16*>(y), 11);
    case DType::bf16:
      return normal_kind ? fill_normal(p, key, counter, begin, end, static_cast<Bf16*>(y))
                         : fill_uniform(p, key, counter, begin, end, static_cast<Bf16*>(y), 8);
    default:
      break;
  }
  if (normal_kind) return fill_normal64(p, key, counter, begin, end, static_cast<double*>(y));
  const double span = p.high - p.low;
  fill_with<double, 2, kLanes64>(
      key, counter, begin, end, static_cast<double*>(y),
      [&](const uint32_t* words) { return unit_interval64(words) * span + p.low; });
}

void dropout(const Dropout& p, uint32_t threshold, float scale, int64_t begin, int64_t end) {
  alignas(64) uint32_t words[kWords];
  const U32 least = U32{} + threshold;
  for (int64_t e = begin; e < end; e += kWords) {
    make_words(p.key, p.counter, uint64_t(e) / 4, words);
    for (int i = 0; i < kWords && e + i < end; i += kLanes) {
      const int64_t left = end - e - i;
      const int n = int(left < kLanes ? left : kLanes);
      const F32 x = n == kLanes ? load(p.x + e + i) : load_n(p.x + e + i, n);
      const F32 kept = (I32)((U32)load_words(words + i) >= least) ? x * scale : F32{};
      if (n == kLanes) {
        store(p.y + e + i, kept);
      } else {
        store_n(p.y + e + i, kept, n);
      }
    }
  }
}

}  // namespace

RandomKernels random_kernels() { return {fill, dropout}; }

}  // namespace rlx::cpu::RLX_ISA
