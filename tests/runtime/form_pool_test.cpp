// Forms of weights that several programs read.
#include <gtest/gtest.h>

#include "rlx/quant/format.h"
#include "rlx/runtime/core.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

TEST(FormPool, makes_a_form_once_for_as_long_as_somebody_holds_it) {
  FormPool pool;
  int made = 0;
  auto data = std::make_shared<std::byte>();
  const std::weak_ptr<std::byte> memory = data;
  const auto form = [&](const char* name) {
    return pool.find_or_make(data, name, [&] { return std::make_shared<const int>(++made); });
  };
  auto first = form("a");
  EXPECT_EQ(form("a"), first);
  EXPECT_EQ(made, 1);
  EXPECT_NE(form("b"), first);  // dropped at once
  form("b");
  EXPECT_EQ(made, 3);
  data.reset();
  EXPECT_FALSE(memory.expired()) << "other weights could come to lie at its address";
  first.reset();
  EXPECT_TRUE(memory.expired());
}

// x W^T and y W: one weight, one packed form, two programs.
TEST(FormPool, serves_programs_over_the_same_weights) {
  const quant::BlockFormat& q4 = *quant::find_format("q4_0");
  std::vector<float> numbers(40 * 64, 0.25f);
  std::vector<uint8_t> bytes(size_t(quant::encoded_bytes(q4, 40 * 64)));
  quant::encode(q4, numbers, std::as_writable_bytes(std::span(bytes)));
  const Literal w = Literal::of<uint8_t>({40, int64_t(bytes.size()) / 40}, bytes);
  const ir::Graph forward = test::graph(
      "graph @f(x: f32[3,64], param w: u8[40,36]) { y = dequant_matmul(x, w, scheme=\"gguf_q4_0\") return y }");
  const ir::Graph backward = test::graph(
      "graph @b(y: f32[3,40], param w: u8[40,36]) { x = dequant_matmul_transposed(y, w, scheme=\"gguf_q4_0\") return x }");
  for (const bool shared : {false, true}) {
    CompiledGraph f = compile(forward, {{"w", w}}), b = compile(backward, {{"w", w}});
    if (shared) {
      const auto pool = std::make_shared<FormPool>();
      for (const CompiledGraph* g : {&f, &b}) g->core().share_forms(pool);
    }
    const auto packed = [](CompiledGraph& g, const char* input, Dims dims) {
      g.run(NamedLiterals{{input, Literal::full(Shape(DType::f32, dims), 1)}});
      std::vector<Shape> leaves;
      for (const auto& leaf : g.core().leaves()) leaves.push_back(leaf.shape);
      return g.core().instance(leaves)->packed.at(0);
    };
    EXPECT_EQ(packed(f, "x", {3, 64}) == packed(b, "y", {3, 40}), shared);
  }
}

}  // namespace
}  // namespace rlx
