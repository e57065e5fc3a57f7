// Plan. A row is one query of one head; the rows of a group share keys and values, which are read from memory
// once for all of them, in tiles that stay in L1. kRowsTogether rows are worked on at a time:
//   keys    four keys by R rows of partial sums in registers along head_dim; the four sums of a row are added
//           within quads of lanes (four shuffles inside quads), then R rows across the quads
//   values  R rows by four vectors of sums in registers while the keys of a tile go by
// Narrow formats are widened as they are loaded, or once into a tile of f32 for more rows than that. At
// AVX-512 and head_dim 64, four rows take 32 multiply-adds and about 18 other vector instructions a key, of
// 512 bytes in f32: memory allows sixty cycles. Bound: reading keys and values; multiply-adds for narrow
// formats and many rows. Asking for rows in advance makes it slower.
#include "rlx/backend/cpu/kernels/isa/attention_decode.h"

#include <type_traits>

#include "rlx/backend/cpu/kernels/isa/attention_scores.h"

namespace rlx::cpu::RLX_ISA {
namespace {

constexpr int kRowsTogether = kRegisters == 32 ? 4 : 2;
constexpr int kValueVectors = 4;
constexpr int64_t kValueTile = 64;
constexpr int kQuads = kLanes / 4;  // of lanes

/// Quad r of the result: the sums of the quads r of a, b, c and d.
RLX_INLINE F32 sum_quads(F32 a, F32 b, F32 c, F32 d) {
  I32 low, high, first, second;
  for (int i = 0; i < kLanes; ++i) {
    low[i] = i / 4 * 4 + i % 4 / 2 + i % 2 * kLanes;
    high[i] = low[i] + 2;
    first[i] = i / 4 * 4 + i % 2 + i % 4 / 2 * kLanes;
    second[i] = first[i] + 2;
  }
  const F32 x = __builtin_shuffle(a, b, low) + __builtin_shuffle(a, b, high),
            y = __builtin_shuffle(c, d, low) + __builtin_shuffle(c, d, high);
  return __builtin_shuffle(x, y, first) + __builtin_shuffle(x, y, second);
}

/// Quad i of the result: the sum of all quads of t[i].
RLX_INLINE F32 sum_across(const F32 (&t)[kQuads]) {
#if defined(RLX_AVX512)
  const __m512 a = (__m512)t[0], b = (__m512)t[1], c = (__m512)t[2], d = (__m512)t[3];
  const __m512 x = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee)),
               y = _mm512_add_ps(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xee));
  return (F32)_mm512_add_ps(_mm512_shuffle_f32x4(x, y, 0x88), _mm512_shuffle_f32x4(x, y, 0xdd));
#elif defined(RLX_AVX2)
  const __m256 a = (__m256)t[0], b = (__m256)t[1];
  return (F32)_mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
#else
  return t[0];
#endif
}

/// Quad r of v.
RLX_INLINE void store_quad(float* p, F32 v, int r) {
#if defined(RLX_AVX512)
  const __m512i all = (__m512i)v;
  const __m128i quad = r == 0   ? _mm512_castsi512_si128(all)
                       : r == 1 ? _mm512_extracti32x4_epi32(all, 1)
                       : r == 2 ? _mm512_extracti32x4_epi32(all, 2)
                                : _mm512_extracti32x4_epi32(all, 3);
  std::memcpy(p, &quad, sizeof quad);
#elif defined(RLX_AVX2)
  const __m256 all = (__m256)v;
  const __m128 quad = r == 0 ? _mm256_castps256_ps128(all) : _mm256_extractf128_ps(all, 1);
  std::memcpy(p, &quad, sizeof quad);
#else
  (void)r;  // there is one
  store(p, v);
#endif
}

/// body.operator()<R>() for R = rows, 1 <= rows <= kRowsTogether.
template <class F>
RLX_INLINE void with_rows(int64_t rows, F body) {
  switch (rows) {
    case 1:
      return body.template operator()<1>();
    case 2:
      return body.template operator()<2>();
    case 3:
      return body.template operator() < kRowsTogether == 4 ? 3 : 1 > ();
    default:
      return body.template operator() < kRowsTogether == 4 ? 4 : 1 > ();
  }
}

