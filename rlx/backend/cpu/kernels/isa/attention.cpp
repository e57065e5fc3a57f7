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
// Levels: also avx512vnni, for attention_decode.cpp.
#include "rlx/backend/cpu/kernels/attention.h"

#include "rlx/backend/cpu/kernels/isa/attention_decode.h"
#include "rlx/backend/cpu/kernels/isa/attention_scores.h"

namespace rlx::cpu::RLX_ISA {
namespace {

constexpr int64_t kKeyBlock = 8 * kKeyTile;

void pack_keys(const Attention& p, int64_t batch, int64_t head, int64_t begin, int64_t end, float* out) {
  with_kv(p, p.k, [&](auto data) {
    pack_tiles(data + offset(p.k_strides, batch, head, 0), p.k_strides.row, p.k_len, p.head_dim, begin, end,
               out);
  });
}

void widen_values(const Attention& p, int64_t batch, int64_t head, int64_t begin, int64_t end, float* out) {
  with_kv(p, p.v, [&](auto data) {
    widen_rows(data + offset(p.v_strides, batch, head, 0), p.v_strides.row, p.value_dim, begin, end, out,
               p.value_dim);
  });
}

size_t scratch_bytes(const Attention& p) {
  const int64_t block = (p.head_dim + kKeyBlock + p.value_dim) * kQueries;  // Q panel, scores, O'
  const size_t many = size_t(block) * sizeof(float), few = decode_scratch_bytes(p);
  return many > few ? many : few;
}

void forward(const Attention& p, int64_t batch, int64_t head, int64_t first, const float* packed_keys,
             const float* values, int64_t value_stride, std::byte* scratch) {
  const Block b{p, batch, head, first, least(kQueries, p.q_len - first)};
  float* panel = reinterpret_cast<float*>(scratch);  // [head_dim][kQueries]
  float* scores = panel + p.head_dim * kQueries;
  float* sums = scores + kKeyBlock * kQueries;  // O'
  const float* q = p.q + offset(p.q_strides, batch, head, first);
  for (int64_t i = 0; i < p.head_dim * kQueries; i += kLanes) store(panel + i, F32{});
  turn(q, p.q_strides.row, b.queries, p.head_dim, p.scale, panel, kQueries);
  for (int64_t i = 0; i < p.value_dim * kQueries; i += kLanes) store(sums + i, F32{});
  F32 top[2] = {set1(-kInfinity), set1(-kInfinity)}, total[2] = {F32{}, F32{}};

  const Seen from = visible(p, first), to = visible(p, first + b.queries - 1);
  const bool always = p.bias != nullptr || has_masks(p);
  for (int64_t key0 = from.low / kKeyBlock * kKeyBlock; key0 < to.high; key0 += kKeyBlock) {
    const int64_t keys = least(kKeyBlock, p.k_len - key0);
    tiles_times_panel(packed_keys, p.k_len, p.head_dim, key0, key0 + keys, panel, scores);
    if (p.softcap > 0) {
      const F32 cap = set1(p.softcap), inverse = set1(1.0f / p.softcap);
      for (int64_t i = 0; i < keys * kQueries; i += kLanes) {
        store(scores + i, cap * tanh(load(scores + i) * inverse));
      }
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
    tile_f32(p.value_dim, values + key0 * value_stride, value_stride, scores, kQueries, keys, sums, kQueries,
             false);
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
  float* o = p.o + offset(p.o_strides, batch, head, first);
  turn(static_cast<const float*>(sums), kQueries, p.value_dim, b.queries, 1.0f, o, p.o_strides.row);
}

}  // namespace

AttentionKernels attention_kernels() {
  return {.queries = int(kQueries),
          .key_tile = int(kKeyTile),
          .scratch_bytes = scratch_bytes,
          .pack_keys = pack_keys,
          .widen_values = widen_values,
          .forward = forward,
          .decode = decode_split,
          .join = join_splits};
}

}  // namespace rlx::cpu::RLX_ISA
