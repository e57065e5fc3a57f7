// Plan. A row is one query of one head; the rows of a group share keys and values, which are read from memory
// once for all of them. kRowsTogether rows are worked on at a time:
//   keys    four keys by R rows of partial sums in registers along head_dim; a tree of folds turns the sums
//   of
//           kLanes keys into one vector of scores, two shuffles and one addition a fold
//   values  R rows by four vectors of sums in registers while kValueTile keys go by, whose values stay in L1
//   for
//           the next rows
// At AVX-512 and head_dim 64, four rows take 32 multiply-adds and about 16 other instructions a key, of 512
// bytes in f32: memory allows a hundred cycles. Bound: reading keys and values.
#include "rlx/backend/cpu/kernels/isa/attention_decode.h"

#include "rlx/backend/cpu/kernels/isa/attention_scores.h"

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
      return body.template operator() < kRowsTogether == 4 ? 3 : 1 > ();
    default:
      return body.template operator() < kRowsTogether == 4 ? 4 : 1 > ();
  }
}

/// What `key` of a block of kLanes keys has in its lane: keys are read in order, four at a time, and the
/// folds leave key 4 i + m in lane i + m kLanes / 4. The index that puts them back.
RLX_INLINE F32 in_key_order(F32 v) {
  I32 from;
  for (int key = 0; key < kLanes; ++key) from[key] = key / 4 + key % 4 * (kLanes / 4);
  return __builtin_shuffle(v, from);
}

/// scores[r * kAttentionSplit + key] = q[r] . k[key]; q rows padded with zeros, `keys` > 0.
template <int R, class P>
RLX_INLINE void score_rows(P k, int64_t stride, int64_t dim, const float* q, int64_t q_stride, int64_t keys,
                           float* scores) {
  constexpr int kQuarter = kLanes / 4;
  for (int64_t key = 0; key < keys; key += kLanes) {
    F32 t[R][kQuarter];
    for (int i = 0; i < kQuarter; ++i) {
      F32 s[R][4] = {};
#pragma GCC unroll 4
      for (int m = 0; m < 4; ++m) {
        const P row = k + least(key + 4 * i + m, keys - 1) * stride;
        int64_t d = 0;
        for (; d + 2 * kLanes <= dim; d += 2 * kLanes) {
          const Two x = load_two(row + d);
#pragma GCC unroll 4
          for (int r = 0; r < R; ++r) {
            s[r][m] = fma(x.low, load(q + r * q_stride + d), s[r][m]);
            s[r][m] = fma(x.high, load(q + r * q_stride + d + kLanes), s[r][m]);
          }
        }
        for (; d < dim; d += kLanes) {
          const F32 x = fetch(row + d, dim - d);
#pragma GCC unroll 4
          for (int r = 0; r < R; ++r) s[r][m] = fma(x, load(q + r * q_stride + d), s[r][m]);
        }
      }
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) t[r][i] = fold(fold(s[r][0], s[r][2]), fold(s[r][1], s[r][3]));
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int half = kQuarter / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; ++i) t[r][i] = fold(t[r][i], t[r][i + half]);
      }
      store(scores + r * kAttentionSplit + key, in_key_order(t[r][0]));
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

size_t decode_scratch_bytes(const Attention& p) {
  // Scores of a split and the padded query of each row.
  return size_t(Group(p, 0, 0).rows * (kAttentionSplit + padded(p.head_dim))) * sizeof(float);
}

void decode_split(const Attention& p, int64_t batch, int64_t kv_head, int64_t begin, int64_t end, float* out,
                  std::byte* scratch) {
  const Group g(p, batch, kv_head);
  const int64_t part = p.value_dim + 2, q_stride = padded(p.head_dim);
  float* scores = reinterpret_cast<float*>(scratch);  // [rows][kAttentionSplit]
  float* q = scores + g.rows * kAttentionSplit;
  int64_t low = p.k_len, high = 0;
  for (int64_t r = 0; r < g.rows; ++r) {
    const float* from = p.q + offset(p.q_strides, batch, g.head(r), g.query(r));
    for (int64_t d = 0; d < p.head_dim; d += kLanes) {
      store(q + r * q_stride + d, fetch(from + d, p.head_dim - d) * set1(p.scale));
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

  with_kv(p, p.k, [&](auto data) {
    const auto k = data + offset(p.k_strides, batch, kv_head, begin);
    // A tile of keys stays in L1 for all rows.
    for (int64_t key = 0; key < keys; key += kValueTile) {
      for (int64_t r = 0; r < g.rows; r += kRowsTogether) {
        with_rows(
            least(kRowsTogether, g.rows - r), [&]<int R>() __attribute__((always_inline)) {
              score_rows<R>(k + key * p.k_strides.row, p.k_strides.row, p.head_dim, q + r * q_stride,
                            q_stride, least(kValueTile, keys - key), scores + r * kAttentionSplit + key);
            });
      }
    }
  });
  for (int64_t r = 0; r < g.rows; ++r) {
    softmax_row(g, r, begin, keys, scores + r * kAttentionSplit, out + r * part);
  }
  with_kv(p, p.v, [&](auto data) {
    const auto v = data + offset(p.v_strides, batch, kv_head, begin);
    for (int64_t key = 0; key < keys; key += kValueTile) {
      const int64_t count = least(kValueTile, keys - key);
      for (int64_t r = 0; r < g.rows; r += kRowsTogether) {
        with_rows(
            least(kRowsTogether, g.rows - r), [&]<int R>() __attribute__((always_inline)) {
              const auto rows = v + key * p.v_strides.row;
              const float* weights = scores + r * kAttentionSplit + key;
              float* to = out + r * part + 2;
              int64_t d = 0;
              for (; d + kValueVectors * kLanes <= p.value_dim; d += kValueVectors * kLanes) {
                add_values<R, kValueVectors>(rows + d, p.v_strides.row, count, kLanes, weights, to + d, part);
              }
              for (; d < p.value_dim; d += kLanes) {
                add_values<R, 1>(rows + d, p.v_strides.row, count, p.value_dim - d, weights, to + d, part);
              }
            });
      }
    }
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
