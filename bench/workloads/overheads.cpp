// Compiling, and running nearly nothing.
#include <chrono>

#include "bench/bench.h"
#include "bench/workloads/encoder.h"
#include "bench/workloads/workload.h"
#include "rlx/ir/sample.h"
#include "rlx/ops/all.h"
#include "rlx/train/trainer.h"

namespace rlx::bench {
namespace {

using ir::Expr;

// The median of the times of a few calls, in seconds.
double seconds_of(int calls, const std::function<void()>& f) {
  std::vector<double> times;
  for (int i = 0; i < calls; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    f();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + long(times.size() / 2), times.end());
  return times[times.size() / 2];
}

void report_compile(const std::string& name, double seconds, double goal) {
  report({.name = name,
          .value = 1 / seconds,
          .unit = "1/s",
          .limit = 1 / goal,
          .goal = cat("in ", goal * 1e3, " ms")});
}

void compile_encoder() {
  const Encoder m = encoder();
  report_compile("compile_minilm",
                 seconds_of(7,
                            [&] {
                              CompiledGraph f = compile(m.graph, m.weights, {.threads = threads()});
                              f.plan({{"x", Shape(DType::f32, {1, 16, kEncoderWidth})},
                                      {"mask", Shape(DType::f32, {1, 16})}});
                            }),
                 15e-3);
}

void compile_training() {
  const Encoder m = encoder_loss(8, 128);
  report_compile("compile_minilm_train",
                 seconds_of(5,
                            [&] {
                              train::Trainer t(m.graph, m.weights, {.compile = {.threads = threads()}});
                              t.program().plan();
                            }),
                 60e-3);
}

// Products and elementwise operators in turn, each value read by a later one too.
ir::Graph long_graph(int nodes) {
  ir::Graph g("long");
  std::vector<Expr> values = {{&g, g.input("x", Shape(DType::f32, {16, 16}))}};
  while (int(g.len()) < nodes) {
    const Expr x = values.back(), y = values[values.size() / 2];
    switch (values.size() % 5) {
      case 0:
        values.push_back(ops::matmul(x, y));
        break;
      case 1:
        values.push_back(ops::tanh(x));
        break;
      case 2:
        values.push_back(ops::softmax(x, 1));
        break;
      default:
        values.push_back(ops::add(x, y));
    }
  }
  g.set_outputs({values.back()});
  return g;
}

void compile_long() {
  const ir::Graph g = long_graph(10'000);
  report_compile("compile_10000_nodes",
                 seconds_of(3,
                            [&] {
                              CompiledGraph f = compile(g, {}, {.threads = threads()});
                              f.plan();
                            }),
                 0.5);
}

void run_small(const std::string& name, const ir::Graph& g) {
  CompiledGraph f = compile(g, {}, {.threads = threads()});
  const Literal value = ir::sample_literal("f32[4,4]", 1);
  const Input inputs[] = {{"x", view(value)}};
  const double t = interleaved({[&] { f.run(inputs); }})[0];
  report({.name = name, .value = 1 / t, .unit = "1/s", .limit = 1e6, .goal = "under 1 us"});
}

// Ten operators on 16 numbers that fuse: what a call costs beside its work.
ir::Graph ten_elementwise() {
  ir::Graph g("small");
  Expr x{&g, g.input("x", Shape(DType::f32, {4, 4}))};
  const Expr start = x;
  for (int i = 0; i < 5; ++i) x = ops::add(ops::mul(x, start), start);
  g.set_outputs({x}, {"y"});
  return g;
}

// Ten that are kernels of several families.
ir::Graph ten_mixed() {
  ir::Graph g("small");
  Expr x{&g, g.input("x", Shape(DType::f32, {4, 4}))};
  const Expr start = x;
  for (int i = 0; i < 2; ++i) {
    x = ops::softmax(ops::add(x, start), 1);
    x = ops::tanh(ops::matmul(x, start));
    x = ops::mul(x, start);
  }
  g.set_outputs({x}, {"y"});
  return g;
}

}  // namespace

void report_overheads(int argc, char** argv) {
  if (wanted(argc, argv, "run_10_nodes_fused")) run_small("run_10_nodes_fused", ten_elementwise());
  if (wanted(argc, argv, "run_10_nodes_mixed")) run_small("run_10_nodes_mixed", ten_mixed());
  if (wanted(argc, argv, "compile_minilm")) compile_encoder();
  if (wanted(argc, argv, "compile_minilm_train")) compile_training();
  if (wanted(argc, argv, "compile_10000_nodes")) compile_long();
}

}  // namespace rlx::bench
