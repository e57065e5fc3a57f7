// Kernels through a compiled graph against the bare kernel on the same memory: what names, checks, addresses
// and steps cost.
#include "bench/bench.h"
#include "rlx/backend/cpu/kernels/attention.h"
#include "rlx/backend/cpu/kernels/fft.h"
#include "rlx/backend/cpu/kernels/gated_delta_net.h"
#include "rlx/backend/cpu/kernels/linalg.h"
#include "rlx/backend/cpu/kernels/selective_scan.h"
#include "rlx/base/aligned.h"
#include "rlx/ir/sample.h"
#include "rlx/ir/text.h"
#include "rlx/ops/all.h"
#include "rlx/runtime/compiled_graph.h"

namespace rlx::bench {
namespace {

using Bare =
    std::function<void(Team, const std::vector<const std::byte*>& in, std::byte* out, std::byte* workspace)>;

struct Workload {
  std::string name, text;  // a graph whose first output the bare kernel writes
  size_t workspace;
  Bare bare;
  std::vector<std::string> fills = {};  // per leaf, behind its type
};

void run(int argc, char** argv, const Workload& w) {
  const std::string name = "session_" + w.name;
  if (!wanted(argc, argv, name)) return;
  const ir::Graph g = ir::parse_graph(w.text, ops::table());
  CompiledGraph f = compile(g, {}, {.threads = threads()});
  Literals values;
  std::vector<Input> inputs;
  std::vector<const std::byte*> addresses;
  for (const Port& port : f.inputs()) {
    const std::string fill = values.size() < w.fills.size() ? " " + w.fills[values.size()] : "";
    values.push_back(ir::sample_literal(cat(port.shape, fill), 3 + values.size()));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    inputs.push_back({f.inputs()[i].name, view(values[i])});
    addresses.push_back(values[i].bytes().data());
  }
  const AlignedBytes out = allocate_aligned(size_t(f.outputs()[0].shape.size_bytes()));
  const AlignedBytes workspace = allocate_aligned(w.workspace);
  const Team team(default_pool(), threads());
  const auto t =
      interleaved({[&] { f.run(inputs); }, [&] { w.bare(team, addresses, out.get(), workspace.get()); }});
  report({.name = name,
          .value = 1 / t[0],
          .unit = "calls/s",
          .limit = 1 / t[1],
          .goal = ">= 97 % of the bare kernel"});
}

const float* f32(const std::byte* p) { return reinterpret_cast<const float*>(p); }
float* f32(std::byte* p) { return reinterpret_cast<float*>(p); }

Workload fft_rows() {
  const int64_t rows = 256, n = 1024;
  const auto plan = std::make_shared<const cpu::FftPlan>(n, DType::f32);
  cpu::Fft p{.plan = plan.get(), .rows = rows};
  p.x_stride = p.y_stride = 2;
  p.x_row_stride = p.y_row_stride = 2 * n;
  return {"fft_256x1024", "graph @g(x: c64[256,1024]) { y = fft(x) return y }",
          cpu::fft_workspace(p, threads()),
          [plan, p](Team team, const auto& in, std::byte* out, std::byte* workspace) {
            cpu::Fft now = p;
            now.x_re = in[0], now.x_im = in[0] + 4;
            now.y_re = out, now.y_im = out + 4;
            cpu::fft(team, now, workspace);
          }};
}

Workload solver() {
  const cpu::DenseSolve p{.batch = 64, .n = 48, .k = 8};
  return {"solve_64x48",
          "graph @g(a: f32[64,48,48], b: f32[64,48,8]) { y = batched_dense_solve(a, b) return y }",
          cpu::dense_solve_workspace(p, threads()),
          [p](Team team, const auto& in, std::byte* out, std::byte* workspace) {
            cpu::DenseSolve now = p;
            now.a = in[0], now.b = in[1], now.x = out;
            cpu::dense_solve(team, now, workspace);
          },
          {"solvable", ""}};
}

Workload delta_net(int64_t length) {
  const cpu::GatedDeltaNet p{.batch = 1, .length = length, .heads = 8, .size = 64};
  const auto state = std::make_shared<AlignedBytes>(allocate_aligned(8 * 64 * 64 * 4));
  return {cat("delta_net_", length),
          cat("graph @g(q: f32[1,", length, ",8,64], k: f32[1,", length, ",8,64], v: f32[1,", length,
              ",8,64], g: f32[1,", length, ",8], b: f32[1,", length,
              ",8]) { y:2 = gated_delta_net(q, k, v, g, b) return y, y#1 }"),
          cpu::gated_delta_net_workspace(p, threads()),
          [p, state](Team team, const auto& in, std::byte* out, std::byte* workspace) {
            cpu::GatedDeltaNet now = p;
            now.q = f32(in[0]), now.k = f32(in[1]), now.v = f32(in[2]), now.g = f32(in[3]),
            now.beta = f32(in[4]);
            now.y = f32(out);
            now.final_state = f32(state->get());
            cpu::gated_delta_net(team, now, workspace);
          },
          {"in -0.1..0.1", "in -0.1..0.1", "", "in -1..0", "unit"}};
}

Workload selective_scan() {
  const cpu::SelectiveScan p{.batch = 1, .length = 512, .channels = 768, .states = 16};
  return {
      "selective_scan_512",
      "graph @g(x: f32[1,512,768], d: f32[1,512,768], a: f32[768,16], b: f32[1,512,16], c: f32[1,512,16]) { y = "
      "selective_scan(x, d, a, b, c) return y }",
      cpu::selective_scan_workspace(p, threads()),
      [p](Team team, const auto& in, std::byte* out, std::byte* workspace) {
        cpu::SelectiveScan now = p;
        now.x = f32(in[0]), now.delta = f32(in[1]), now.a = f32(in[2]), now.b = f32(in[3]),
        now.c = f32(in[4]);
        now.y = f32(out);
        cpu::selective_scan(team, now, workspace);
      },
      {"", "unit", "in -1..0", "", ""}};
}

// Packed heads of 64 lanes; keys and values of `type`.
Workload attention(int64_t queries, int64_t keys, int64_t heads, int64_t kv_heads, const std::string& type) {
  cpu::Attention p{.q_heads = heads, .kv_heads = kv_heads, .q_len = queries, .k_len = keys, .head_dim = 64};
  p.value_dim = 64;
  p.scale = 0.125f;
  p.kv_format = type == "f16" ? cpu::KvFormat::f16 : cpu::KvFormat::f32;
  p.q_strides = p.o_strides = {0, 64, heads * 64};
  p.k_strides = p.v_strides = {0, 64, kv_heads * 64};
  // In the graph all operands have one type; the few queries are converted there, and by hand beforehand
  // here.
  const auto q = std::make_shared<std::vector<float>>(size_t(queries * heads * 64), 0.5f);
  const auto y = std::make_shared<std::vector<float>>(q->size());
  const auto lse = std::make_shared<std::vector<float>>(size_t(queries * heads));
  return {cat("attention_", queries, "x", keys, "_", type),
          cat("graph @g(q: ", type, "[1,", queries, ",", heads * 64, "], k: ", type, "[1,", keys, ",",
              kv_heads * 64, "], v: ", type, "[1,", keys, ",", kv_heads * 64,
              "]) { y:2 = attention(q, k, v, num_heads=", heads, ", num_kv_heads=", kv_heads, ") return y }"),
          cpu::attention_workspace(p, threads()) + 64,
          [p, q, y, lse, type](Team team, const auto& in, std::byte* out, std::byte* workspace) {
            cpu::Attention now = p;
            now.q = type == "f32" ? f32(in[0]) : q->data();
            now.k = in[1], now.v = in[2];
            now.o = type == "f32" ? f32(out) : y->data();
            now.lse = lse->data();
            cpu::attention(team, now, workspace);
          }};
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  using namespace rlx::bench;
  run(argc, argv, fft_rows());
  run(argc, argv, solver());
  run(argc, argv, delta_net(1));
  run(argc, argv, delta_net(512));
  run(argc, argv, selective_scan());
  run(argc, argv, attention(256, 256, 12, 12, "f32"));
  run(argc, argv, attention(1, 4096, 32, 8, "f32"));
  run(argc, argv, attention(1, 4096, 32, 8, "f16"));
}