/// Quad i of sums[r]: what quad i of the lanes adds to q[r] . k of four keys, from k on; `last` of them
/// count.
template <int R, class P>
RLX_INLINE void score_four(P k, int64_t stride, int64_t last, int64_t dim, const float* q, int64_t q_stride,
                           F32 (&sums)[R]) {
  F32 s[R][4] = {};
  P row[4] = {k, k + least(1, last) * stride, k + least(2, last) * stride, k + least(3, last) * stride};
  int64_t d = 0;
  for (; d + 2 * kLanes <= dim; d += 2 * kLanes) {
    F32 low[R], high[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
      low[r] = load(q + r * q_stride + d), high[r] = load(q + r * q_stride + d + kLanes);
#pragma GCC unroll 4
    for (int m = 0; m < 4; ++m) {
      const Two x = load_two(row[m] + d);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) s[r][m] = fma(x.low, low[r], s[r][m]);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) s[r][m] = fma(x.high, high[r], s[r][m]);
    }
  }
  for (; d < dim; d += kLanes) {
#pragma GCC unroll 4
    for (int m = 0; m < 4; ++m) {
      const F32 x = fetch(row[m] + d, dim - d);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) s[r][m] = fma(x, load(q + r * q_stride + d), s[r][m]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) sums[r] = sum_quads(s[r][0], s[r][1], s[r][2], s[r][3]);
}

/// scores[r * kAttentionSplit + key] = q[r] . k[key]; q rows padded with zeros, `keys` > 0.
template <int R, class P>
RLX_INLINE void score_rows(P k, int64_t stride, int64_t dim, const float* q, int64_t q_stride, int64_t keys,
                           float* scores) {
  if constexpr (R == 1) {
    for (int64_t key = 0; key < keys; key += kLanes) {
      F32 t[kQuads];
#pragma GCC unroll 4
      for (int i = 0; i < kQuads; ++i) {
        const int64_t at = least(key + 4 * i, keys - 1);
        F32 sums[1];
        score_four<1>(k + at * stride, stride, keys - 1 - at, dim, q, q_stride, sums);
        t[i] = sums[0];
      }
      store(scores + key, sum_across(t));
    }
  } else {
    constexpr int kGroups = (R + kQuads - 1) / kQuads;
    for (int64_t key = 0; key < keys; key += 4) {
      F32 sums[R];
      score_four<R>(k + key * stride, stride, keys - 1 - key, dim, q, q_stride, sums);
#pragma GCC unroll 4
      for (int group = 0; group < kGroups; ++group) {
        F32 t[kQuads];
#pragma GCC unroll 4
        for (int i = 0; i < kQuads; ++i) t[i] = sums[group * kQuads + i < R ? group * kQuads + i : 0];
        const F32 four = sum_across(t);
#pragma GCC unroll 4
        for (int i = 0; i < kQuads; ++i) {
          if (group * kQuads + i >= R) break;
          store_quad(scores + (group * kQuads + i) * kAttentionSplit + key, four, i);
        }
      }
    }
  }
}

/// out[r * out_stride + c] += sum over keys of weights[r * kAttentionSplit + key] * v[key][c], c < W vectors,
/// or c < lanes where that is less than one vector.
template <int R, int W, class P>
RLX_INLINE void add_values(P v, int64_t stride, int64_t keys, int64_t lanes, const float* weights, float* out,
                           int64_t out_stride) {
  F32 sum[R][W];
  const int count = int(least(kLanes, lanes));
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < W; ++c) sum[r][c] = load_n(out + r * out_stride + c * kLanes, count);
  }
  for (int64_t j = 0; j < keys; ++j) {
    const P row = v + j * stride;
    F32 x[W];
    if constexpr (W == 1) {
      x[0] = fetch(row, lanes);
    } else {
#pragma GCC unroll 4
      for (int c = 0; c < W; c += 2) {
        const Two two = load_two(row + c * kLanes);
        x[c] = two.low, x[c + 1] = two.high;
      }
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const F32 w = set1(weights[r * kAttentionSplit + j]);
#pragma GCC unroll 4
      for (int c = 0; c < W; ++c) sum[r][c] = fma(w, x[c], sum[r][c]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < W; ++c) store_n(out + r * out_stride + c * kLanes, sum[r][c], count);
  }
}

struct Group {  // the rows that read one key-value head
  const Attention& p;
  int64_t batch, kv_head, rows;

