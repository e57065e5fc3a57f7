// Rows of the public surface: products, solves, linear layers, norms, convolutions, quantised products.
#include <cmath>

#include "tests/lang/rows.h"

namespace rlx {
namespace {

using namespace test;

const Literal kX = f32({2, 2}, {1, 2, 3, 4}), kW = f32({2, 2}, {1, 0, -1, 2}), kB = f32({2}, {10, 20});
// kX kW = [[-1, 4], [-1, 8]]

TEST(GraphRow, mm) {
  expect_row(
      {kX, kW}, [](Graph& g, const Values& v) { return g.mm(v[0], v[1]); }, f32({2, 2}, {-1, 4, -1, 8}));
}
TEST(GraphRow, matmul) {
  // Batch axes broadcast in part: [2,1,1,2] by [3,2,1].
  const Literal y = run({f32({2, 1, 1, 2}, {1, 2, 3, 4}), f32({3, 2, 1}, {1, 0, 0, 1, 1, 1})},
                        [](Graph& g, const Values& v) { return g.matmul(v[0], v[1]); })[0];
  expect_close(y, f32({2, 3, 1, 1}, {1, 2, 3, 3, 4, 7}), 0);
}
TEST(GraphRow, dense_solve) {
  expect_row(
      {f32({2, 2}, {2, 1, 1, 3}), f32({2}, {5, 10})},
      [](Graph& g, const Values& v) { return g.dense_solve(v[0], v[1]); }, f32({2}, {1, 3}));
}
TEST(GraphRow, batched_dense_solve) {
  expect_row(
      {f32({2, 1, 1}, {2, 4}), f32({2, 1, 1}, {6, 20})},
      [](Graph& g, const Values& v) { return g.batched_dense_solve(v[0], v[1]); }, f32({2, 1, 1}, {3, 5}));
}
TEST(GraphRow, linear_bias) {
  expect_row(
      {kX, kW, kB}, [](Graph& g, const Values& v) { return g.linear_bias(v[0], v[1], v[2]); },
      f32({2, 2}, {9, 24, 9, 28}));
  expect_row(
      {kX, kW}, [](Graph& g, const Values& v) { return g.linear_bias(v[0], v[1]); },
      f32({2, 2}, {-1, 4, -1, 8}));
}
TEST(GraphRow, linear_bias_act) {
  expect_row(
      {kX, kW}, [](Graph& g, const Values& v) { return g.linear_bias_act(v[0], v[1], {}, Activation::relu); },
      f32({2, 2}, {0, 4, 0, 8}));
}
TEST(GraphRow, linear_fused) {
  expect_row(
      {kX, kW, kB},
      [](Graph& g, const Values& v) { return g.linear_fused(v[0], v[1], v[2], Activation::neg); },
      f32({2, 2}, {-9, -24, -9, -28}));
}
TEST(GraphRow, fused_matmul_bias_act) {
  expect_row(
      {kX, kW, kB}, [](Graph& g, const Values& v) { return g.fused_matmul_bias_act(v[0], v[1], v[2]); },
      f32({2, 2}, {9, 24, 9, 28}));
}
TEST(GraphRow, shared_matmul_pair) {
  const Literals out =
      run({kX, kW, kX}, [](Graph& g, const Values& v) { return g.shared_matmul_pair(v[0], v[1], v[2]); });
  expect_close(out[0], f32({2, 2}, {-1, 4, -1, 8}), 0);
  expect_close(out[1], f32({2, 2}, {7, 10, 15, 22}), 0);
}
double silu(double x) { return x / (1 + std::exp(-x)); }
TEST(GraphRow, swiglu_ffn) {
  // x = 2, up = 3, gate = 0.5, down = 10: (6) silu(1) 10
  expect_row(
      {f32({1, 1}, {2}), f32({1, 1}, {3}), f32({1, 1}, {0.5}), f32({1, 1}, {10})},
      [](Graph& g, const Values& v) { return g.swiglu_ffn(v[0], v[1], v[2], v[3]); },
      f32({1, 1}, {float(60 * silu(1))}));
}
TEST(GraphRow, fused_swiglu_ffn) {
  expect_row(
      {f32({1, 1}, {2}), f32({1, 1}, {3}), f32({1, 1}, {0.5}), f32({1, 1}, {10})},
      [](Graph& g, const Values& v) { return g.fused_swiglu_ffn(v[0], v[1], v[2], v[3]); },
      f32({1, 1}, {float(60 * silu(1))}));
}
TEST(GraphRow, lora_matmul) {
  // x w + scale (x a) b with x = [1, 2], a = [1, 1]^T, b = [1, 10]: + 0.5 * 3 * b
  expect_row(
      {f32({1, 2}, {1, 2}), kW, f32({2, 1}, {1, 1}), f32({1, 2}, {1, 10})},
      [](Graph& g, const Values& v) { return g.lora_matmul(v[0], v[1], v[2], v[3], 0.5); },
      f32({1, 2}, {0.5, 19}));
}

// The norms of [1, 3]: mean 2, deviation 1; mean square 5.
const Literal kRow = f32({1, 2}, {1, 3}), kGamma = f32({2}, {10, 100}), kBeta = f32({2}, {1, 2});
const float kRms = 1 / std::sqrt(5.0f);

TEST(GraphRow, layer_norm) {
  expect_row(
      {kRow, kGamma, kBeta}, [](Graph& g, const Values& v) { return g.layer_norm(v[0], v[1], v[2], -1, 0); },
      f32({1, 2}, {-9, 102}));
  // Along axis 0 as well.
  expect_row(
      {f32({2, 1}, {1, 3}), kGamma, kBeta},
      [](Graph& g, const Values& v) { return g.layer_norm(v[0], v[1], v[2], 0, 0); }, f32({2, 1}, {-9, 102}));
}
TEST(GraphRow, ln) {
  expect_row(
      {kRow, kGamma, kBeta}, [](Graph& g, const Values& v) { return g.ln(v[0], v[1], v[2], 0); },
      f32({1, 2}, {-9, 102}));
}
TEST(GraphRow, rms_norm) {
  expect_row(
      {kRow, kGamma, kBeta}, [](Graph& g, const Values& v) { return g.rms_norm(v[0], v[1], v[2], 0); },
      f32({1, 2}, {10 * kRms + 1, 300 * kRms + 2}));
}
TEST(GraphRow, layer_norm2d) {
  // Over the channels of each pixel.
  expect_row(
      {f32({1, 2, 1, 1}, {1, 3}), kGamma, kBeta},
      [](Graph& g, const Values& v) { return g.layer_norm2d(v[0], v[1], v[2], 0); },
      f32({1, 2, 1, 1}, {-9, 102}));
}
TEST(GraphRow, group_norm) {
  // Two groups of one channel with two pixels each.
  expect_row(
      {f32({1, 2, 1, 2}, {1, 3, 5, 9}), kGamma, kBeta},
      [](Graph& g, const Values& v) { return g.group_norm(v[0], v[1], v[2], 2, 0); },
      f32({1, 2, 1, 2}, {-9, 11, -98, 102}));
}
TEST(GraphRow, fused_residual_ln) {
  const Literals out =
      run({f32({1, 2}, {0, 1}), f32({1, 2}, {1, 1}), f32({2}, {0, 1}), kGamma, kBeta},
          [](Graph& g, const Values& v) { return g.fused_residual_ln(v[0], v[1], v[2], v[3], v[4], 0); });
  expect_close(out[0], f32({1, 2}, {-9, 102}), 1e-6);
  expect_close(out[1], kRow, 1e-6);
}
TEST(GraphRow, fused_residual_rms_norm) {
  const Literals out =
      run({f32({1, 2}, {0, 1}), f32({1, 2}, {1, 2}), kGamma, kBeta},
          [](Graph& g, const Values& v) { return g.fused_residual_rms_norm(v[0], v[1], {}, v[2], v[3], 0); });
  expect_close(out[0], f32({1, 2}, {10 * kRms + 1, 300 * kRms + 2}), 1e-6);
  expect_close(out[1], kRow, 1e-6);
}
TEST(GraphRow, softmax_cross_entropy_with_logits) {
  expect_row(
      {f32({1, 2}, {0, std::log(3.0f)}), i32({1}, {1})},
      [](Graph& g, const Values& v) { return g.softmax_cross_entropy_with_logits(v[0], v[1]); },
      f32({1}, {-std::log(0.75f)}));
}

const Literal kImage = f32({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
TEST(GraphRow, conv2d) {
  expect_row(
      {kImage, f32({1, 1, 2, 2}, {1, 0, 0, 1})},
      [](Graph& g, const Values& v) { return g.conv2d(v[0], v[1], {2, 2}, {1, 1}, {0, 0}, {1, 1}, 1); },
      f32({1, 1, 2, 2}, {6, 8, 12, 14}));
}
TEST(GraphRow, conv_transpose2d) {
  // Each pixel stamps the kernel, two apart.
  expect_row(
      {f32({1, 1, 1, 2}, {1, 10}), f32({1, 1, 1, 2}, {1, 2})},
      [](Graph& g, const Values& v) {
        return g.conv_transpose2d(v[0], v[1], {1, 2}, {1, 2}, {0, 0}, {1, 1}, {0, 0}, 1);
      },
      f32({1, 1, 1, 4}, {1, 2, 10, 20}));
}
TEST(GraphRow, pool) {
  expect_row(
      {kImage}, [](Graph& g, const Values& v) { return g.pool(v[0], ReduceOp::max, {2, 2}, {1, 1}); },
      f32({1, 1, 2, 2}, {5, 6, 8, 9}));
  // Padding does not count in an average unless asked.
  expect_row(
      {f32({1, 1, 1, 2}, {2, 4})},
      [](Graph& g, const Values& v) { return g.pool(v[0], ReduceOp::mean, {1, 2}, {1, 2}, {0, 1}); },
      f32({1, 1, 1, 2}, {2, 4}));
}

TEST(GraphRow, quantize) {
  // Halves go to even: 0.5 -> 0, 1.5 -> 2; then the zero point, then saturation.
  expect_row(
      {f32({4}, {0.5, 1.5, -2, 1000})},
      [](Graph& g, const Values& v) { return g.cast(g.quantize(v[0], 1, 3), DType::i32); },
      i32({4}, {3, 5, 1, 127}));
}
TEST(GraphRow, quantize_per_channel) {
  expect_row(
      {f32({2, 1}, {4, 4})},
      [](Graph& g, const Values& v) {
        return g.cast(g.quantize_per_channel(v[0], 0, {1, 2}, {0, 1}), DType::i32);
      },
      i32({2, 1}, {4, 3}));
}
TEST(GraphRow, dequantize) {
  expect_row(
      {Literal::integers(Shape(DType::i8, {2}), std::vector<int64_t>{3, -1})},
      [](Graph& g, const Values& v) { return g.dequantize(v[0], 0.5, 1); }, f32({2}, {1, -1}));
}
TEST(GraphRow, dequantize_per_channel) {
  expect_row(
      {Literal::integers(Shape(DType::i8, {2, 1}), std::vector<int64_t>{3, 3})},
      [](Graph& g, const Values& v) { return g.dequantize_per_channel(v[0], 0, {0.5, 2}, {1, 0}); },
      f32({2, 1}, {1, 6}));
}
TEST(GraphRow, q_matmul) {
  // (5-3)(4+2) + (1-3)(0+2) + 10 = 18; * 0.25 = 4.5 -> 4 (even); + 1
  const auto i8 = [](Dims d, std::vector<int64_t> v) {
    return Literal::integers(Shape(DType::i8, std::move(d)), v);
  };
  expect_row(
      {i8({1, 2}, {5, 1}), i8({2, 1}, {4, 0}), i32({1}, {10})},
      [](Graph& g, const Values& v) {
        return g.cast(g.q_matmul(v[0], v[1], v[2], 3, -2, 1, 0.25), DType::i32);
      },
      i32({1, 1}, {5}));
}

TEST(GraphQuant, scaled_matmul) {
  const auto f8 = [](Dims d, std::vector<double> v) {
    return Literal::reals(Shape(DType::f8e4m3, std::move(d)), v);
  };
  expect_row(
      {f8({1, 2}, {3, 1}), f8({2, 1}, {0.5, -2}), f32({1, 1}, {4})},
      [](Graph& g, const Values& v) { return g.scaled_matmul(v[0], v[1], v[2], {}, DType::f32); },
      f32({1, 1}, {-2}));
}

TEST(GraphRow, q_conv2d) {
  // The same sum as in q_matmul, over a 1 x 2 kernel: 18, * 0.25 = 4.5 -> 4, + 1.
  const auto i8 = [](Dims d, std::vector<int64_t> v) {
    return Literal::integers(Shape(DType::i8, std::move(d)), v);
  };
  expect_row(
      {i8({1, 1, 1, 2}, {5, 1}), i8({1, 1, 1, 2}, {4, 0}), i32({1}, {10})},
      [](Graph& g, const Values& v) {
        return g.cast(g.q_conv2d(v[0], v[1], v[2], {1, 2}, {1, 1}, {0, 0}, {1, 1}, 1, 3, -2, 1, 0.25),
                      DType::i32);
      },
      i32({1, 1, 1, 1}, {5}));
}

}  // namespace
}  // namespace rlx
