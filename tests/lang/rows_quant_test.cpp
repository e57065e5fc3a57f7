// Rows of the public surface: products with quantised weights, small enough to decode by hand.
#include "rlx/lang/module.h"
#include "tests/lang/rows.h"
#include "tests/support/errors.h"

namespace rlx {
namespace {

using namespace test;

Literal bytes(Dims dims, const std::vector<uint8_t>& v) { return Literal::of<uint8_t>(std::move(dims), v); }

// Q8_0: a scale of 16 bits (1.0 is 0x3c00) and 32 signed bytes; here 1, 2, ..., 32 for the only column.
Literal q8_0_column() {
  std::vector<uint8_t> v = {0x00, 0x3c};
  for (int i = 1; i <= 32; ++i) v.push_back(uint8_t(i));
  return bytes({1, 34}, v);
}

TEST(GraphRow, dequant_matmul_packed) {
  // The sum of 1 .. 32.
  expect_row(
      {Literal::full(Shape(DType::f32, {1, 32}), 1), q8_0_column()},
      [](Graph& g, const Values& v) { return g.dequant_matmul_packed(v[0], v[1], "gguf_q8_0"); },
      f32({1, 1}, {528}));
}
TEST(GraphRow, dequant_matmul) {
  // (3 - 1) 0.5 + (4 - 1) 0.5
  expect_row(
      {f32({1, 2}, {1, 1}), Literal::of<int8_t>({2, 1}, {3, 4}), f32({1, 1}, {0.5}), f32({1, 1}, {1})},
      [](Graph& g, const Values& v) { return g.dequant_matmul(v[0], v[1], v[2], v[3], "int8a/2"); },
      f32({1, 1}, {2.5}));
}
TEST(GraphRow, dequant_matmul_nvfp4) {
  // Sixteen codes 2 (1.0) under scale 0x38 (1.0) and a global scale of 2.
  expect_row(
      {Literal::full(Shape(DType::f32, {1, 16}), 1), bytes({8, 1}, std::vector<uint8_t>(8, 0x22)),
       bytes({1, 1}, {0x38}), f32({1}, {2})},
      [](Graph& g, const Values& v) { return g.dequant_matmul_nvfp4(v[0], v[1], v[2], v[3]); },
      f32({1, 1}, {32}));
}
TEST(ModuleRow, dequant_matmul) {
  GraphModule m = GraphModule::hir("m");
  const Value x = m.input("x", Shape(DType::f32, {1, 32})), w = m.input("w", q8_0_column().shape());
  m.finish_hir(m.dequant_matmul(x, w, {}, {}, "gguf_q8_0"));
  const Literals in = {Literal::full(Shape(DType::f32, {1, 32}), 2), q8_0_column()};
  expect_close(ir::interpret(m.into_graph(), in)[0], f32({1, 1}, {1056}), 1e-6);
  EXPECT_EQ(message_of([&] { m.dequant_matmul(x, w, x, {}, "gguf_q8_0"); }),
            "dequant_matmul: scale and zp come together; packed weights have neither");
}

}  // namespace
}  // namespace rlx
