// Products of fp8 with fp8, weights as files have them, [n, k]: by tiles of warps and, for many rows, by groups of warps in each of the cuts that the model likes best. Few rows are bound by the
// bytes of the weights, many by the matrix units for fp8.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "bench/gpu/program.h"
#include "rlx/ops/all.h"

namespace rlx::bench {
namespace {

using ir::Expr;

enum class Scales {
  tensor,
  rows,
  blocks
};  // of everything; of rows and columns; of 128 along k, and of 128 x 128

struct Work {
  int64_t m, n, k;
  Scales scales;
};

// Of an H200: bytes as measured, operations on fp8 at the clock that long products keep.
constexpr double kMemoryLimit = 4.3e12, kFp8Limit = 1580e12;
constexpr int64_t kFewRows = 64, kBlock = 128;
constexpr const char* kNames[] = {"tensor", "rows", "blocks"};

constexpr Work kWorks[] = {{8192, 8192, 8192, Scales::tensor},  {8192, 8192, 8192, Scales::blocks},
                           {2048, 14336, 4096, Scales::tensor}, {2048, 14336, 4096, Scales::rows},
                           {2048, 14336, 4096, Scales::blocks}, {2048, 4096, 14336, Scales::blocks},
                           {2048, 6144, 4096, Scales::blocks},  {2048, 4096, 4096, Scales::blocks},
                           {256, 14336, 4096, Scales::blocks},  {64, 14336, 4096, Scales::blocks},
                           {16, 14336, 4096, Scales::blocks},   {1, 14336, 4096, Scales::blocks},
                           {1, 4096, 4096, Scales::rows}};

// Several weights of few rows, so that none of them stays in the cache from one run to the next.
int64_t weights_of(const Work& w) { return w.m <= kFewRows ? 8 : 1; }

ir::Graph graph_of(const Work& w) {
  ir::Graph g("fp8");
  const auto blocks = [](int64_t size) { return (size + kBlock - 1) / kBlock; };
  const bool by_blocks = w.scales == Scales::blocks, whole = w.scales == Scales::tensor;
  const Expr x{&g, g.input("x", Shape(DType::f8e4m3, {w.m, w.k}))};
  const Expr of_x{&g, g.input("s", Shape(DType::f32, {whole ? 1 : w.m, by_blocks ? blocks(w.k) : 1}))};
  ir::Values results;
  std::vector<std::string> names;
  for (int64_t i = 0; i < weights_of(w); ++i) {
    const Expr stored{&g, g.param(cat("w", i), Shape(DType::f8e4m3, {w.n, w.k}))};
    const Expr of_w{
        &g, g.param(cat("t", i), Shape(DType::f32, {by_blocks ? blocks(w.k) : 1, whole       ? 1
                                                                                 : by_blocks ? blocks(w.n)
                                                                                             : w.n}))};
    results.push_back(ops::scaled_matmul(x, ops::transpose(stored, {1, 0}), of_x, of_w));
    names.push_back(cat("y", i));
  }
  g.set_outputs(results, names);
  return g;
}

// Way 0 is that of warps; cuts that there are none of are the last again.
void fp8_product(const Work& w) {
  const int ways = w.m <= kFewRows ? 1 : 7;
  setenv("RLX_CUDA_UNTRIED", "scaled_turns", 0);
  for (int way = 0; way < ways; ++way) {
    setenv("RLX_CUDA_TURNS", cat(way).c_str(), 1);
    Program p(graph_of(w));
    const double seconds = seconds_of(p) / double(weights_of(w));
    if (only_plans) continue;
    const double flops = 2.0 * double(w.m) * double(w.n) * double(w.k), bytes = double(w.n) * double(w.k);
    const double least = std::max(bytes / kMemoryLimit, flops / kFp8Limit);
    report(
        cat("fp8_", w.m, "x", w.n, "x", w.k, "_", kNames[int(w.scales)], "_", way),
        cat(rounded(seconds * 1e6, "us"), ", ", rounded(flops / seconds / 1e12, "TFLOP/s"), ", ",
            rounded(bytes / seconds / 1e9, "GB/s"), ", ", rounded(100 * least / seconds, "% of the limit")),
        p);
    const std::string plan = p.plan();
    const size_t at = plan.find("f8e4m3 x f8e4m3, "), end = std::min(plan.find('\n', at), plan.size());
    if (at != std::string::npos) std::printf("    %s\n", plan.substr(at, end - at).c_str());
  }
  unsetenv("RLX_CUDA_TURNS");
}

}  // namespace

std::vector<Case> fp8_cases() {
  std::vector<Case> out;
  for (const Work& w : kWorks) out.push_back({"fp8", [=] { fp8_product(w); }});
  return out;
}

}  // namespace rlx::bench
