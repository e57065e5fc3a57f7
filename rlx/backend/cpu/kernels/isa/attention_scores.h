// What the forward and backward kernels of attention share: reading keys and values as f32, turning rows
// into panels, and which keys a query may see. Scores lie as [keys][kQueries], queries in the lanes.
#pragma once

#include "rlx/backend/cpu/kernels/attention.h"
#include "rlx/backend/cpu/kernels/isa/panels.h"
#include "rlx/backend/cpu/simd/math.h"

namespace rlx::cpu::RLX_ISA {

inline constexpr int64_t kQueries = kTileColumns;
inline constexpr int64_t kKeyTile = kTileRows;
inline constexpr float kInfinity = __builtin_inff();

/// body.operator()<R>(r) for all rows, four at a time.
template <class F>
RLX_INLINE void each_four(int64_t rows, F body) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) body.template operator()<4>(r);
  switch (rows - r) {
    case 3:
      return body.template operator()<3>(r);
    case 2:
      return body.template operator()<2>(r);
    case 1:
      return body.template operator()<1>(r);
    default:
      return;
  }
}

/// Where element `at` of a run of q8_0 blocks lies: d (f16) | 32 codes (i8), value code * d.
struct Q8 {
  const uint8_t* blocks;
  int64_t at;

  RLX_INLINE Q8 operator+(int64_t n) const { return {blocks, at + n}; }
};
inline constexpr int64_t kQ8Elements = 32, kQ8Bytes = 34;

RLX_INLINE const uint8_t* q8_block(Q8 p) { return p.blocks + p.at / kQ8Elements * kQ8Bytes; }
RLX_INLINE F32 q8_scale(const uint8_t* block) {
  uint16_t bits;
  std::memcpy(&bits, block, 2);
#if defined(RLX_AVX512)
  return (F32)_mm512_cvtph_ps(_mm256_set1_epi16(int16_t(bits)));
#elif defined(RLX_AVX2)
  return (F32)_mm256_cvtph_ps(_mm_set1_epi16(int16_t(bits)));
#else
  return set1(f16_to_f32_call(bits));
#endif
}
RLX_INLINE F32 q8_codes(const uint8_t* codes) {
#if defined(RLX_AVX512)
  return (F32)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)codes)));
#elif defined(RLX_AVX2)
  return (F32)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)codes)));
#else
  I32 v = {};
  for (int i = 0; i < kLanes; ++i) v[i] = int8_t(codes[i]);
  return to_float(v);
#endif
}
RLX_INLINE F32 load(Q8 p) {
  const uint8_t* block = q8_block(p);
  return q8_codes(block + 2 + p.at % kQ8Elements) * q8_scale(block);
}

/// Two vectors in a row; of q8_0 from an even multiple of kLanes on, so that one scale serves both.
struct Two {
  F32 low, high;
};
template <class T>
RLX_INLINE Two load_two(const T* p) {
  return {load(p), load(p + kLanes)};
}
RLX_INLINE Two load_two(Q8 p) {
  const uint8_t* block = q8_block(p);
  const uint8_t* codes = block + 2 + p.at % kQ8Elements;
  const F32 scale = q8_scale(block);
  return {q8_codes(codes) * scale, q8_codes(codes + kLanes) * scale};
}

/// body(pointer) with the element type of the keys and values.
template <class F>
RLX_INLINE void with_kv(const Attention& p, const void* data, F body) {
  switch (p.kv_format) {
    case KvFormat::f16:
      return body(static_cast<const F16*>(data));
    case KvFormat::bf16:
      return body(static_cast<const Bf16*>(data));
    case KvFormat::q8_0:
      return body(Q8{static_cast<const uint8_t*>(data), 0});
    default:
      return body(static_cast<const float*>(data));
  }
}
RLX_INLINE F32 fetch(Q8 p, int64_t) { return load(p); }  // rows are whole blocks

/// Rows [begin, end) into tiles [tile][dim][rows of the tile]; `rows` is the length of the whole, `begin` is
/// on a tile border and `out` belongs to row 0.
template <class P>
RLX_INLINE void pack_tiles(P data, int64_t stride, int64_t rows, int64_t dim, int64_t begin, int64_t end,
                           float* out) {
  for (int64_t row = begin; row < end; row += kKeyTile) {
    const int64_t count = least(kKeyTile, rows - row);
    turn(data + row * stride, stride, count, dim, 1.0f, out + row * dim, count);
  }
}

/// Rows [begin, end) as f32, `out_stride` apart.
template <class P>
RLX_INLINE void widen_rows(P data, int64_t stride, int64_t dim, int64_t begin, int64_t end, float* out,
                           int64_t out_stride) {
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t d = 0; d < dim; d += kLanes) {
      put(out + row * out_stride + d, fetch(data + (row * stride + d), dim - d), dim - d);
    }
  }
}

/// out[r * out_stride + c] = sum over i < dim of tiles[r][i] * panel[i][c] for the packed rows [begin, end).
RLX_INLINE void tiles_times_panel(const float* tiles, int64_t rows, int64_t dim, int64_t begin, int64_t end,
                                  const float* panel, float* out) {
  for (int64_t row = begin; row < end; row += kKeyTile) {
    const int64_t count = least(kKeyTile, rows - row);
    tile_f32(count, tiles + row * dim, count, panel, kQueries, dim, out + (row - begin) * kQueries, kQueries,
             true);
  }
}

