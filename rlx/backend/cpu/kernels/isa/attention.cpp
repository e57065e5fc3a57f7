// Plan. Scores are kept transposed: one block has two vectors of queries in the lanes and keys down the rows,
// so the running maximum and sum of the softmax are plain vector operations and never cross lanes.
//   S'[keys][queries] = K tile [keys] x Q' panel [head_dim][queries]      (K packed once per head as tiles)
//   P' = exp(S' - max), in place: already the panel the second product wants
//   O'[value_dim][queries] += V' x P'                                     (V read in place, a row per key)
// Both products are the tile of the matrix product, 14 rows by two vectors at AVX-512. Per key and vector of
// queries at head_dim 64 they take 128 multiply-adds; the softmax takes about 20 more instructions. A block
// of keys is eight tiles: scores of 112 x 32 are 14 KiB, O' of 64 x 32 is 8 KiB, both in L1. Blocks that no
// query may see are skipped; only blocks on the border of the mask test single elements. Bound: multiply-add
// rate.
#include "rlx/backend/cpu/kernels/attention.h"

#include "rlx/backend/cpu/kernels/isa/gemm_tile.h"
#include "rlx/backend/cpu/simd/math.h"
#include "rlx/backend/cpu/simd/narrow.h"
#include "rlx/backend/cpu/simd/transpose.h"

