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

size_t keys_bytes(const Attention& p) { return size_t(p.k_len * p.head_dim) * 4; }
size_t values_bytes(const Attention& p) {
  return p.kv_format == KvFormat::f32 ? 0 : size_t(p.k_len * p.value_dim) * 4;
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
  return size_t(p.batch * p.kv_heads) * round_up(keys_bytes(p) + values_bytes(p)) + scratch;
}

void attention(Team team, const Attention& p, std::byte* workspace) {
  RLX_CHECK(p.kv_heads > 0 && p.q_heads % p.kv_heads == 0, p.q_heads, " query heads over ", p.kv_heads);
  if (p.batch == 0 || p.q_len == 0) return;
  if (few_queries(p)) return run_few(team, p, workspace);
  const AttentionKernels& k = attention_kernels();
  const int64_t heads = p.batch * p.kv_heads, group = p.q_heads / p.kv_heads;
  const size_t head_bytes = round_up(keys_bytes(p) + values_bytes(p));
  const auto head_keys = [&](int64_t h) {
    return reinterpret_cast<float*>(workspace + size_t(h) * head_bytes);
  };
  const auto head_values = [&](int64_t h) { return head_keys(h) + p.k_len * p.head_dim; };
  const bool widen = p.kv_format != KvFormat::f32;

  const int64_t chunk = 16 * k.key_tile, chunks = ceil_div(p.k_len, chunk);
  team.parallel_for(heads * chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t h = i / chunks, first = i % chunks * chunk, last = std::min(p.k_len, first + chunk);
      k.pack_keys(p, h / p.kv_heads, h % p.kv_heads, first, last, head_keys(h));
      if (widen) k.widen_values(p, h / p.kv_heads, h % p.kv_heads, first, last, head_values(h));
    }
  });

  // Late blocks of queries see more keys under a causal mask: the long ones go first.
  std::byte* scratch = workspace + size_t(heads) * head_bytes;
  const size_t scratch_bytes = round_up(k.scratch_bytes(p));
  const int64_t blocks = ceil_div(p.q_len, k.queries), tasks = p.batch * p.q_heads * blocks;
  std::atomic<int64_t> next{0};
  team.run(int(std::min<int64_t>(team.threads(), tasks)), [&](int thread) {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) {
      const int64_t batch = i / (p.q_heads * blocks), head = i / blocks % p.q_heads;
      const int64_t first = (blocks - 1 - i % blocks) * k.queries, h = batch * p.kv_heads + head / group;
      const float* values = widen ? head_values(h)
                                  : static_cast<const float*>(p.v) + batch * p.v_strides.batch +
                                        head / group * p.v_strides.head;
      k.forward(p, batch, head, first, head_keys(h), values, widen ? p.value_dim : p.v_strides.row,
                scratch + size_t(thread) * scratch_bytes);
    }
  });
}

}  // namespace rlx::cpu