struct Seen {  // keys a query may see by causality and window: [low, high)
  int64_t low, high;
};
RLX_INLINE Seen visible(const Attention& p, int64_t query) {
  const int64_t position = p.k_len - p.q_len + query;
  const int64_t low = p.window >= 0 ? most(0, position - p.window) : 0;
  const int64_t high = p.causal ? least(p.k_len, position + 1) : p.k_len;
  return {low, most(low, high)};
}
RLX_INLINE bool has_masks(const Attention& p) { return p.key_mask != nullptr || p.mask != nullptr; }
RLX_INLINE bool blocked(const Attention& p, int64_t batch, int64_t head, int64_t query, int64_t key) {
  if (p.key_mask != nullptr && p.key_mask[batch * p.k_len + key] < 0.5f) return true;
  return p.mask != nullptr && p.mask[batch * p.mask_strides.batch + head * p.mask_strides.head +
                                     query * p.mask_strides.row + key] == 0;
}
RLX_INLINE int64_t offset(const HeadStrides& s, int64_t batch, int64_t head, int64_t row) {
  return batch * s.batch + head * s.head + row * s.row;
}

struct Block {  // the queries [first, first + queries) of one head
  const Attention& p;
  int64_t batch, head, first, queries;
};

/// -infinity where a byte is 0, for the first n of a vector; 0 elsewhere.
RLX_INLINE F32 blocked_bytes(const uint8_t* allowed, int64_t n) {
  F32 v = {};
  if (n >= kLanes) {
    I32 wide;
    for (int i = 0; i < kLanes; ++i) wide[i] = allowed[i];
    return wide == 0 ? set1(-kInfinity) : v;
  }
  for (int64_t i = 0; i < n; ++i) v[i] = allowed[i] == 0 ? -kInfinity : 0.0f;
  return v;
}

/// score = join(score, x) for every key and query of the block. x has the layout of the operands, rows of keys: rows(query, key, n)
/// gives n of them from `key` on. Squares are turned in registers; a row that all queries share (`row_stride` 0) is not turned.
template <class Rows, class Join>
RLX_INLINE void join_rows(const Block& b, int64_t row_stride, int64_t keys, float* scores, Rows rows,
                          Join join) {
  for (int64_t j = 0; j < keys; j += kLanes) {
    const int64_t n = least(kLanes, keys - j);
    for (int64_t q = 0; q < kQueries; q += kLanes) {
      F32 v[kLanes];
      if (row_stride == 0) {
        const F32 row = rows(0, j, n);
        for (int i = 0; i < kLanes; ++i) v[i] = set1(row[i]);
      } else {
        for (int i = 0; i < kLanes; ++i) v[i] = q + i < b.queries ? rows(q + i, j, n) : F32{};
        transpose(v);
      }
      for (int i = 0; i < n; ++i) {
        float* s = scores + (j + i) * kQueries + q;
        store(s, join(load(s), v[i]));
      }
    }
  }
}

// Bias and masks on the scores of keys [key0, key0 + keys).
RLX_INLINE void adjust(const Block& b, int64_t key0, int64_t keys, float* scores) {
  const Attention& p = b.p;
  if (p.bias != nullptr) {
    const float* bias = p.bias + offset(p.bias_strides, b.batch, b.head, b.first) + key0;
    const int64_t stride = p.bias_strides.row;
    join_rows(
        b, stride, keys, scores,
        [&](int64_t q, int64_t j, int64_t n) { return fetch(bias + q * stride + j, n); },
        [](F32 s, F32 x) { return s + x; });
  }
  if (p.key_mask != nullptr) {  // a key that nobody may see is a row of scores
    const float* allowed = p.key_mask + b.batch * p.k_len + key0;
    for (int64_t j = 0; j < keys; ++j) {
      if (!(allowed[j] < 0.5f)) continue;
      for (int64_t q = 0; q < kQueries; q += kLanes) store(scores + j * kQueries + q, set1(-kInfinity));
    }
  }
  if (p.mask != nullptr) {
    const uint8_t* allowed = p.mask + offset(p.mask_strides, b.batch, b.head, b.first) + key0;
    const int64_t stride = p.mask_strides.row;
    join_rows(
        b, stride, keys, scores,
        [&](int64_t q, int64_t j, int64_t n) { return blocked_bytes(allowed + q * stride + j, n); },
        [](F32 s, F32 x) { return x < 0.0f ? x : s; });
  }
  if (!p.causal && p.window < 0) return;
  I32 low[2], high[2];  // of the queries in the lanes, counted from key0
  for (int64_t q = 0; q < kQueries; ++q) {
    const Seen seen = visible(p, b.first + q);
    low[q / kLanes][q % kLanes] = int32_t(most(0, seen.low - key0));
    high[q / kLanes][q % kLanes] = int32_t(least(keys, seen.high - key0));
  }
  for (int64_t j = 0; j < keys; ++j) {
    for (int h = 0; h < 2; ++h) {
      float* s = scores + j * kQueries + h * kLanes;
      const I32 key = set1(int32_t(j));
      store(s, (key < low[h]) | (key >= high[h]) ? set1(-kInfinity) : load(s));
    }
  }
}

}  // namespace rlx::cpu::RLX_ISA
