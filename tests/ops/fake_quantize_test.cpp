// Values and straight-through gradients of fake quantisation, integer convolution and packed experts.
#include <gtest/gtest.h>

#include "rlx/base/float16.h"
#include "rlx/ir/sample.h"
#include "rlx/ops/quant/dequant_matmul.h"
#include "rlx/ops/quant/fake_quantize.h"
#include "rlx/ops/quant/fake_quantize_lsq.h"
#include "rlx/ops/quant/q_conv2d.h"
#include "rlx/transform/transform.h"
#include "tests/support/compare.h"
#include "tests/support/evaluate.h"

namespace rlx::ops {
namespace {

using test::evaluate;
using test::expect_close;

Literal f64(Dims dims, std::vector<double> v) { return Literal::of<double>(std::move(dims), v); }

Exprs quantised(const Exprs& x, FakeQuantize::Attrs attrs) {
  const auto [y, scale] = fake_quantize(x[0], x.size() > 1 ? x[1] : Expr{}, attrs);
  return {y, scale};
}

// The gradients of the first result for a cotangent of ones, one per operand.
template <class Build>
Literals gradients(const Literals& values, Build build) {
  Graph g("test");
  Exprs in;
  std::vector<std::string> names;
  for (size_t i = 0; i < values.size(); ++i) {
    names.push_back(cat("x", i));
    in.push_back({&g, g.input(names.back(), values[i].shape())});
  }
  const Expr y = build(in);
  g.set_outputs({y});
  Literals all = values;
  all.push_back(Literal::full(y.shape(), 1));
  return interpret(transform::grad(g, names, {.cotangent_inputs = true}), all);
}

TEST(FakeQuantize, per_batch_scales_to_the_largest_modulus) {
  // Q = 7, s = 14 / 7 = 2: 3 / 2 -> 2 (even), 1 / 2 -> 0 (even), -5 / 2 -> -2 (even)
  const Literals y =
      evaluate({f64({4}, {14, 3, 1, -5})}, [](const Exprs& x) { return quantised(x, {.bits = 4}); });
  expect_close(y[0], f64({4}, {14, 4, 0, -4}), 0);
  expect_close(y[1], f64({1}, {2}), 0);
}

TEST(FakeQuantize, has_a_scale_per_channel) {
  const Literals y = evaluate({f64({2, 2}, {1, 8, 0.4, -2})},
                              [](const Exprs& x) { return quantised(x, {.bits = 2, .axis = -1}); });
  expect_close(y[0], f64({2, 2}, {1, 8, 0, 0}), 0);  // scales 1 and 8
  expect_close(y[1], f64({2}, {1, 8}), 0);
}

TEST(FakeQuantize, ema_returns_the_new_state_and_uses_it) {
  const FakeQuantize::Attrs attrs{.bits = 2, .scale_mode = ScaleMode::ema, .decay = 0.75};
  const Literal x = f64({2}, {8, 3});
  // 0.75 * 4 + 0.25 * 8 = 5: 8 / 5 -> 1 (clamped at Q), 3 / 5 -> 1
  const Literals y = evaluate({x, f64({1}, {4})}, [&](const Exprs& t) { return quantised(t, attrs); });
  expect_close(y[0], f64({2}, {5, 5}), 1e-15);
  expect_close(y[1], f64({1}, {5}), 1e-15);
  // A state that was never set is replaced.
  expect_close(evaluate({x, f64({1}, {0})}, [&](const Exprs& t) { return quantised(t, attrs); })[1],
               f64({1}, {8}), 0);
}

TEST(FakeQuantize, fixed_uses_the_state_as_it_is) {
  const Literals y = evaluate({f64({3}, {0.4, 100, -INFINITY}), f64({1}, {0.5})}, [](const Exprs& x) {
    return quantised(x, {.bits = 8, .scale_mode = ScaleMode::fixed});
  });
  expect_close(y[0], f64({3}, {0.5, 63.5, -63.5}), 0);
  expect_close(y[1], f64({1}, {0.5}), 0);
}

TEST(FakeQuantize, gradient_honours_the_scale_mode) {
  const Literal x = f64({3}, {0.3, -0.9, 5}), state = f64({1}, {0.5});  // fixed, 2 bits: Q s = 0.5
  const auto gradient = [&](SteKind ste) {
    return gradients({x, state}, [&](const Exprs& t) {
      return fake_quantize(t[0], t[1], {.bits = 2, .ste = ste, .scale_mode = ScaleMode::fixed}).y;
    });
  };
  const auto slope = [](double v) { return 1 - std::tanh(v) * std::tanh(v); };
  expect_close(gradient(SteKind::identity)[0], f64({3}, {1, 1, 1}), 0);
  // With the scale of the batch, 5, nothing would be clipped.
  expect_close(gradient(SteKind::clipped)[0], f64({3}, {1, 0, 0}), 0);
  expect_close(gradient(SteKind::tanh)[0], f64({3}, {slope(0.6), slope(1.8), slope(10)}), 1e-15);
  expect_close(gradient(SteKind::hard_tanh)[0], f64({3}, {0.4, 0, 0}), 1e-15);
  expect_close(gradient(SteKind::clipped)[1], f64({1}, {0}), 0);
}

// s = max / Q is rounded, and Q s may lie below the element it was made of.
TEST(FakeQuantize, clips_no_gradient_with_the_scale_of_the_batch) {
  for (const DType t : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    const Literal x = ir::sample_literal(cat(Shape(t, {400, 7})), 5);
    for (const int bits : {2, 4, 8}) {
      SCOPED_TRACE(cat(t, ", ", bits, " bits"));
      const Literals d = gradients({x}, [&](const Exprs& in) {
        return fake_quantize(in[0], Expr{}, {.bits = bits, .axis = 0, .ste = SteKind::clipped}).y;
      });
      expect_close(d[0], Literal::full(x.shape(), 1), 0);
    }
  }
}

TEST(FakeQuantize, backward_builder_is_the_gradient) {
  const Literal x = f64({3}, {0.3, -0.9, 5}), state = f64({1}, {0.5}), ones = f64({3}, {1, 1, 1});
  for (const SteKind ste : {SteKind::identity, SteKind::clipped, SteKind::tanh, SteKind::hard_tanh}) {
    const Literals want = gradients({x, state}, [&](const Exprs& t) {
      return fake_quantize(t[0], t[1], {.bits = 2, .ste = ste, .scale_mode = ScaleMode::fixed}).y;
    });
    expect_close(
        evaluate({x, state, ones},
                 [&](const Exprs& t) { return fake_quantize_backward(t[0], t[1], t[2], 2, {}, ste); })[0],
        want[0], 1e-15);
  }
}

TEST(FakeQuantizeLsq, has_the_gradients_of_the_learned_step) {
  // Q = 7, s = 0.5: z = 1.25 -> 1, -0.75 -> -1, 20 -> 7
  const Literal x = f64({3}, {0.625, -0.375, 10}), scale = f64({1}, {0.5}), ones = f64({3}, {1, 1, 1});
  expect_close(evaluate({x, scale}, [](const Exprs& t) { return fake_quantize_lsq(t[0], t[1], 4); })[0],
               f64({3}, {0.5, -0.5, 3.5}), 1e-15);
  const Literals g = gradients({x, scale}, [](const Exprs& t) { return fake_quantize_lsq(t[0], t[1], 4); });
  expect_close(g[0], f64({3}, {1, 1, 0}), 1e-15);
  expect_close(g[1], f64({1}, {(1 - 1.25) + (-1 + 0.75) + 7}), 1e-15);
  const Literals by_hand = evaluate({x, scale, ones}, [](const Exprs& t) {
    return Exprs{fake_quantize_lsq_backward_x(t[0], t[1], t[2], 4),
                 fake_quantize_lsq_backward_scale(t[0], t[1], t[2], 4)};
  });
  expect_close(by_hand, g, 1e-15);
}

TEST(QConv2d, treats_padding_as_real_zero) {
  // x - 3 = [[-2, -1], [0, 1]], w - 1 = 2 everywhere (2x2), padding 1: the first window sees only -2.
  const Literals y =
      evaluate({Literal::of<int8_t>({1, 1, 2, 2}, {1, 2, 3, 4}),
                Literal::of<int8_t>({1, 1, 2, 2}, {3, 3, 3, 3}), Literal::of<int32_t>({1}, {1})},
               [](const Exprs& x) {
                 return q_conv2d(x[0], x[1], x[2], {2, 2}, {1, 1}, {1, 1}, {1, 1}, 1, 3, 1, 0, 1);
               });
  EXPECT_EQ(cat(y[0]), "i8[1,1,3,3]{-3, -5, -1, -3, -3, 1, 1, 3, 3}");
}

TEST(QConv2d, has_groups_strides_and_dilation) {
  // Two channels, each its own group; taps 0 and 2 of 5, then 2 and 4.
  const Literals y = evaluate(
      {Literal::of<int8_t>({1, 2, 1, 5}, {1, 2, 3, 4, 5, 10, 20, 30, 40, 50}),
       Literal::of<int8_t>({2, 1, 1, 2}, {1, 1, 1, -1}), Literal::of<int32_t>({2}, {0, 0})},
      [](const Exprs& x) { return q_conv2d(x[0], x[1], x[2], {}, {1, 2}, {}, {1, 2}, 2, 0, 0, 0, 0.5); });
  EXPECT_EQ(cat(y[0]), "i8[1,2,1,2]{2, 4, -10, -10}");
}

TEST(DequantGroupedMatmul, multiplies_each_row_with_its_expert) {
  // Two experts of W[32, 1] in q8_0: all ones, and 0 .. 31 times 2.
  std::vector<uint8_t> packed(68, 1);
  const uint16_t one = f32_to_f16(1.0f), two = f32_to_f16(2.0f);
  packed[0] = uint8_t(one), packed[1] = uint8_t(one >> 8), packed[34] = uint8_t(two),
  packed[35] = uint8_t(two >> 8);
  for (size_t i = 0; i < 32; ++i) packed[36 + i] = uint8_t(i);
  const Literal x = Literal::full(Shape(DType::f64, {3, 32}), 1);
  const Literal experts = Literal::of<int32_t>({3}, {1, 0, 1});
  for (const Dims& dims : {Dims{2, 34}, Dims{68}}) {
    const Literals y = evaluate({x, Literal::of<uint8_t>(dims, packed), experts}, [](const Exprs& t) {
      return dequant_grouped_matmul(t[0], t[1], t[2], "gguf_q8_0", 2);
    });
    expect_close(y[0], f64({3, 1}, {992, 32, 992}), 0);
  }
}

}  // namespace
}  // namespace rlx::ops