namespace rlx::cpu::RLX_ISA {
namespace {

constexpr int64_t kQueries = 2 * kLanes;
constexpr int64_t kKeyTile = kTileRows;
constexpr int64_t kKeyBlock = 8 * kKeyTile;
constexpr float kInfinity = __builtin_inff();

RLX_INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
RLX_INLINE int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

template <class F>
RLX_INLINE void with_kv(const Attention& p, const void* data, F body) {
  switch (p.kv_dtype) {
    case DType::f16:
      return body(static_cast<const F16*>(data));
    case DType::bf16:
      return body(static_cast<const Bf16*>(data));
    default:
      return body(static_cast<const float*>(data));
  }
}
template <class T>
RLX_INLINE F32 fetch(const T* p, int64_t lanes) {
  return lanes >= kLanes ? load(p) : load_n(p, int(lanes));
}

/// to[c * to_stride + r] = scale * from[r * from_stride + c] for r < rows, c < columns: squares in registers.
template <class T>
RLX_INLINE void turn(const T* from, int64_t from_stride, int64_t rows, int64_t columns, float scale,
                     float* to, int64_t to_stride) {
  for (int64_t c = 0; c < columns; c += kLanes) {
    for (int64_t r = 0; r < rows; r += kLanes) {
      F32 v[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        v[i] = r + i < rows ? fetch(from + (r + i) * from_stride + c, columns - c) * set1(scale) : F32{};
      }
      transpose(v);
      const int lanes = int(least(kLanes, rows - r));
      for (int i = 0; i < kLanes && c + i < columns; ++i) store_n(to + (c + i) * to_stride + r, v[i], lanes);
    }
  }
}

void pack_keys(const Attention& p, int64_t batch, int64_t head, int64_t begin, int64_t end, float* out) {
  with_kv(p, p.k, [&](const auto* data) {
    data += batch * p.k_strides.batch + head * p.k_strides.head;
    for (int64_t key = begin; key < end; key += kKeyTile) {
      const int64_t count = least(kKeyTile, p.k_len - key);
      turn(data + key * p.k_strides.row, p.k_strides.row, count, p.head_dim, 1.0f, out + key * p.head_dim,
           count);
    }
  });
}

void widen_values(const Attention& p, int64_t batch, int64_t head, int64_t begin, int64_t end, float* out) {
  with_kv(p, p.v, [&](const auto* data) {
    data += batch * p.v_strides.batch + head * p.v_strides.head;
    for (int64_t key = begin; key < end; ++key) {
      for (int64_t d = 0; d < p.value_dim; d += kLanes) {
        const F32 v = fetch(data + key * p.v_strides.row + d, p.value_dim - d);
        store_n(out + key * p.value_dim + d, v, int(least(kLanes, p.value_dim - d)));
      }
    }
  });
}

struct Rows {  // keys a query may see by causality and window: [low, high)
  int64_t low, high;
};
RLX_INLINE Rows visible(const Attention& p, int64_t query) {
  const int64_t position = p.k_len - p.q_len + query;
  const int64_t low = p.window >= 0 ? most(0, position - p.window) : 0;
  const int64_t high = p.causal ? least(p.k_len, position + 1) : p.k_len;
  return {low, most(low, high)};
}
RLX_INLINE bool blocked(const Attention& p, int64_t batch, int64_t head, int64_t query, int64_t key) {
  if (p.key_mask != nullptr && p.key_mask[batch * p.k_len + key] < 0.5f) return true;
  return p.mask != nullptr && p.mask[batch * p.mask_strides.batch + head * p.mask_strides.head +
                                     query * p.mask_strides.row + key] == 0;
}
RLX_INLINE const float* bias_row(const Attention& p, int64_t batch, int64_t head, int64_t query) {
  return p.bias + batch * p.bias_strides.batch + head * p.bias_strides.head + query * p.bias_strides.row;
}

struct Block {
  const Attention& p;
  int64_t batch, head, first, queries;  // queries of this block
};

// Cap, bias and mask on the scores of keys [key0, key0 + keys).
RLX_INLINE void adjust(const Block& b, int64_t key0, int64_t keys, float* scores) {
  const Attention& p = b.p;
  if (p.softcap > 0) {
    const F32 cap = set1(p.softcap), inverse = set1(1.0f / p.softcap);
    for (int64_t i = 0; i < keys * kQueries; i += kLanes) {
      store(scores + i, cap * tanh(load(scores + i) * inverse));
    }
  }
  for (int64_t q = 0; q < b.queries; ++q) {
    const int64_t query = b.first + q;
    if (p.bias != nullptr) {
      const float* bias = bias_row(p, b.batch, b.head, query) + key0;
      for (int64_t j = 0; j < keys; ++j) scores[j * kQueries + q] += bias[j];
    }
    if (p.key_mask != nullptr || p.mask != nullptr) {
      for (int64_t j = 0; j < keys; ++j) {
        if (blocked(p, b.batch, b.head, query, key0 + j)) scores[j * kQueries + q] = -kInfinity;
      }
    }
    const Rows rows = visible(p, query);
    for (int64_t j = 0; j < least(keys, rows.low - key0); ++j) scores[j * kQueries + q] = -kInfinity;
    for (int64_t j = most(0, rows.high - key0); j < keys; ++j) scores[j * kQueries + q] = -kInfinity;
  }
}

size_t scratch_bytes(const Attention& p) {
  // Q panel, scores, O'; for few queries: the scores of a split and one vector of sums per key.
  const int64_t block = (p.head_dim + kKeyBlock + p.value_dim) * kQueries;
  const int64_t rows = p.q_len * (p.q_heads / p.kv_heads);
  return size_t(most(block, rows * (kAttentionSplit + kLanes))) * sizeof(float);
}

void forward(const Attention& p, int64_t batch, int64_t head, int64_t first, const float* packed_keys,
             const float* values, int64_t value_stride, std::byte* scratch) {
  const Block b{p, batch, head, first, least(kQueries, p.q_len - first)};
  float* panel = reinterpret_cast<float*>(scratch);  // [head_dim][kQueries]
  float* scores = panel + p.head_dim * kQueries;
  float* sums = scores + kKeyBlock * kQueries;  // O'
  const float* q = p.q + batch * p.q_strides.batch + head * p.q_strides.head + first * p.q_strides.row;
  for (int64_t i = 0; i < p.head_dim * kQueries; i += kLanes) store(panel + i, F32{});
  turn(q, p.q_strides.row, b.queries, p.head_dim, p.scale, panel, kQueries);
  for (int64_t i = 0; i < p.value_dim * kQueries; i += kLanes) store(sums + i, F32{});
  F32 top[2] = {set1(-kInfinity), set1(-kInfinity)}, total[2] = {F32{}, F32{}};

  const Rows from = visible(p, first), to = visible(p, first + b.queries - 1);
  const bool always = p.softcap > 0 || p.bias != nullptr || p.key_mask != nullptr || p.mask != nullptr;
  for (int64_t key0 = from.low / kKeyBlock * kKeyBlock; key0 < to.high; key0 += kKeyBlock) {
    const int64_t keys = least(kKeyBlock, p.k_len - key0);
    for (int64_t k = 0; k < keys; k += kKeyTile) {
      const int rows = int(least(kKeyTile, p.k_len - key0 - k));
      tile_f32(rows, packed_keys + (key0 + k) * p.head_dim, rows, panel, p.head_dim, scores + k * kQueries,
               kQueries, true);
    }
    // Inside for every query of the block: nothing to mask. The first query sees least of the future, the
    // last one least of the past.
    const bool inside = key0 >= to.low && key0 + keys <= from.high;
    if (always || !inside) adjust(b, key0, keys, scores);

    F32 high[2] = {top[0], top[1]};
    for (int64_t k = 0; k < keys; ++k) {
      high[0] = max(high[0], load(scores + k * kQueries));
      high[1] = max(high[1], load(scores + k * kQueries + kLanes));
    }
    F32 factor[2], shift[2];
    for (int h = 0; h < 2; ++h) {
      shift[h] = high[h] == -kInfinity ? F32{} : high[h];  // nothing seen yet: exp(-inf - 0) = 0
      factor[h] = exp(top[h] - shift[h]);
      top[h] = high[h];
      total[h] = total[h] * factor[h];
    }
    for (int64_t k = 0; k < keys; ++k) {
      float* s = scores + k * kQueries;
      const F32 e0 = exp(load(s) - shift[0]), e1 = exp(load(s + kLanes) - shift[1]);
      store(s, e0);
      store(s + kLanes, e1);
      total[0] += e0;
      total[1] += e1;
    }
    if (any((factor[0] != 1.0f) | (factor[1] != 1.0f))) {
      for (int64_t d = 0; d < p.value_dim; ++d) {
        float* o = sums + d * kQueries;
        store(o, load(o) * factor[0]);
        store(o + kLanes, load(o + kLanes) * factor[1]);
      }
    }
    for (int64_t d = 0; d < p.value_dim; d += kTileRows) {
      const int rows = int(least(kTileRows, p.value_dim - d));
      tile_f32(rows, values + key0 * value_stride + d, value_stride, scores, keys, sums + d * kQueries,
               kQueries, false);
    }
  }

  for (int h = 0; h < 2; ++h) {
    const F32 inverse = total[h] > 0.0f ? 1.0f / total[h] : F32{};
    for (int64_t d = 0; d < p.value_dim; ++d) {
      float* o = sums + d * kQueries + h * kLanes;
      store(o, load(o) * inverse);
    }
    if (p.lse != nullptr) {
      const int64_t lanes = most(0, least(kLanes, b.queries - h * kLanes));
      store_n(p.lse + (batch * p.q_heads + head) * p.q_len + first + h * kLanes, top[h] + log(total[h]),
              int(lanes));
    }
  }
  float* o = p.o + batch * p.o_strides.batch + head * p.o_strides.head + first * p.o_strides.row;
  turn(sums, kQueries, p.value_dim, b.queries, 1.0f, o, p.o_strides.row);
}

// ---- few queries ----
// Plan: memory bound, each key and value is read once for all queries that share it. Scores: kLanes keys at a
// time, one vector of partial sums per key along head_dim, turned so that the sums of kLanes keys add up in
// one vector. Values: each row of V, while in registers, is added to the outputs of all queries.

template <class T>
RLX_INLINE void decode_keys(const Attention& p, const T* k, const float* const* q, int64_t rows, int64_t keys,
                            float* scores) {
  for (int64_t key = 0; key < keys; key += kLanes) {
    const int64_t count = least(kLanes, keys - key);
    for (int64_t r = 0; r < rows; ++r) {
      F32 s[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        s[i] = F32{};
        const T* row = k + (key + least(i, count - 1)) * p.k_strides.row;
        for (int64_t d = 0; d < p.head_dim; d += kLanes) {
          s[i] = fma(fetch(row + d, p.head_dim - d), fetch(q[r] + d, p.head_dim - d), s[i]);
        }
      }
      transpose(s);
#pragma GCC unroll 8
      for (int half = kLanes / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; ++i) s[i] += s[i + half];
      }
      store_n(scores + r * kAttentionSplit + key, s[0] * set1(p.scale), int(count));
    }
  }
}

void decode(const Attention& p, int64_t batch, int64_t kv_head, int64_t begin, int64_t end, float* out,
            std::byte* scratch) {
  const int64_t group = p.q_heads / p.kv_heads, rows = group * p.q_len, keys = end - begin;
  float* scores = reinterpret_cast<float*>(scratch);  // [rows][kAttentionSplit]
  const float* q[kAttentionFewRows];
  for (int64_t r = 0; r < rows; ++r) {
    q[r] = p.q + batch * p.q_strides.batch + (kv_head * group + r / p.q_len) * p.q_strides.head +
           r % p.q_len * p.q_strides.row;
  }
  with_kv(p, p.k, [&](const auto* k) {
    decode_keys(p, k + batch * p.k_strides.batch + kv_head * p.k_strides.head + begin * p.k_strides.row, q,
                rows, keys, scores);
  });
  const int64_t part = p.value_dim + 2;
  for (int64_t r = 0; r < rows; ++r) {
    float* s = scores + r * kAttentionSplit;
    const int64_t head = kv_head * group + r / p.q_len, query = r % p.q_len;
    const Rows seen = visible(p, query);
    float top = -kInfinity;
    for (int64_t j = 0; j < keys; ++j) {
      if (p.softcap > 0) s[j] = p.softcap * __builtin_tanhf(s[j] / p.softcap);
      if (p.bias != nullptr) s[j] += bias_row(p, batch, head, query)[begin + j];
      if (begin + j < seen.low || begin + j >= seen.high || blocked(p, batch, head, query, begin + j)) {
        s[j] = -kInfinity;
      }
      top = s[j] > top ? s[j] : top;
    }
    const F32 shift = set1(top == -kInfinity ? 0.0f : top);
    F32 total = {};
    for (int64_t j = 0; j < keys; j += kLanes) {
      const int lanes = int(least(kLanes, keys - j));
      const F32 e = exp(load_n(s + j, lanes) - shift);
      store_n(s + j, e, lanes);
      total += load_n(s + j, lanes);
    }
    float* o = out + r * part;
    o[0] = top;
    o[1] = reduce_add(total);
    for (int64_t d = 0; d < p.value_dim; ++d) o[2 + d] = 0;
  }
  with_kv(p, p.v, [&](const auto* v) {
    v += batch * p.v_strides.batch + kv_head * p.v_strides.head + begin * p.v_strides.row;
    constexpr int64_t wide = 4;  // vectors of one row of V held while the keys go by
    for (int64_t d0 = 0; d0 < p.value_dim; d0 += wide * kLanes) {
      for (int64_t r = 0; r < rows; ++r) {
        const float* s = scores + r * kAttentionSplit;
        F32 sum[wide] = {};
        for (int64_t j = 0; j < keys; ++j) {
          const F32 weight = set1(s[j]);
          const auto* row = v + j * p.v_strides.row + d0;
          for (int64_t c = 0; c < wide; ++c) {
            if (d0 + c * kLanes < p.value_dim) {
              sum[c] = fma(weight, fetch(row + c * kLanes, p.value_dim - d0 - c * kLanes), sum[c]);
            }
          }
        }
        for (int64_t c = 0; c < wide; ++c) {
          const int64_t d = d0 + c * kLanes;
          if (d < p.value_dim) store_n(out + r * part + 2 + d, sum[c], int(least(kLanes, p.value_dim - d)));
        }
      }
    }
  });
}

void join(const Attention& p, int64_t batch, int64_t kv_head, int64_t splits, const float* parts) {
  const int64_t group = p.q_heads / p.kv_heads, rows = group * p.q_len, part = p.value_dim + 2;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t head = kv_head * group + r / p.q_len, query = r % p.q_len;
    float top = -kInfinity, total = 0;
    for (int64_t s = 0; s < splits; ++s) {
      const float t = parts[(s * rows + r) * part];
      top = t > top ? t : top;
    }
    const float shift = top == -kInfinity ? 0.0f : top;
    const auto factor = [&](int64_t s) { return ::expf(parts[(s * rows + r) * part] - shift); };
    for (int64_t s = 0; s < splits; ++s) total += factor(s) * parts[(s * rows + r) * part + 1];
    float* o = p.o + batch * p.o_strides.batch + head * p.o_strides.head + query * p.o_strides.row;
    const float inverse = total > 0 ? 1.0f / total : 0.0f;
    for (int64_t d = 0; d < p.value_dim; ++d) o[d] = 0;
    for (int64_t s = 0; s < splits; ++s) {
      const float f = factor(s) * inverse;
      for (int64_t d = 0; d < p.value_dim; ++d) o[d] += f * parts[(s * rows + r) * part + 2 + d];
    }
    if (p.lse != nullptr) p.lse[(batch * p.q_heads + head) * p.q_len + query] = top + ::logf(total);
  }
}

}  // namespace

AttentionKernels attention_kernels() {
  return {.queries = int(kQueries),
          .key_tile = int(kKeyTile),
          .scratch_bytes = scratch_bytes,
          .pack_keys = pack_keys,
          .widen_values = widen_values,
          .forward = forward,
          .decode = decode,
          .join = join};
}

}  // namespace rlx::cpu::RLX_ISA