  Group(const Attention& p, int64_t batch, int64_t kv_head)
      : p(p), batch(batch), kv_head(kv_head), rows(p.q_heads / p.kv_heads * p.q_len) {}
  int64_t head(int64_t r) const { return kv_head * (p.q_heads / p.kv_heads) + r / p.q_len; }
  int64_t query(int64_t r) const { return r % p.q_len; }
};

/// Scores of row r into weights exp(s - top), in place; keys [begin, begin + keys).
void softmax_row(const Group& g, int64_t r, int64_t begin, int64_t keys, float* s, float* out) {
  const Attention& p = g.p;
  const int64_t end = padded(keys);
  if (p.softcap > 0) {
    const F32 cap = set1(p.softcap), inverse = set1(1.0f / p.softcap);
    for (int64_t j = 0; j < end; j += kLanes) store(s + j, cap * tanh(load(s + j) * inverse));
  }
  if (p.bias != nullptr) {
    const float* bias = p.bias + offset(p.bias_strides, g.batch, g.head(r), g.query(r)) + begin;
    for (int64_t j = 0; j < keys; ++j) s[j] += bias[j];
  }
  if (has_masks(p)) {
    for (int64_t j = 0; j < keys; ++j) {
      if (blocked(p, g.batch, g.head(r), g.query(r), begin + j)) s[j] = -kInfinity;
    }
  }
  const Seen seen = visible(p, g.query(r));
  for (int64_t j = 0; j < least(keys, seen.low - begin); ++j) s[j] = -kInfinity;
  for (int64_t j = most(0, least(keys, seen.high - begin)); j < end; ++j) s[j] = -kInfinity;
  F32 high = set1(-kInfinity), total = {};
  for (int64_t j = 0; j < end; j += kLanes) high = max(high, load(s + j));
  const float top = reduce_max(high);
  const F32 shift = set1(top == -kInfinity ? 0.0f : top);
  for (int64_t j = 0; j < end; j += kLanes) {
    const F32 e = exp(load(s + j) - shift);
    store(s + j, e);
    total += e;
  }
  out[0] = top;
  out[1] = reduce_add(total);
}

}  // namespace

namespace {

/// Scratch of one split.
struct Scratch {
  int64_t q_stride, tile_stride;
  float *scores, *q, *tile;  // [rows][kAttentionSplit], [rows][q_stride], [kValueTile][tile_stride]

  Scratch(const Attention& p, int64_t rows, std::byte* memory)
      : q_stride(padded(p.head_dim)),
        tile_stride(padded(most(p.head_dim, p.value_dim))),
        scores(reinterpret_cast<float*>(memory)),
        q(scores + rows * kAttentionSplit),
        tile(q + rows * q_stride) {}
};

/// body(rows, stride) with a tile of keys or values: where they lie, or widened once for many rows.
template <class P, class F>
RLX_INLINE void with_tile(const Group& g, P data, int64_t stride, int64_t dim, int64_t keys, const Scratch& x,
                          F body) {
  if constexpr (!std::is_same_v<P, const float*>) {
    if (g.rows > kRowsTogether) {
      widen_rows(data, stride, dim, 0, keys, x.tile, x.tile_stride);
      return body(static_cast<const float*>(x.tile), x.tile_stride);
    }
  }
  body(data, stride);
}

template <class P>
RLX_INLINE void score_tile(const Group& g, P k, int64_t stride, int64_t keys, const Scratch& x,
                           float* scores) {
  for (int64_t r = 0; r < g.rows; r += kRowsTogether) {
    with_rows(
        least(kRowsTogether, g.rows - r), [&]<int R>() __attribute__((always_inline)) {
          score_rows<R>(k, stride, g.p.head_dim, x.q + r * x.q_stride, x.q_stride, keys,
                        scores + r * kAttentionSplit);
        });
  }
}

template <class P>
RLX_INLINE void value_tile(const Group& g, P v, int64_t stride, int64_t keys, const float* weights,
                           float* out) {
  const int64_t dim = g.p.value_dim, part = dim + 2;
  for (int64_t r = 0; r < g.rows; r += kRowsTogether) {
    with_rows(
        least(kRowsTogether, g.rows - r), [&]<int R>() __attribute__((always_inline)) {
          const float* w = weights + r * kAttentionSplit;
          float* to = out + r * part + 2;
          int64_t d = 0;
          for (; d + kValueVectors * kLanes <= dim; d += kValueVectors * kLanes) {
            add_values<R, kValueVectors>(v + d, stride, keys, kLanes, w, to + d, part);
          }
          for (; d < dim; d += kLanes) add_values<R, 1>(v + d, stride, keys, dim - d, w, to + d, part);
        });
  }
}

}  // namespace

