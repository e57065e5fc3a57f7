// Plan. As in the forward kernel, scores lie transposed, [keys][kQueries] with queries in the lanes. Per
// block of queries and keys there are five products, all with the sums of a tile in registers:
//   S'  [keys][queries] = K tiles x Q' panel          dP' [keys][queries] = V tiles x dO' panel
//   P' = exp(S' - lse),  dS' = P' (dP' - delta)       both in place, one pass
//   dQ' [dim][queries] += K rows x dS'                (A read in place: a row of K is a column of A)
//   dK  [keys][dim]    += dS' x Q rows                (A is the panel dS' itself, rows kQueries apart)
//   dV  [keys][dim]    += P' x dO rows
// The outer loop goes over query heads, then blocks of keys, then blocks of queries. At AVX-512 and head_dim
// 64 a block of 112 keys has 28 KiB each of K tiles, V tiles, K rows, dK and dV, and 14 KiB of P' and of dS':
// all in L2; each step adds 40 KiB of queries for 72 k cycles of multiply-adds. The exponentials take a
// twentieth. Tiles of keys that no query of the block may see are skipped. Bound: multiply-add rate.
#include "rlx/backend/cpu/kernels/attention_backward.h"

#include "rlx/backend/cpu/kernels/isa/attention_scores.h"

namespace rlx::cpu::RLX_ISA {
namespace {

constexpr int64_t kKeyBlock = 8 * kKeyTile;

// Where everything lies in the scratch memory of a task.
struct Scratch {
  float *key_tiles, *value_tiles, *key_rows, *dk, *dv;  // keys of the task
  float *q_panels, *dy_panels, *q_rows, *dy_rows, *dq;  // queries of one head
  float *shift, *delta;                                 // one number a query
  float *scores, *dscores, *slope;                      // one block
  int64_t floats;

