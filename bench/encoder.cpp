// A transformer encoder of the shape of MiniLM-L6 (six layers, 384 wide, 12 heads, 1536 inner) with random weights, compiled and
// run at four sizes. The limit is the time of its multiply-adds at the peak measured in the same run.
#include <chrono>

#include "bench/bench.h"
#include "rlx/ir/sample.h"
#include "rlx/ops/all.h"
#include "rlx/runtime/compiled_graph.h"

namespace rlx::bench {
namespace {

using ir::Expr;

constexpr int64_t kWidth = 384, kInner = 1536, kHeads = 12, kLayers = 6;

struct Model {
  ir::Graph graph{"encoder"};
  NamedLiterals weights;

  Expr weight(const std::string& name, Dims dims) {
    const Shape shape(DType::f32, std::move(dims));
    Literal value = ir::sample_literal(cat(shape), weights.size());
    for (float& v : value.mutable_data<float>()) v *= 0.05f;
    weights.emplace(name, value);
    return {&graph, graph.param(name, shape)};
  }
  Expr linear(const std::string& name, Expr x, int64_t in, int64_t out) {
    return ops::add(ops::matmul(x, weight(name + ".w", {in, out})), weight(name + ".b", {out}));
  }
  Expr norm(const std::string& name, Expr x) {
    return ops::layer_norm(x, weight(name + ".g", {kWidth}), weight(name + ".b", {kWidth}), -1, 1e-12);
  }
};

Model encoder() {
  Model m;
  ir::Graph& g = m.graph;
  Expr x{&g, g.input("x", Shape(DType::f32, {Dim::batch(), Dim::seq(), kWidth}))};
  const Expr mask{&g, g.input("mask", Shape(DType::f32, {Dim::batch(), Dim::seq()}))};
  for (int64_t i = 0; i < kLayers; ++i) {
    const std::string at = cat("layer", i);
    const Expr q = m.linear(at + ".q", x, kWidth, kWidth), k = m.linear(at + ".k", x, kWidth, kWidth),
               v = m.linear(at + ".v", x, kWidth, kWidth);
    const Expr a = ops::attention(q, k, v, mask, kHeads, kWidth / kHeads);
    x = m.norm(at + ".ln1", ops::add(m.linear(at + ".o", a, kWidth, kWidth), x));
    const Expr h = ops::gelu(m.linear(at + ".up", x, kWidth, kInner));
    x = m.norm(at + ".ln2", ops::add(m.linear(at + ".down", h, kInner, kWidth), x));
  }
  g.set_outputs({x}, {"y"});
  return m;
}

// Multiply-adds of the products and of attention, in operations.
double operations(int64_t batch, int64_t seq) {
  const double tokens = double(batch * seq);
  const double layer =
      tokens * double(4 * kWidth * kWidth + 2 * kWidth * kInner) + 2 * tokens * double(seq) * kWidth;
  return 2 * kLayers * layer;
}

void run(int64_t batch, int64_t seq, CompiledGraph& f) {
  const std::vector<float> x(size_t(batch * seq * kWidth), 0.1f), mask(size_t(batch * seq), 1.0f);
  const Input inputs[] = {{"x", view(x.data(), {batch, seq, kWidth})},
                          {"mask", view(mask.data(), {batch, seq})}};
  const double seconds = interleaved({[&] { f.run(inputs); }}, batch * seq > 2000 ? 0.5 : 0.05)[0];
  report({.name = cat("encoder_minilm_", batch, "x", seq),
          .value = operations(batch, seq) / seconds / 1e9,
          .unit = "GFLOP/s",
          .limit = limits().fma_gflops});
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  using namespace rlx;  // NOLINT
  if (!bench::wanted(argc, argv, "encoder_minilm")) return 0;
  const bench::Model model = bench::encoder();
  const auto begin = std::chrono::steady_clock::now();
  CompiledGraph f = compile(model.graph, model.weights, {.threads = bench::threads()});
  f.plan({{"x", Shape(DType::f32, {1, 16, bench::kWidth})}, {"mask", Shape(DType::f32, {1, 16})}});
  const std::chrono::duration<double, std::milli> compiled = std::chrono::steady_clock::now() - begin;
  bench::report({.name = "encoder_minilm_compile",
                 .value = 1000 / compiled.count(),
                 .unit = "1/s",
                 .limit = 1000 / 15.0});
  const int64_t sizes[][2] = {{1, 16}, {4, 15}, {8, 128}, {32, 128}};
  for (const auto& [batch, seq] : sizes) bench::run(batch, seq, f);
}