size_t decode_scratch_bytes(const Attention& p) {
  const int64_t rows = Group(p, 0, 0).rows;
  const Scratch x(p, rows, nullptr);
  return size_t(rows * (kAttentionSplit + x.q_stride) + kValueTile * x.tile_stride) * sizeof(float);
}

void decode_split(const Attention& p, int64_t batch, int64_t kv_head, int64_t begin, int64_t end, float* out,
                  std::byte* scratch) {
  const Group g(p, batch, kv_head);
  const Scratch x(p, g.rows, scratch);
  const int64_t part = p.value_dim + 2;
  int64_t low = p.k_len, high = 0;
  for (int64_t r = 0; r < g.rows; ++r) {
    const float* from = p.q + offset(p.q_strides, batch, g.head(r), g.query(r));
    for (int64_t d = 0; d < p.head_dim; d += kLanes) {
      store(x.q + r * x.q_stride + d, fetch(from + d, p.head_dim - d) * set1(p.scale));
    }
    const Seen seen = visible(p, g.query(r));
    low = least(low, seen.low);
    high = most(high, seen.high);
    out[r * part] = -kInfinity;
    for (int64_t i = 1; i < part; ++i) out[r * part + i] = 0;
  }
  begin = most(begin, low);
  end = least(end, high);
  const int64_t keys = end - begin;
  if (keys <= 0) return;

  // A tile of keys or values stays in L1 for all rows.
  const auto each_tile = [&](const void* from, const HeadStrides& strides, int64_t dim, auto body) {
    with_kv(p, from, [&](auto data) {
      const auto first = data + offset(strides, batch, kv_head, begin);
      for (int64_t key = 0; key < keys; key += kValueTile) {
        const int64_t count = least(kValueTile, keys - key);
        with_tile(g, first + key * strides.row, strides.row, dim, count, x,
                  [&](auto rows, int64_t stride) { body(rows, stride, key, count); });
      }
    });
  };
  each_tile(p.k, p.k_strides, p.head_dim, [&](auto k, int64_t stride, int64_t key, int64_t count) {
    score_tile(g, k, stride, count, x, x.scores + key);
  });
  for (int64_t r = 0; r < g.rows; ++r) {
    softmax_row(g, r, begin, keys, x.scores + r * kAttentionSplit, out + r * part);
  }
  each_tile(p.v, p.v_strides, p.value_dim, [&](auto v, int64_t stride, int64_t key, int64_t count) {
    value_tile(g, v, stride, count, x.scores + key, out);
  });
}

void join_splits(const Attention& p, int64_t batch, int64_t kv_head, int64_t splits, const float* parts) {
  const Group g(p, batch, kv_head);
  const int64_t part = p.value_dim + 2;
  for (int64_t r = 0; r < g.rows; ++r) {
    const auto piece = [&](int64_t s) { return parts + (s * g.rows + r) * part; };
    float top = -kInfinity, total = 0;
    for (int64_t s = 0; s < splits; ++s) top = piece(s)[0] > top ? piece(s)[0] : top;
    const float shift = top == -kInfinity ? 0.0f : top;
    const auto factor = [&](int64_t s) { return ::expf(piece(s)[0] - shift); };
    for (int64_t s = 0; s < splits; ++s) total += factor(s) * piece(s)[1];
    float* o = p.o + offset(p.o_strides, batch, g.head(r), g.query(r));
    const float inverse = total > 0 ? 1.0f / total : 0.0f;
    for (int64_t d = 0; d < p.value_dim; ++d) o[d] = 0;
    for (int64_t s = 0; s < splits; ++s) {
      const float f = factor(s) * inverse;
      const float* values = piece(s) + 2;
      for (int64_t d = 0; d < p.value_dim; ++d) o[d] += f * values[d];
    }
    if (p.lse != nullptr) p.lse[(batch * p.q_heads + g.head(r)) * p.q_len + g.query(r)] = top + ::logf(total);
  }
}

}  // namespace rlx::cpu::RLX_ISA
