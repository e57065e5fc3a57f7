// Products of many rows with the elements behind them: as the library and a pass (RLX_CUDA_TURNS=0), and as one kernel in each of the cuts that the model likes best.
#include <cstdio>
#include <cstdlib>

#include "bench/gpu/program.h"
#include "rlx/ops/all.h"

namespace rlx::bench {
namespace {

using ir::Expr;

enum class Behind { bias, bias_gelu, residual, gate };

struct Work {
  const char* name;
  int64_t m, n, k;
  Behind behind;
};

constexpr Work kWorks[] = {{"minilm_up_256", 32768, 1536, 384, Behind::bias_gelu},
                           {"minilm_qkv_256", 32768, 1152, 384, Behind::bias},
                           {"minilm_down_256", 32768, 384, 1536, Behind::residual},
                           {"minilm_up_32", 4096, 1536, 384, Behind::bias_gelu},
                           {"minilm_up_8", 1024, 1536, 384, Behind::bias_gelu},
                           {"minilm_qkv_8", 1024, 1152, 384, Behind::bias},
                           {"gpt2_up", 8192, 3072, 768, Behind::bias_gelu},
                           {"llama_135m_gate", 2048, 1536, 576, Behind::gate},
                           {"llama_1b_gate", 2048, 8192, 2048, Behind::gate},
                           {"llama_8b_gate", 2048, 14336, 4096, Behind::gate}};

ir::Graph graph_of(const Work& w) {
  ir::Graph g("product");
  constexpr DType t = DType::bf16;
  const auto leaf = [&](const char* name, Dims dims) {
    return Expr{&g, g.input(name, Shape(t, std::move(dims)))};
  };
  const Expr x = leaf("x", {w.m, w.k});
  if (w.behind == Behind::gate) {  // matrices of a file, turned
    const auto side = [&](const char* name) {
      return ops::matmul(x, ops::transpose(leaf(name, {w.n, w.k}), {1, 0}));
    };
    const Expr gate = side("gate"), up = side("up");
    g.set_outputs({ops::mul(ops::silu(gate), up)}, {"y"});
    return g;
  }
  Expr y = ops::add(ops::matmul(x, leaf("w", {w.k, w.n})), leaf("b", {w.n}));
  if (w.behind == Behind::bias_gelu) y = ops::gelu(y);
  if (w.behind == Behind::residual) y = ops::add(y, leaf("r", {w.m, w.n}));
  g.set_outputs({y}, {"y"});
  return g;
}

// Ways are counted from the library; cuts that there are none of are the last again.
void product_elements(const Work& w) {
  constexpr int kWays = 7;
  for (int way = 0; way < kWays; ++way) {
    setenv("RLX_CUDA_TURNS", cat(way).c_str(), 1);
    Program p(graph_of(w));
    const double seconds = seconds_of(p);
    if (only_plans) continue;
    const double sides = w.behind == Behind::gate ? 2 : 1;
    const double flops = 2.0 * sides * double(w.m) * double(w.n) * double(w.k);
    report(cat("elements_", w.name, "_", way),
           cat(rounded(seconds * 1e6, "us"), ", ", rounded(flops / seconds / 1e12, "TFLOP/s")), p);
    const std::string plan = p.plan();
    const size_t at = plan.find("tiles of "), end = std::min(plan.find('\n', at), plan.size());
    if (at != std::string::npos) std::printf("    %s\n", plan.substr(at, end - at).c_str());
  }
  unsetenv("RLX_CUDA_TURNS");
}

}  // namespace

std::vector<Case> product_cases() {
  std::vector<Case> out;
  for (const Work& w : kWorks) out.push_back({cat("elements_behind_", w.name), [=] { product_elements(w); }});
  return out;
}

}  // namespace rlx::bench
