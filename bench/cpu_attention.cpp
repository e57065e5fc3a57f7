// Attention: prefill and its gradient against our own matrix product at the same rate of arithmetic, decoding
// against read bandwidth and, in turn with it, a plain read of the same keys and values.
#include <atomic>
#include <vector>

#include "bench/bench.h"
#include "rlx/backend/cpu/kernels/attention_backward.h"
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

// A product of 1024 x 1024 x 1024: what our own matrix product reaches.
struct OwnGemm {
  static constexpr int64_t size = 1024;
  Team team{default_pool()};
  std::vector<float> a = numbers(size * size), c = a;
  PackedMatrix packed = PackedMatrix::pack(team, {a.data(), DType::f32, size, 1}, size, size, DType::f32);
  Gemm g{.m = size,
         .n = size,
         .k = size,
         .a = {a.data(), DType::f32, size, 1},
         .packed_b = &packed,
         .c = c.data(),
         .c_row_stride = size};
  AlignedBytes memory = allocate_aligned(gemm_workspace(g, team.threads()));

  void run() { gemm(team, g, memory.get()); }
  static double gflops(double seconds) { return 2e-9 * double(size) * double(size) * double(size) / seconds; }
};

void prefill(bool backward) {
  const int64_t heads = 16, length = 2048, dim = 64;
  const std::vector<float> q = numbers(heads * length * dim), k = q, v = q, dy = q;
  std::vector<float> o(q.size()), lse(size_t(heads * length)), dq(q.size()), dk(q.size()), dv(q.size());
  const Team team(default_pool());
  Attention p = problem(heads, heads, length, length, dim, q, k, v, o);
  p.lse = lse.data();
  const AlignedBytes workspace = allocate_aligned(attention_workspace(p, team.threads()));
  attention(team, p, workspace.get());
  const AttentionBackward d{.forward = p,
                            .dy = dy.data(),
                            .dy_strides = p.o_strides,
                            .dq = dq.data(),
                            .dq_strides = p.q_strides,
                            .dk = dk.data(),
                            .dk_strides = p.k_strides,
                            .dv = dv.data(),
                            .dv_strides = p.v_strides};
  const AlignedBytes more = allocate_aligned(attention_backward_workspace(d, team.threads()));
  OwnGemm own;
  const auto run = [&] {
    if (backward) {
      attention_backward(team, d, more.get());
    } else {
      attention(team, p, workspace.get());
    }
  };
  const auto t = interleaved({run, [&] { own.run(); }});
  // Two products forward, five backward, of the allowed pairs.
  const double pairs = 0.5 * double(heads) * double(length) * double(length + 1);
  report({.name = backward ? "attention backward causal h16 s2048 d64" : "attention causal h16 s2048 d64",
          .value = (backward ? 10e-9 : 4e-9) * pairs * double(dim) / t[0],
          .unit = "GFLOP/s",
          .limit = OwnGemm::gflops(t[1]),
          .goal = backward ? ">= 50 % of own gemm" : ">= 60 % of own gemm"});
}

// The sum of the words of whole cache lines, each thread its share.
uint64_t sum(Team team, const std::byte* data, int64_t bytes) {
  std::atomic<uint64_t> total = 0;
  team.parallel_for(bytes / 64, 1, [&](int64_t begin, int64_t end) {
    const auto* words = reinterpret_cast<const uint64_t*>(data);
    uint64_t s[8] = {};
    for (int64_t line = begin; line < end; ++line) {
      for (int j = 0; j < 8; ++j) s[j] += words[line * 8 + j];
    }
    for (const uint64_t part : s) total += part;
  });
  return total;
}

struct Decode {
  std::string name;
  int64_t heads, queries;
  KvFormat format;
};

void decode(const Decode& d) {
  const int64_t kv_heads = 8, keys = 4096, dim = 64;
  const double bytes = d.format == KvFormat::f32 ? 4 : d.format == KvFormat::q8_0 ? 34.0 / 32 : 2;
  // Sets in turn, 128 MB of them: no cache keeps them.
  const int64_t set_bytes = int64_t(double(kv_heads * keys * dim) * bytes),
                sets = (int64_t(64) << 20) / set_bytes;
  const std::vector<float> q = numbers(d.heads * d.queries * dim);
  // Codes of 16 and scales of 0x0010, 0x1010 or 0x10: small numbers in every format.
  const AlignedBytes k = allocate_aligned(size_t(sets * set_bytes)),
                     v = allocate_aligned(size_t(sets * set_bytes));
  std::fill_n(k.get(), sets * set_bytes, std::byte{16});
  std::fill_n(v.get(), sets * set_bytes, std::byte{16});
  std::vector<float> o(q.size());
  const Team team(default_pool());
  Attention p = problem(d.heads, kv_heads, d.queries, keys, dim, q, q, q, o);
  p.kv_format = d.format;
  const AlignedBytes workspace = allocate_aligned(attention_workspace(p, team.threads()));
  int64_t turn = 0;
  uint64_t total = 0;
  const auto next = [&] { return turn++ % sets * set_bytes; };
  const auto t = interleaved({[&] {
                                const int64_t at = next();
                                p.k = k.get() + at;
                                p.v = v.get() + at;
                                attention(team, p, workspace.get());
                              },
                              [&] {
                                const int64_t at = next();
                                total +=
                                    sum(team, k.get() + at, set_bytes) + sum(team, v.get() + at, set_bytes);
                              }});
  const double bytes_read = 2e-9 * double(set_bytes);
  report({.name = d.name,
          .value = bytes_read / t[0],
          .unit = "GB/s",
          .limit = limits().read_gbs,
          .peer = total == 1 ? 0 : bytes_read / t[1],
          .peer_name = "read in turn",
          .goal = ">= 75 % of read"});
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  using namespace rlx::bench;
  using enum rlx::cpu::KvFormat;
  if (wanted(argc, argv, "attention causal h16 s2048 d64")) prefill(false);
  if (wanted(argc, argv, "attention backward causal h16 s2048 d64")) prefill(true);
  const Decode cases[] = {
      {"decode 1x4096 kv8 h8", 8, 1, f32},         {"decode 1x4096 kv8 h32", 32, 1, f32},
      {"decode 4x4096 kv8 h32", 32, 4, f32},       {"decode 1x4096 kv8 h32 f16", 32, 1, f16},
      {"decode 1x4096 kv8 h32 bf16", 32, 1, bf16}, {"decode 1x4096 kv8 h8 q8_0", 8, 1, q8_0},
      {"decode 1x4096 kv8 h32 q8_0", 32, 1, q8_0}};
  for (const Decode& d : cases) {
    if (wanted(argc, argv, d.name)) decode(d);
  }
}