  Scratch(const AttentionBackward& b, int64_t keys, float* base) {
    const Attention& p = b.forward;
    const int64_t queries = padded(p.q_len), dim = padded(p.head_dim), values = padded(p.value_dim);
    floats = 0;
    const auto take = [&](float*& to, int64_t n) {
      to = base == nullptr ? nullptr : base + floats;
      floats += (n + kQueries - 1) / kQueries * kQueries;
    };
    take(key_tiles, keys * p.head_dim);
    take(value_tiles, keys * p.value_dim);
    take(key_rows, p.kv_format == KvFormat::f32 ? 0 : keys * p.head_dim);
    take(dk, keys * dim);
    take(dv, keys * values);
    take(q_panels, queries * p.head_dim);
    take(dy_panels, queries * p.value_dim);
    take(q_rows, queries * dim);
    take(dy_rows, queries * values);
    take(dq, queries * p.head_dim);
    take(shift, queries);
    take(delta, queries);
    take(scores, kKeyBlock * kQueries);
    take(dscores, kKeyBlock * kQueries);
    take(slope, p.softcap > 0 ? kKeyBlock * kQueries : 0);
  }
};

size_t scratch_bytes(const AttentionBackward& b, int64_t keys) {
  return size_t(Scratch(b, keys, nullptr).floats) * sizeof(float);
}

/// Rows of one head as panels [block][dim][kQueries] and as rows of padded(dim), both times `scale`.
void pack_queries(const float* x, int64_t stride, int64_t rows, int64_t dim, float scale, float* panels,
                  float* out) {
  clear(panels, padded(rows) * dim);
  clear(out, padded(rows) * padded(dim));
  for (int64_t first = 0; first < rows; first += kQueries) {
    turn(x + first * stride, stride, least(kQueries, rows - first), dim, scale, panels + first * dim,
         kQueries);
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t d = 0; d < dim; d += kLanes) {
      store(out + row * padded(dim) + d, fetch(x + row * stride + d, dim - d) * set1(scale));
    }
  }
}

/// lse and delta of one head. Rows that see nothing, and lanes beyond the last query, get lse = inf: p = 0.
void pack_rows(const AttentionBackward& b, int64_t batch, int64_t head, const Scratch& s) {
  const Attention& p = b.forward;
  const int64_t at = (batch * p.q_heads + head) * p.q_len;
  for (int64_t i = 0; i < padded(p.q_len); ++i) {
    s.shift[i] = i < p.q_len && p.lse[at + i] != -kInfinity ? p.lse[at + i] : kInfinity;
    s.delta[i] = 0;
  }
  for (int64_t i = 0; i < p.q_len; ++i) {
    if (b.delta != nullptr) {
      s.delta[i] = b.delta[at + i];
      continue;
    }
    const float* o = p.o + offset(p.o_strides, batch, head, i);
    const float* dy = b.dy + offset(b.dy_strides, batch, head, i);
    F32 sum = {};
    for (int64_t d = 0; d < p.value_dim; d += kLanes) {
      sum =
          fma(fetch(static_cast<const float*>(o) + d, p.value_dim - d), fetch(dy + d, p.value_dim - d), sum);
    }
    s.delta[i] = reduce_add(sum);
  }
}

/// dbias[query][key] += dscores[key][query], squares turned in registers.
void add_bias_gradient(const AttentionBackward& b, const Block& block, int64_t key0, int64_t keys,
                       const float* dscores) {
  const HeadStrides& strides = b.forward.bias_strides;
  for (int64_t j = 0; j < keys; j += kLanes) {
    const int lanes = int(least(kLanes, keys - j));
    for (int64_t q = 0; q < block.queries; q += kLanes) {
      F32 v[kLanes];
      for (int i = 0; i < kLanes; ++i) v[i] = i < lanes ? load(dscores + (j + i) * kQueries + q) : F32{};
      transpose(v);
      for (int i = 0; i < kLanes && q + i < block.queries; ++i) {
        float* to = b.dbias + offset(strides, block.batch, block.head, block.first + q + i) + key0 + j;
        store_n(to, load_n(to, lanes) + v[i], lanes);
      }
    }
  }
}

/// P' and dS' of one block from S' and dP'; keys [key0, key0 + keys).
void softmax_gradient(const AttentionBackward& b, const Block& block, int64_t key0, int64_t keys,
                      const Scratch& s) {
  const Attention& p = b.forward;
  if (p.softcap > 0) {
    const F32 cap = set1(p.softcap), inverse = set1(1.0f / p.softcap);
    for (int64_t i = 0; i < keys * kQueries; i += kLanes) {
      const F32 t = tanh(load(s.scores + i) * inverse);
      store(s.scores + i, cap * t);
      store(s.slope + i, 1.0f - t * t);
    }
  }
  const Seen from = visible(p, block.first), to = visible(p, block.first + block.queries - 1);
  const bool inside = key0 >= to.low && key0 + keys <= from.high;
  if (!inside || p.bias != nullptr || has_masks(p)) adjust(block, key0, keys, s.scores);
  const F32 shift[2] = {load(s.shift + block.first), load(s.shift + block.first + kLanes)};
  const F32 delta[2] = {load(s.delta + block.first), load(s.delta + block.first + kLanes)};
  for (int64_t j = 0; j < keys; ++j) {
    for (int h = 0; h < 2; ++h) {
      const int64_t at = j * kQueries + h * kLanes;
      const F32 weight = exp(load(s.scores + at) - shift[h]);
      store(s.scores + at, weight);
      store(s.dscores + at, weight * (load(s.dscores + at) - delta[h]));
    }
  }
  if (b.dbias != nullptr) add_bias_gradient(b, block, key0, keys, s.dscores);
  if (p.softcap > 0) {
    for (int64_t i = 0; i < keys * kQueries; i += kLanes) {
      store(s.dscores + i, load(s.dscores + i) * load(s.slope + i));
    }
  }
}

void write_rows(const float* from, int64_t from_stride, int64_t rows, int64_t dim, float* to,
                int64_t stride) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t d = 0; d < dim; d += kLanes) {
      put(to + r * stride + d, fetch(from + r * from_stride + d, dim - d), dim - d);
    }
  }
}

