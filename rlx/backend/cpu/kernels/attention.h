// Scaled dot-product attention without the matrix of scores.
//
//   s = scale q k'    s = cap tanh(s / cap)    s += bias    s = -inf where masked    o = softmax(s) v
//
// Query i sits at position k_len - q_len + i of the keys. A query with no allowed key gives zeros and a
// log-sum-exp of -inf. Query heads share key-value heads in groups of q_heads / kv_heads neighbours.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/backend/cpu/kernels/head_strides.h"
#include "rlx/base/pool.h"

namespace rlx::cpu {

/// How keys and values are stored. q8_0 has blocks of 32 along head_dim, of which all strides are multiples.
enum class KvFormat : uint8_t { f32, f16, bf16, q8_0 };

struct Attention {
  int64_t batch = 1, q_heads = 1, kv_heads = 1, q_len = 0, k_len = 0;
  int64_t head_dim = 0, value_dim = 0;
  float scale = 1;
  float softcap = 0;    // 0: none
  bool causal = false;  // key j <= position of the query
  int64_t window = -1;  // key j >= position - window; negative: none
  const float* q = nullptr;
  HeadStrides q_strides;
  KvFormat kv_format = KvFormat::f32;
  const void* k = nullptr;
  HeadStrides k_strides;
  const void* v = nullptr;
  HeadStrides v_strides;
  float* o = nullptr;
  HeadStrides o_strides;
  float* lse = nullptr;             // [batch, q_heads, q_len], log of the sum of exp(s); null to drop it
  const float* key_mask = nullptr;  // [batch, k_len], blocked where < 0.5
  const uint8_t* mask = nullptr;    // element (b, h, i, j), blocked where 0
  HeadStrides mask_strides;         // a stride of 0 broadcasts
  const float* bias = nullptr;      // element (b, h, i, j)
  HeadStrides bias_strides;
};

/// Few queries (decoding) split the keys into runs of this length, one task each.
inline constexpr int64_t kAttentionSplit = 256;
/// Most rows (queries times heads of a group) of that form.
inline constexpr int64_t kAttentionFewRows = 16;

size_t attention_workspace(const Attention&, int threads);
void attention(Team, const Attention&, std::byte* workspace);

// ---- what a level provides ----

struct AttentionKernels {
  int queries;   // of one block: two vectors
  int key_tile;  // keys of one packed tile
  size_t (*scratch_bytes)(const Attention&);
  /// Keys [begin, end) of one head into tiles [tile][head_dim][keys of the tile]; begin is on a tile border
  /// and `out` belongs to key 0.
  void (*pack_keys)(const Attention&, int64_t batch, int64_t kv_head, int64_t begin, int64_t end, float* out);
  /// The values of one head as f32, rows value_dim apart.
  void (*widen_values)(const Attention&, int64_t batch, int64_t kv_head, int64_t begin, int64_t end,
                       float* out);
  /// One block of queries of one head, from query `first` on.
  void (*forward)(const Attention&, int64_t batch, int64_t head, int64_t first, const float* packed_keys,
                  const float* values, int64_t value_stride, std::byte* scratch);
  /// Few queries: keys [begin, end) for all queries of one key-value head. Per row r = (head in group,
  /// query): out[r] = {maximum, sum, unnormalised values[value_dim]}.
  void (*decode)(const Attention&, int64_t batch, int64_t kv_head, int64_t begin, int64_t end, float* out,
                 std::byte* scratch);
  /// Joins `splits` such parts and writes o and lse.
  void (*join)(const Attention&, int64_t batch, int64_t kv_head, int64_t splits, const float* parts);
};

}  // namespace rlx::cpu
