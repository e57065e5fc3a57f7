#include "rlx/backend/cpu/kernels/attention_backward.h"

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE(AttentionBackwardKernels, attention_backward_kernels)

namespace {

// Key-value heads that write the same part of dbias belong to one owner and are worked on in order. Where
// that leaves few owners, each splits its keys, a number that depends on the shape alone; the parts of dq
// are then added in the order of the keys.
struct Split {
  int64_t batches, heads;  // owners: batches * heads; each has batch / batches * kv_heads / heads units
  int64_t parts, part_keys;

  int64_t tasks() const { return batches * heads * parts; }
};

Split split(const AttentionBackward& p) {
  constexpr int64_t kEnoughTasks = 16;
  const Attention& f = p.forward;
  const bool shared_batch = p.dbias != nullptr && f.bias_strides.batch == 0;
  const bool shared_head = p.dbias != nullptr && f.bias_strides.head == 0;
  Split s{shared_batch ? 1 : f.batch, shared_head ? 1 : f.kv_heads, 1, 0};
  const int64_t block = attention_backward_kernels().key_block;
  const int64_t blocks = std::max<int64_t>(1, ceil_div(f.k_len, block));
  const int64_t wanted = ceil_div(kEnoughTasks, s.batches * s.heads);
  s.part_keys = ceil_div(blocks, std::min(wanted, blocks)) * block;
  s.parts = std::max<int64_t>(1, ceil_div(f.k_len, s.part_keys));
  return s;
}

size_t dq_part_floats(const Attention& f) { return size_t(f.batch * f.q_heads * f.q_len * f.head_dim); }

void clear_dbias(Team team, const AttentionBackward& p) {
  const Attention& f = p.forward;
  const HeadStrides& s = f.bias_strides;
  const int64_t batches = s.batch == 0 ? 1 : f.batch, heads = s.head == 0 ? 1 : f.q_heads,
                rows = s.row == 0 ? 1 : f.q_len;
  team.parallel_for(batches * heads * rows, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* to = p.dbias + i / (heads * rows) * s.batch + i / rows % heads * s.head + i % rows * s.row;
      std::fill(to, to + f.k_len, 0.0f);
    }
  });
}

void join_dq(Team team, const AttentionBackward& p, int64_t parts, const float* dq) {
  const Attention& f = p.forward;
  const size_t part = dq_part_floats(f);
  team.parallel_for(f.batch * f.q_heads * f.q_len, 64, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t b = row / (f.q_heads * f.q_len), h = row / f.q_len % f.q_heads, i = row % f.q_len;
      float* to = p.dq + b * p.dq_strides.batch + h * p.dq_strides.head + i * p.dq_strides.row;
      const float* from = dq + row * f.head_dim;
      std::copy(from, from + f.head_dim, to);
      for (int64_t s = 1; s < parts; ++s) {
        for (int64_t d = 0; d < f.head_dim; ++d) to[d] += from[size_t(s) * part + size_t(d)];
      }
    }
  });
}

}  // namespace

size_t attention_backward_workspace(const AttentionBackward& p, int threads) {
  const Split s = split(p);
  const size_t parts = s.parts > 1 ? round_up(size_t(s.parts) * dq_part_floats(p.forward) * 4) : 0;
  return parts + size_t(threads) * round_up(attention_backward_kernels().scratch_bytes(p, s.part_keys));
}

void attention_backward(Team team, const AttentionBackward& p, std::byte* workspace) {
  const Attention& f = p.forward;
  RLX_CHECK(f.kv_heads > 0 && f.q_heads % f.kv_heads == 0, f.q_heads, " query heads over ", f.kv_heads);
  RLX_CHECK(f.kv_format != KvFormat::q8_0, "keys in q8_0 have no gradient");
  if (f.batch == 0) return;
  if (p.dbias != nullptr) clear_dbias(team, p);
  const AttentionBackwardKernels& k = attention_backward_kernels();
  const Split s = split(p);
  const size_t scratch_bytes = round_up(k.scratch_bytes(p, s.part_keys));
  float* partial = reinterpret_cast<float*>(workspace);
  std::byte* scratch = workspace + (s.parts > 1 ? round_up(size_t(s.parts) * dq_part_floats(f) * 4) : 0);
  const int64_t batches = f.batch / s.batches, heads = f.kv_heads / s.heads;
  std::atomic<int64_t> next{0};
  team.run(int(std::min<int64_t>(team.threads(), s.tasks())), [&](int thread) {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < s.tasks();) {
      const int64_t part = i % s.parts, owner = i / s.parts, begin = part * s.part_keys;
      float* dq = s.parts > 1 ? partial + size_t(part) * dq_part_floats(f) : p.dq;
      const HeadStrides strides =
          s.parts > 1 ? HeadStrides{f.q_heads * f.q_len * f.head_dim, f.q_len * f.head_dim, f.head_dim}
                      : p.dq_strides;
      for (int64_t unit = 0; unit < batches * heads; ++unit) {
        k.keys(p, owner / s.heads * batches + unit / heads, owner % s.heads * heads + unit % heads, begin,
               std::min(f.k_len, begin + s.part_keys), dq, strides, scratch + size_t(thread) * scratch_bytes);
      }
    }
  });
  if (s.parts > 1) join_dq(team, p, s.parts, partial);
}

}  // namespace rlx::cpu
