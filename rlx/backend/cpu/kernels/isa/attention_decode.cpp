// Plan. A row is one query of one head; the rows of a group share keys and values, which are read from memory
// once for all of them, in tiles that stay in L1. kRowsTogether rows are worked on at a time:
//   keys    four keys by R rows of partial sums in registers along head_dim; the four sums of a row are added
//           within quads of lanes (four shuffles inside quads), then R rows across the quads
//   values  R rows by four vectors of sums in registers while the keys of a tile go by
// Narrow formats are widened as they are loaded, or once into a tile of f32 for more rows than that; q8_0 is
// multiplied as integers where there is an instruction (attention_q8.h). At AVX-512 and head_dim 64,
// four rows take 32 multiply-adds and about 18 other vector instructions a key, of 512 bytes in f32: memory
// allows sixty cycles. Asking for rows in advance makes it slower. Bound: reading keys and values;
// multiply-adds for narrow formats and many rows.
// Levels: also avx512vnni.
#include "rlx/backend/cpu/kernels/isa/attention_decode.h"

#include <iterator>
#include <type_traits>

#include "rlx/backend/cpu/kernels/isa/attention_q8.h"
#include "rlx/backend/cpu/kernels/isa/attention_rows.h"

namespace rlx::cpu::RLX_ISA {
namespace {

constexpr int kRowsTogether = kRegisters == 32 ? 4 : 2;
constexpr int kValueVectors = 4;
constexpr int64_t kValueTile = 64;

/// body.operator()<R>() for R = rows, 1 <= rows <= kRowsTogether.
template <class F>
RLX_INLINE void with_rows(int64_t rows, F body) {
  switch (rows) {
    case 1:
      return body.template operator()<1>();
    case 2:
      return body.template operator()<2>();
    case 3:
      return body.template operator()<kRowsTogether == 4 ? 3 : 1>();
    default:
      return body.template operator()<kRowsTogether == 4 ? 4 : 1>();
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

/// exp(x[i]) of numbers not above 0, four in step: one is a chain longer than a processor looks ahead.
RLX_INLINE void exp_four(F32 (&x)[4]) {
  F32 n[4], r[4], p[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) x[i] = max(set1(-104.0f), x[i]);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) n[i] = round_small(x[i] * kLog2e);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) r[i] = exp_fraction(x[i], n[i]);
  constexpr int terms = int(std::size(kExp2Slope));
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) p[i] = set1(kExp2Slope[terms - 1]);
#pragma GCC unroll 8
  for (int t = terms - 2; t >= 0; --t) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) p[i] = fma(p[i], r[i], set1(kExp2Slope[t]));
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) x[i] = scale_by_power(fma(p[i], r[i], set1(1.0f)), n[i]);
}

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
  int64_t j = 0;
  if constexpr (kHasFma) {
    for (; j + 4 * kLanes <= end; j += 4 * kLanes) {
      F32 e[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) e[i] = load(s + j + i * kLanes) - shift;
      exp_four(e);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) store(s + j + i * kLanes, e[i]), total += e[i];
    }
  }
  for (; j < end; j += kLanes) {
    const F32 e = exp(load(s + j) - shift);
    store(s + j, e);
    total += e;
  }
  out[0] = top;
  out[1] = reduce_add(total);
}

/// Whether q8_0 keys and values go through attention_q8.h.
bool dots_codes(const Attention& p) { return kDotsCodes && p.kv_format == KvFormat::q8_0; }

/// Scratch of one split.
struct Scratch {
  int64_t q_stride, tile_stride;
  float *scores, *q, *tile;  // [rows][kAttentionSplit], [rows][q_stride], [kValueTile][tile_stride]
  QueryBlock* cut;           // [rows][blocks of a row]
  size_t bytes;

  Scratch(const Attention& p, int64_t rows, std::byte* memory)
      : q_stride(padded(p.head_dim)), tile_stride(padded(most(p.head_dim, p.value_dim))) {
    Pieces all{memory};
    scores = all.take<float>(rows * kAttentionSplit);
    q = all.take<float>(rows * q_stride);
    tile = all.take<float>(kValueTile * tile_stride);
    cut = all.take<QueryBlock>(dots_codes(p) ? rows * (p.head_dim / kQ8Elements) : 0);
    bytes = all.bytes;
  }

 private:
  struct Pieces {
    std::byte* memory;  // null: only counts
    size_t bytes = 0;

    template <class T>
    RLX_INLINE T* take(int64_t n) {
      std::byte* at = memory == nullptr ? nullptr : memory + bytes;
      bytes += size_t(n) * sizeof(T);
      return reinterpret_cast<T*>(at);
    }
  };
};

/// body(rows, stride) with a tile of keys or values for `count` rows: where they lie, or widened once for many.
template <class P, class F>
RLX_INLINE void with_tile(int64_t count, P data, int64_t stride, int64_t dim, int64_t keys, const Scratch& x,
                          F body) {
  if constexpr (!std::is_same_v<P, const float*>) {
    if (count > kRowsTogether) {
      widen_rows(data, stride, dim, 0, keys, x.tile, x.tile_stride);
      return body(static_cast<const float*>(x.tile), x.tile_stride);
    }
  }
  body(data, stride);
}

