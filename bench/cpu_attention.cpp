// Attention: prefill against our own matrix product at the same rate of arithmetic, decoding against read
// bandwidth.
#include <vector>

#include "bench/bench.h"
#include "rlx/backend/cpu/kernels/attention.h"
#include "rlx/backend/cpu/kernels/gemm.h"

namespace rlx::bench {
namespace {

using namespace cpu;

std::vector<float> numbers(int64_t n) {
  std::vector<float> v(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) v[size_t(i)] = float(i * 7919 % 1000) * 0.002f - 1;
  return v;
}

Attention problem(int64_t heads, int64_t kv_heads, int64_t q_len, int64_t k_len, int64_t dim,
                  const std::vector<float>& q, const std::vector<float>& k, const std::vector<float>& v,
                  std::vector<float>& o) {
  return {.q_heads = heads,
          .kv_heads = kv_heads,
          .q_len = q_len,
          .k_len = k_len,
          .head_dim = dim,
          .value_dim = dim,
          .scale = 0.125f,
          .causal = true,
          .q = q.data(),
          .q_strides = {0, q_len * dim, dim},
          .k = k.data(),
          .k_strides = {0, k_len * dim, dim},
          .v = v.data(),
          .v_strides = {0, k_len * dim, dim},
          .o = o.data(),
          .o_strides = {0, q_len * dim, dim}};
}

void prefill() {
  const int64_t heads = 16, length = 2048, dim = 64, size = 1024;
  const std::vector<float> q = numbers(heads * length * dim), k = q, v = q, a = numbers(size * size);
  std::vector<float> o(q.size()), c(a.size());
  const Team team(default_pool());
  const Attention p = problem(heads, heads, length, length, dim, q, k, v, o);
  const AlignedBytes workspace = allocate_aligned(attention_workspace(p, team.threads()));
  const PackedMatrix packed =
      PackedMatrix::pack(team, {a.data(), DType::f32, size, 1}, size, size, DType::f32);
  const Gemm g{.m = size,
               .n = size,
               .k = size,
               .a = {a.data(), DType::f32, size, 1},
               .packed_b = &packed,
               .c = c.data(),
               .c_row_stride = size};
  const AlignedBytes gemm_memory = allocate_aligned(gemm_workspace(g, team.threads()));
  const auto t =
      interleaved({[&] { attention(team, p, workspace.get()); }, [&] { gemm(team, g, gemm_memory.get()); }});
  const double flops = 2e-9 * double(heads) * double(length) * double(length + 1) * double(dim);
  report({.name = "attention causal h16 s2048 d64",
          .value = flops / t[0],
          .unit = "GFLOP/s",
          .limit = 2e-9 * double(size) * double(size) * double(size) / t[1],
          .goal = ">= 60 % of own gemm"});
}

void decode(int64_t heads, const std::string& name) {
  const int64_t kv_heads = 8, keys = 4096, dim = 64;
  // Eight sets in turn, 128 MB: no cache keeps them.
  const int sets = 8;
  const std::vector<float> q = numbers(heads * dim), k = numbers(sets * kv_heads * keys * dim), v = k;
  std::vector<float> o(q.size());
  const Team team(default_pool());
  Attention p = problem(heads, kv_heads, 1, keys, dim, q, k, v, o);
  const AlignedBytes workspace = allocate_aligned(attention_workspace(p, team.threads()));
  int turn = 0;
  const auto t = interleaved({[&] {
    p.k = k.data() + turn * kv_heads * keys * dim;
    p.v = v.data() + turn * kv_heads * keys * dim;
    turn = (turn + 1) % sets;
    attention(team, p, workspace.get());
  }});
  report({.name = name,
          .value = 8e-9 * double(kv_heads * keys * dim) / t[0],
          .unit = "GB/s",
          .limit = limits().read_gbs,
          .goal = ">= 75 % of read"});
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  using namespace rlx::bench;
  if (wanted(argc, argv, "attention causal h16 s2048 d64")) prefill();
  if (wanted(argc, argv, "decode 1x4096 kv8 h8")) decode(8, "decode 1x4096 kv8 h8");
  if (wanted(argc, argv, "decode 1x4096 kv8 h32")) decode(32, "decode 1x4096 kv8 h32");
}
