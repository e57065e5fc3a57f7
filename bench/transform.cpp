// How long it takes to differentiate graphs: an unrolled stack of transformer blocks of growing depth, and a
// loop whose length must not matter.
#include <string>

#include "bench/bench.h"
#include "rlx/ops/all.h"
#include "rlx/ops/linear/blocks.h"
#include "rlx/transform/transform.h"

namespace {

using namespace rlx;  // NOLINT
using ops::operator+;

ir::Expr block(ir::Graph& g, ir::Expr x, const std::string& layer) {
  const auto param = [&](const char* name, const char* shape) {
    return ir::Expr{&g, g.param(layer + name, parse_shape(shape))};
  };
  const ir::Expr h = ops::rms_norm(x, param("n1", "f32[64]"), param("b1", "f32[64]"), -1, 1e-5);
  const ir::Expr q = ops::matmul(h, param("q", "f32[64,64]")), k = ops::matmul(h, param("k", "f32[64,64]")),
                 v = ops::matmul(h, param("v", "f32[64,64]"));
  const ir::Expr a = ops::attention_kind(q, k, v, 4, 16, ops::MaskKind::causal);
  x = x + ops::matmul(a, param("o", "f32[64,64]"));
  const ir::Expr m = ops::rms_norm(x, param("n2", "f32[64]"), param("b2", "f32[64]"), -1, 1e-5);
  return x + ops::swiglu_ffn(m, param("up", "f32[64,128]"), param("gate", "f32[64,128]"),
                             param("down", "f32[128,64]"));
}

ir::Graph stack(int layers, std::vector<std::string>& wrt) {
  ir::Graph g("stack");
  ir::Expr x{&g, g.input("x", parse_shape("f32[1,8,64]"))};
  for (int i = 0; i < layers; ++i) x = block(g, x, cat("layer", i, "."));
  g.set_outputs({ops::reduce_sum(x, {})});
  for (const ir::NodeId id : g.params()) wrt.push_back(g.node(id).name);
  return g;
}

ir::Graph loop(int64_t length) {
  ir::Graph g("loop");
  const ir::Expr x{&g, g.input("x", parse_shape("f32[8]"))};
  ir::Graph step("step");
  step.set_outputs({ops::sin({&step, step.input("c", parse_shape("f32[8]"))})});
  g.set_outputs({ops::reduce_sum(ops::scan(x, std::move(step), length), {})});
  return g;
}

}  // namespace

int main(int argc, char** argv) {
  for (const int layers : {6, 12, 24, 48}) {
    const std::string name = cat("grad, ", layers, " transformer blocks");
    if (!bench::wanted(argc, argv, name)) continue;
    std::vector<std::string> wrt;
    const ir::Graph g = stack(layers, wrt);
    const auto t = bench::interleaved({[&] { transform::value_and_grad(g, wrt); }});
    bench::report({.name = name,
                   .value = t[0] * 1e3,
                   .unit = "ms",
                   .goal = layers == 24 ? "< 50 ms" : "linear in the depth"});
  }
  for (const int64_t length : {int64_t(10), int64_t(1'000'000)}) {
    const std::string name = cat("grad, scan of ", length, " steps");
    if (!bench::wanted(argc, argv, name)) continue;
    const ir::Graph g = loop(length);
    const auto t = bench::interleaved({[&] { transform::grad(g, {"x"}); }});
    bench::report({.name = name, .value = t[0] * 1e3, .unit = "ms", .goal = "the same for every length"});
  }
}