/// Rows [from, g.rows).
template <class P>
RLX_INLINE void score_tile(const Group& g, int64_t from, P k, int64_t stride, int64_t keys, const Scratch& x,
                           float* scores) {
  for (int64_t r = from; r < g.rows; r += kRowsTogether) {
    with_rows(least(kRowsTogether, g.rows - r), [&]<int R>() __attribute__((always_inline)) {
      score_rows<R>(k, stride, g.p.head_dim, x.q + r * x.q_stride, x.q_stride, keys,
                    scores + r * kAttentionSplit);
    });
  }
}

template <class P>
RLX_INLINE void value_tile(const Group& g, int64_t from, P v, int64_t stride, int64_t keys,
                           const float* weights, float* out) {
  const int64_t dim = g.p.value_dim, part = dim + 2;
  for (int64_t r = from; r < g.rows; r += kRowsTogether) {
    with_rows(least(kRowsTogether, g.rows - r), [&]<int R>() __attribute__((always_inline)) {
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

#if defined(__AVX512VNNI__)
/// A whole split of q8_0 keys and values whose rows begin at k and v.
void decode_codes(const Group& g, Q8 k, Q8 v, int64_t begin, int64_t keys, const Scratch& x, float* out) {
  const Attention& p = g.p;
  const int64_t blocks = p.head_dim / kQ8Elements, value_blocks = p.value_dim / kQ8Elements,
                part = p.value_dim + 2;
  const auto row_bytes = [](const HeadStrides& s) { return s.row / kQ8Elements * kQ8Bytes; };
  const uint8_t *first = q8_block(k), *values = q8_block(v);
  for (int64_t r = 0; r < g.rows; ++r) cut_query(x.q + r * x.q_stride, blocks, x.cut + r * blocks);
  for (int64_t key = 0; key < keys; key += kValueTile) {
    each_four(g.rows, [&]<int R>(int64_t r) __attribute__((always_inline)) {
      score_codes<R>(first + key * row_bytes(p.k_strides), row_bytes(p.k_strides), blocks, x.cut + r * blocks,
                     least(kValueTile, keys - key), x.scores + r * kAttentionSplit + key);
    });
  }
  for (int64_t r = 0; r < g.rows; ++r) {
    softmax_row(g, r, begin, keys, x.scores + r * kAttentionSplit, out + r * part);
  }
  for (int64_t key = 0; key < keys; key += kValueTile) {
    each_four(g.rows, [&]<int R>(int64_t r) __attribute__((always_inline)) {
      add_codes<R>(values + key * row_bytes(p.v_strides), row_bytes(p.v_strides), value_blocks,
                   least(kValueTile, keys - key), x.scores + r * kAttentionSplit + key, out + r * part + 2,
                   part);
    });
  }
}
#endif

}  // namespace

size_t decode_scratch_bytes(const Attention& p) { return Scratch(p, Group(p, 0, 0).rows, nullptr).bytes; }

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

#if defined(__AVX512VNNI__)
  if (dots_codes(p)) {
    const auto from = [&](const void* data, const HeadStrides& s) {
      return Q8{static_cast<const uint8_t*>(data), 0} + offset(s, batch, kv_head, begin);
    };
    return decode_codes(g, from(p.k, p.k_strides), from(p.v, p.v_strides), begin, keys, x, out);
  }
#endif

  // A tile of keys or values stays in L1 for all rows.
  const auto each_tile = [&](const void* from, const HeadStrides& strides, auto body) {
    with_kv(p, from, [&](auto data) {
      const auto first = data + offset(strides, batch, kv_head, begin);
      for (int64_t key = 0; key < keys; key += kValueTile) {
        body(first + key * strides.row, key, least(kValueTile, keys - key));
      }
    });
  };
  each_tile(p.k, p.k_strides, [&](auto k, int64_t key, int64_t count) {
    const int64_t done =
        score_many(k, p.k_strides.row, p.head_dim, x.q, x.q_stride, g.rows, count, x.scores + key);
    if (done == g.rows) return;
    with_tile(g.rows - done, k, p.k_strides.row, p.head_dim, count, x, [&](auto rows, int64_t stride) {
      score_tile(g, done, rows, stride, count, x, x.scores + key);
    });
  });
  for (int64_t r = 0; r < g.rows; ++r) {
    softmax_row(g, r, begin, keys, x.scores + r * kAttentionSplit, out + r * part);
  }
  each_tile(p.v, p.v_strides, [&](auto v, int64_t key, int64_t count) {
    const int64_t done =
        add_many_values(v, p.v_strides.row, p.value_dim, x.scores + key, g.rows, count, out + 2, part);
    if (done == g.rows) return;
    with_tile(g.rows - done, v, p.v_strides.row, p.value_dim, count, x, [&](auto rows, int64_t stride) {
      value_tile(g, done, rows, stride, count, x.scores + key, out);
    });
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
