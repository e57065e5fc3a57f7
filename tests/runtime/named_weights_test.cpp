#include "rlx/runtime/named_weights.h"

#include <gtest/gtest.h>

#include "rlx/io/literal.h"
#include "rlx/io/safetensors.h"
#include "tests/support/graphs.h"
#include "tests/support/scratch.h"

namespace rlx {
namespace {

using test::error_of;
using test::graph;

const Literal kW = Literal::of<float>({2, 2}, {1, 2, 3, 4}), kB = Literal::of<float>({2}, {5, 6});

std::string written(const test::Scratch& scratch) {
  const std::string path = scratch.path("w.safetensors");
  const io::TensorView tensors[] = {io::to_view("net.w", kW), io::to_view("net.b", kB.cast(DType::bf16)),
                                    io::to_view("other", kB)};
  io::write_safetensors(path, tensors);
  return path;
}

ir::Graph linear() {
  return graph(
      "graph @g(x: f32[1,2], param w: f32[2,2], param b: f32[2]) { h = matmul(x, w) y = add(h, b) return y }");
}

TEST(Weights, are_bound_by_name_and_widened) {
  const test::Scratch scratch;
  const Weights file = Weights::open(written(scratch));
  EXPECT_EQ(file.names(), (std::vector<std::string>{"net.b", "net.w", "other"}));
  const auto bound = file.bind(linear(), [](const std::string& param) { return "net." + param; });
  EXPECT_EQ(bound.values.at("w"), kW);
  EXPECT_EQ(bound.values.at("b"), kB);
  EXPECT_EQ(bound.unused, std::vector<std::string>{"other"});
  const Literal x = Literal::of<float>({1, 2}, {1, 1});
  EXPECT_EQ(compile(linear(), bound.values).run(NamedLiterals{{"x", x}}).at("y"),
            Literal::of<float>({1, 2}, {9, 12}));
}

TEST(Weights, tell_everything_missing_misshapen_and_left_over_at_once) {
  const test::Scratch scratch;
  const std::string path = written(scratch);
  const Weights file = Weights::open(path);
  const ir::Graph g = graph("graph @g(param w: f32[2,3], param b: f32[2]) { return w, b }");
  EXPECT_EQ(error_of([&] { file.bind(g, [](const std::string& p) { return p == "w" ? "net.w" : p; }); }),
            path + ": there is no 'b'; 'net.w' is f32[2,2], the param is f32[2,3]; not used: net.b, other");
  EXPECT_NE(error_of([&] { file.value("net.v"); }).find("has no tensor 'net.v'; did you mean"),
            std::string::npos);
}

TEST(Jit, traces_and_compiles) {
  CompiledGraph f = jit("twice", [](Tracer& t) {
    const Tensor x = t.input("x", {3});
    return x + x;
  });
  const float x[] = {1, 2, 3};
  EXPECT_EQ(f.run({{"x", view(x, {3})}})[0].as<float>()[2], 6);
}

}  // namespace
}  // namespace rlx
