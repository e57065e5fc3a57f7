#include "rlx/backend/cpu/kernels/attention.h"

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE_VNNI(AttentionKernels, attention_kernels)

namespace {

int64_t rows_per_kv_head(const Attention& p) { return p.q_heads / p.kv_heads * p.q_len; }
bool few_queries(const Attention& p) { return rows_per_kv_head(p) <= kAttentionFewRows && p.q_len <= 4; }

// Keys are split the same way for every thread count, so that results are.
int64_t splits(const Attention& p) { return std::max<int64_t>(1, ceil_div(p.k_len, kAttentionSplit)); }

size_t keys_bytes(const Attention& p) { return round_up(size_t(p.k_len * p.head_dim) * 4); }
size_t values_bytes(const Attention& p) {
  return p.kv_format == KvFormat::f32 ? 0 : round_up(size_t(p.k_len * p.value_dim) * 4);
}
size_t head_bytes(const Attention& p) { return keys_bytes(p) + values_bytes(p); }

// With many heads a thread packs a head and computes it while its keys are near; with few, all threads share the queries of a
// head, whose keys all of them have packed before.
bool head_by_head(const Attention& p, int threads) { return p.batch * p.kv_heads >= 16 * threads; }
int64_t packed_heads(const Attention& p, int threads) {
  return head_by_head(p, threads) ? threads : p.batch * p.kv_heads;
}

/// One key-value head, packed.
struct PackedHead {
  int64_t batch, head;
  float* keys;
  float* values;  // null where they are read in place
};

void pack(const Attention& p, const PackedHead& h, int64_t first, int64_t last) {
  const AttentionKernels& k = attention_kernels();
  k.pack_keys(p, h.batch, h.head, first, last, h.keys);
  if (h.values != nullptr) k.widen_values(p, h.batch, h.head, first, last, h.values);
}

void one_block(const Attention& p, const PackedHead& h, int64_t q_head, int64_t first, std::byte* scratch) {
  const float* in_place =
      static_cast<const float*>(p.v) + h.batch * p.v_strides.batch + h.head * p.v_strides.head;
  attention_kernels().forward(p, h.batch, q_head, first, h.keys, h.values ? h.values : in_place,
                              h.values ? p.value_dim : p.v_strides.row, scratch);
}

void run_few(Team team, const Attention& p, std::byte* workspace) {
  const AttentionKernels& k = attention_kernels();
  const int64_t parts = splits(p), heads = p.batch * p.kv_heads;
  const int64_t part_floats = rows_per_kv_head(p) * (p.value_dim + 2);
  float* out = reinterpret_cast<float*>(workspace);
  std::byte* scratch = workspace + round_up(size_t(heads * parts * part_floats) * 4);
  const size_t scratch_bytes = round_up(k.scratch_bytes(p));
  const int64_t tasks = heads * parts;
  std::atomic<int64_t> next{0};
  team.run(int(std::min<int64_t>(team.threads(), tasks)), [&](int thread) {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) {
      const int64_t head = i / parts, begin = i % parts * kAttentionSplit;
      k.decode(p, head / p.kv_heads, head % p.kv_heads, begin, std::min(p.k_len, begin + kAttentionSplit),
               out + i * part_floats, scratch + size_t(thread) * scratch_bytes);
    }
  });
  team.parallel_for(heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t h = begin; h < end; ++h) {
      k.join(p, h / p.kv_heads, h % p.kv_heads, parts, out + h * parts * part_floats);
    }
  });
}

}  // namespace

size_t attention_workspace(const Attention& p, int threads) {
  const size_t scratch = round_up(attention_kernels().scratch_bytes(p)) * size_t(threads);
  if (few_queries(p)) {
    return round_up(size_t(p.batch * p.kv_heads * splits(p) * rows_per_kv_head(p) * (p.value_dim + 2)) * 4) +
           scratch;
  }
  return size_t(packed_heads(p, threads)) * head_bytes(p) + scratch;
}

void attention(Team team, const Attention& p, std::byte* workspace) {
  RLX_CHECK(p.kv_heads > 0 && p.q_heads % p.kv_heads == 0, p.q_heads, " query heads over ", p.kv_heads);
  if (p.batch == 0 || p.q_len == 0) return;
  if (few_queries(p)) return run_few(team, p, workspace);
  const AttentionKernels& k = attention_kernels();
  const int64_t heads = p.batch * p.kv_heads, group = p.q_heads / p.kv_heads;
  const int64_t blocks = ceil_div(p.q_len, k.queries);
  const bool by_heads = head_by_head(p, team.threads());
  std::byte* const scratch = workspace + size_t(packed_heads(p, team.threads())) * head_bytes(p);
  const size_t scratch_bytes = round_up(k.scratch_bytes(p));
  const auto packed = [&](int64_t head, int64_t place) {
    std::byte* const at = workspace + size_t(place) * head_bytes(p);
    return PackedHead{head / p.kv_heads, head % p.kv_heads, reinterpret_cast<float*>(at),
                      values_bytes(p) > 0 ? reinterpret_cast<float*>(at + keys_bytes(p)) : nullptr};
  };
  std::atomic<int64_t> next{0};
  const auto each_task = [&](int64_t tasks, auto body) {
    team.run(int(std::min<int64_t>(team.threads(), tasks)), [&](int thread) {
      for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) body(i, thread);
    });
  };

  if (by_heads) {
    each_task(heads, [&](int64_t head, int thread) {
      const PackedHead h = packed(head, thread);
      pack(p, h, 0, p.k_len);
      for (int64_t q_head = h.head * group; q_head < (h.head + 1) * group; ++q_head) {
        for (int64_t block = 0; block < blocks; ++block)
          one_block(p, h, q_head, block * k.queries, scratch + size_t(thread) * scratch_bytes);
      }
    });
    return;
  }
  const int64_t chunk = 16 * k.key_tile, chunks = ceil_div(p.k_len, chunk);
  team.parallel_for(heads * chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % chunks * chunk;
      pack(p, packed(i / chunks, i / chunks), first, std::min(p.k_len, first + chunk));
    }
  });
  // Late blocks of queries see more keys under a causal mask: the long ones go first.
  each_task(p.batch * p.q_heads * blocks, [&](int64_t i, int thread) {
    const int64_t q_head = i / blocks % p.q_heads,
                  head = i / (p.q_heads * blocks) * p.kv_heads + q_head / group;
    one_block(p, packed(head, head), q_head, (blocks - 1 - i % blocks) * k.queries,
              scratch + size_t(thread) * scratch_bytes);
  });
}

}  // namespace rlx::cpu
