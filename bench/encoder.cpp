// A transformer encoder of the shape of MiniLM-L6 (six layers, 384 wide, 12 heads, 1536 inner) with random weights, compiled and
// run: encoder [threads]. Prints milliseconds (median), the share of the time that the multiply-adds alone would take at the
// rate of a large product measured in the same run, and the plan's memory.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "rlx/backend/plan.h"
#include "rlx/ir/sample.h"
#include "rlx/ops/all.h"
#include "rlx/runtime/compiled_graph.h"

namespace {

using namespace rlx;  // NOLINT
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

template <class Run>
double median_ms(Run run, int rounds) {
  std::vector<double> times;
  for (int i = 0; i < rounds + 2; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    if (i >= 2)
      times.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  const Model model = encoder();
  const auto begin = std::chrono::steady_clock::now();
  CompiledGraph f = compile(model.graph, model.weights, {.threads = threads});
  const int64_t shapes[][2] = {{1, 16}, {4, 15}, {8, 128}, {32, 128}};
  bool first = true;
  for (const auto& [batch, seq] : shapes) {
    const std::vector<float> x(size_t(batch * seq * kWidth), 0.1f), mask(size_t(batch * seq), 1.0f);
    const auto run = [&] {
      f.run({{"x", view(x.data(), {batch, seq, kWidth})}, {"mask", view(mask.data(), {batch, seq})}});
    };
    run();
    if (first) {
      const double ms =
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
      std::printf("compiled and first run: %.1f ms\n", ms);
      first = false;
    }
    const double ms = median_ms(run, batch * seq > 2000 ? 7 : 31);
    const backend::Plan& plan =
        f.plan({{"x", Shape(DType::f32, {batch, seq, kWidth})}, {"mask", Shape(DType::f32, {batch, seq})}});
    std::printf("%3ldx%-4ld %8.3f ms  %zu steps, arena %.1f MB\n", long(batch), long(seq), ms,
                plan.steps.size(), double(plan.arena_bytes) / 1e6);
    if (argc > 2) std::printf("%s", plan.text().c_str());
  }
}