void keys(const AttentionBackward& b, int64_t batch, int64_t kv_head, int64_t begin, int64_t end, float* dq,
          const HeadStrides& dq_strides, std::byte* memory) {
  const Attention& p = b.forward;
  const int64_t count = end - begin, group = p.q_heads / p.kv_heads;
  const int64_t dim = padded(p.head_dim), values = padded(p.value_dim);
  const Scratch s(b, count, reinterpret_cast<float*>(memory));
  const float* key_rows = s.key_rows;
  int64_t key_stride = p.head_dim;
  with_kv(p, p.k, [&](auto data) {
    const auto rows = data + offset(p.k_strides, batch, kv_head, begin);
    pack_tiles(rows, p.k_strides.row, count, p.head_dim, 0, count, s.key_tiles);
    if (p.kv_format != KvFormat::f32) {
      widen_rows(rows, p.k_strides.row, p.head_dim, 0, count, s.key_rows, p.head_dim);
    }
  });
  if (p.kv_format == KvFormat::f32) {
    key_rows = static_cast<const float*>(p.k) + offset(p.k_strides, batch, kv_head, begin);
    key_stride = p.k_strides.row;
  }
  with_kv(p, p.v, [&](auto data) {
    pack_tiles(data + offset(p.v_strides, batch, kv_head, begin), p.v_strides.row, count, p.value_dim, 0,
               count, s.value_tiles);
  });
  clear(s.dk, count * dim);
  clear(s.dv, count * values);

  for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    pack_queries(p.q + offset(p.q_strides, batch, head, 0), p.q_strides.row, p.q_len, p.head_dim, p.scale,
                 s.q_panels, s.q_rows);
    pack_queries(b.dy + offset(b.dy_strides, batch, head, 0), b.dy_strides.row, p.q_len, p.value_dim, 1.0f,
                 s.dy_panels, s.dy_rows);
    pack_rows(b, batch, head, s);
    clear(s.dq, padded(p.q_len) * p.head_dim);
    for (int64_t block = 0; block < count; block += kKeyBlock) {
      for (int64_t first = 0; first < p.q_len; first += kQueries) {
        const Block queries{p, batch, head, first, least(kQueries, p.q_len - first)};
        // Keys that some query of the block may see, in whole tiles; counted from `begin`.
        const int64_t low = most(block, visible(p, first).low - begin);
        const int64_t high =
            least(least(block + kKeyBlock, count), visible(p, first + queries.queries - 1).high - begin);
        if (low >= high) continue;
        const int64_t from = low / kKeyTile * kKeyTile,
                      to = least(count, (high + kKeyTile - 1) / kKeyTile * kKeyTile), n = to - from;
        tiles_times_panel(s.key_tiles, count, p.head_dim, from, to, s.q_panels + first * p.head_dim,
                          s.scores);
        tiles_times_panel(s.value_tiles, count, p.value_dim, from, to, s.dy_panels + first * p.value_dim,
                          s.dscores);
        softmax_gradient(b, queries, begin + from, n, s);
        tile_f32(p.head_dim, key_rows + from * key_stride, key_stride, s.dscores, kQueries, n,
                 s.dq + first * p.head_dim, kQueries, false);
        for (int64_t c = 0; c < dim; c += kQueries) {
          tile_of_panel_f32(n, s.dscores, s.q_rows + first * dim + c, dim, queries.queries,
                            s.dk + from * dim + c, dim, false);
        }
        for (int64_t c = 0; c < values; c += kQueries) {
          tile_of_panel_f32(n, s.scores, s.dy_rows + first * values + c, values, queries.queries,
                            s.dv + from * values + c, values, false);
        }
      }
    }
    for (int64_t first = 0; first < p.q_len; first += kQueries) {
      turn(static_cast<const float*>(s.dq) + first * p.head_dim, kQueries, p.head_dim,
           least(kQueries, p.q_len - first), p.scale, dq + offset(dq_strides, batch, head, first),
           dq_strides.row);
    }
  }
  write_rows(s.dk, dim, count, p.head_dim, b.dk + offset(b.dk_strides, batch, kv_head, begin),
             b.dk_strides.row);
  write_rows(s.dv, values, count, p.value_dim, b.dv + offset(b.dv_strides, batch, kv_head, begin),
             b.dv_strides.row);
}

}  // namespace

AttentionBackwardKernels attention_backward_kernels() {
  return {.key_block = kKeyBlock, .scratch_bytes = scratch_bytes, .keys = keys};
}

}  // namespace rlx::cpu::RLX_ISA
