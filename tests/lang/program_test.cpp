#include "rlx/lang/program.h"

#include <gtest/gtest.h>

#include "rlx/base/file.h"
#include "rlx/lang/module.h"
#include "rlx/lang/trace.h"
#include "tests/support/errors.h"
#include "tests/support/scratch.h"

namespace rlx {
namespace {

Literal f32(Dims dims, const std::vector<float>& v) { return Literal::of<float>(std::move(dims), v); }

Program mlp() {
  const Graph g = trace("mlp", [](Tracer& t) {
    const Tensor x = t.input("x", {Dim::batch(), 2}), w = t.param("w", {2, 3}), b = t.param("b", {3});
    return NamedTensors{{"y", x.matmul(w) + b}};
  });
  return {g, {{"w", f32({2, 3}, {1, 2, 3, -1, 0, 1})}, {"b", f32({3}, {0, 0, 1})}}};
}

TEST(Program, graph_and_weights_load_and_save_together) {
  const test::Scratch scratch;
  const Program p = mlp();
  p.save(scratch.path("mlp.safetensors"));
  const Program back = Program::open(scratch.path("mlp.safetensors"));
  EXPECT_TRUE(back == p);
  EXPECT_EQ(cat(back.interpret({{"x", f32({1, 2}, {2, 3})}}).at("y")), "f32[1,3]{-1.0, 4.0, 10.0}");
}

TEST(Program, tells_the_weights_it_misses) {
  Program p = mlp();
  p.weights.erase("w");
  EXPECT_EQ(p.missing_weights(), std::vector<std::string>{"w"});
  EXPECT_EQ(test::message_of([&] { p.interpret({{"x", f32({1, 2}, {2, 3})}}); }),
            "run: param 'w' (f32[2,3]) is missing; graph 'mlp' takes x, w, b");
  EXPECT_EQ(cat(p.interpret({{"x", f32({1, 2}, {2, 3})}, {"w", Literal::zeros(Shape(DType::f32, {2, 3}))}})
                    .at("y")),
            "f32[1,3]{0.0, 0.0, 1.0}");
}

TEST(Program, refuses_weights_that_are_no_params) {
  const test::Scratch scratch;
  Program p = mlp();
  p.weights.emplace("W", f32({1}, {0}));
  EXPECT_EQ(test::message_of([&] { p.save(scratch.path("x")); }), "save: 'W' is not a param of graph 'mlp'");
}

TEST(Program, opens_texts_and_lowers_modules) {
  const test::Scratch scratch;
  GraphModule m = GraphModule::hir("ffn");
  const Value x = m.input("x", Shape(DType::f32, {1, 2})), w = m.param("w", Shape(DType::f32, {2, 2}));
  m.finish_hir(m.linear(x, w));
  m.save(scratch.path("ffn"), {{"w", f32({2, 2}, {1, 2, 3, 4})}});
  const Program p = Program::open(scratch.path("ffn"));
  EXPECT_EQ(cat(p.interpret({{"x", f32({1, 2}, {1, 1})}}).begin()->second), "f32[1,2]{4.0, 6.0}");
  for (const ir::Node* n : p.graph.nodes()) EXPECT_NE(n->op->name, "linear");
}

}  // namespace
}  // namespace rlx
