// Calls of the quantisation operators that must be refused, with their messages.
#include <gtest/gtest.h>

#include "rlx/ops/quant/dequant_matmul.h"
#include "rlx/ops/quant/dequantize_blocks.h"
#include "rlx/ops/quant/encode_blocks.h"
#include "rlx/ops/quant/fake_quantize.h"
#include "rlx/ops/quant/fake_quantize_lsq.h"
#include "rlx/ops/quant/q_conv2d.h"
#include "rlx/ops/quant/q_matmul.h"
#include "rlx/ops/quant/quantize.h"
#include "rlx/ops/quant/scaled_matmul.h"
#include "tests/support/errors.h"
#include "tests/support/evaluate.h"

namespace rlx::ops {
namespace {

using test::message_of;
using test::typed;

TEST(QuantRefusal, quantize_wants_floats_and_a_scale_that_means_something) {
  Graph g("g");
  const Expr x = typed(g, "f32[2,3]"), q = typed(g, "i8[2,3]");
  EXPECT_EQ(message_of([&] { quantize(q, 1, 0); }),
            "quantize: x: i8[2,3] has dtype i8; it must be f16, bf16, f32 or f64");
  EXPECT_EQ(message_of([&] { quantize(x, 0, 0); }), "quantize: scale 0.0 must be positive and finite");
  EXPECT_EQ(message_of([&] { quantize(x, 1, 200); }), "quantize: zero point 200 is no i8 code; -128 .. 127");
  EXPECT_EQ(message_of([&] { quantize_per_channel(x, 1, {1, 2}, {0, 0}); }),
            "quantize_per_channel: 2 scales for 3 channels on axis 1 of x: f32[2,3]");
  EXPECT_EQ(message_of([&] { quantize_per_channel(x, 0, {1, 2}, {0}); }),
            "quantize_per_channel: 2 scales and 1 zero points; each channel has one of each");
  EXPECT_EQ(message_of([&] { dequantize(x, 1, 0); }), "dequantize: q: f32[2,3] has dtype f32; codes are i8");
  EXPECT_EQ(message_of([&] { dequantize_per_channel(q, 2, {}, {}); }),
            "dequantize_per_channel: axis 2 is out of range for q: i8[2,3]");
}

TEST(QuantRefusal, q_matmul_wants_codes_that_fit) {
  Graph g("g");
  const Expr x = typed(g, "i8[2,3]"), w = typed(g, "i8[3,4]"), bias = typed(g, "i32[4]"),
             f = typed(g, "f32[3,4]");
  EXPECT_EQ(message_of([&] { q_matmul(x, f, bias, 0, 0, 0, 1); }),
            "q_matmul: w: f32[3,4] has dtype f32; codes of weights are i8");
  EXPECT_EQ(message_of([&] { q_matmul(x, x, bias, 0, 0, 0, 1); }),
            "q_matmul: inner sizes differ, x: i8[2,3] and w: i8[2,3]; the last axis of x must equal the "
            "first of w");
  EXPECT_EQ(message_of([&] { q_matmul(x, w, typed(g, "i32[5]"), 0, 0, 0, 1); }),
            "q_matmul: bias: i32[5] does not fit w: i8[3,4]");
  EXPECT_EQ(message_of([&] { q_matmul(x, w, bias, 0, 0, 0, -1); }),
            "q_matmul: mult -1.0 must be positive and finite");
  EXPECT_EQ(message_of([&] { q_matmul(bias, w, bias, 0, 0, 0, 1); }),
            "q_matmul: x: i32[4] has rank 1; it must have rank 2 or more");
  EXPECT_EQ(message_of([&] { q_matmul(f, w, bias, 0, 0, 0, 1); }),
            "q_matmul: x: f32[3,4] has dtype f32; codes are i8 or u8");
  EXPECT_EQ(message_of([&] { q_matmul(x, w, bias, 200, 0, 0, 1); }),
            "q_matmul: zero point 200 is no i8 code; -128 .. 127");
  const auto with_mults = [&](std::vector<double> mults) {
    return message_of([&] { make<QMatmul>(g, {{.mults = std::move(mults)}}, {x, w, bias}); });
  };
  EXPECT_EQ(with_mults({1, 2, 3}), "q_matmul: 3 mults for 4 output channels; one each expected, or none");
  EXPECT_EQ(with_mults({1, 2, 3, 0}), "q_matmul: one of mults, 0.0 must be positive and finite");
}

TEST(QuantRefusal, dequant_matmul_transposed_wants_whole_blocks_for_each_column) {
  Graph g("g");
  const Expr x = typed(g, "f32[2,3]"), w = typed(g, "u8[54]");
  EXPECT_EQ(message_of([&] { dequant_matmul_transposed(x, w, "int8/4"); }),
            "dequant_matmul_transposed: scheme 'int8/4' keeps scales beside its codes; gguf_TYPE expected");
  EXPECT_EQ(message_of([&] { dequant_matmul_transposed(x, x, "gguf_q4_0"); }),
            "dequant_matmul_transposed: w: f32[2,3] has dtype f32; packed weights are bytes, u8");
  EXPECT_EQ(
      message_of([&] { dequant_matmul_transposed(typed(g, "f32[2,5]"), w, "gguf_q4_0"); }),
      "dequant_matmul_transposed: w: u8[54] is no whole number of gguf_q4_0 blocks for each of the 5 columns of "
      "x: f32[2,5]");
}

TEST(QuantRefusal, packed_weights_want_a_known_scheme_and_the_right_number_of_bytes) {
  Graph g("g");
  const Expr p = typed(g, "u8[18]"), x = typed(g, "f32[2,32]");
  const std::string unknown = message_of([&] { dequantize_blocks(p, "gguf_q9", {32, 1}); });
  EXPECT_TRUE(
      unknown.starts_with("dequantize_blocks: scheme 'gguf_q9' is not known; int8/B, int8a/B, int4/B, "))
      << unknown;
  EXPECT_EQ(message_of([&] { dequantize_blocks(p, "gguf_q4_0", {32, 2}); }),
            "dequantize_blocks: packed: u8[18] has 18 bytes; gguf_q4_0 weights f32[32,2] take 36");
  EXPECT_EQ(message_of([&] { dequantize_blocks(p, "gguf_q4_0", {16, 2}); }),
            "dequantize_blocks: k = 16 is no multiple of 32, the block of gguf_q4_0");
  EXPECT_EQ(message_of([&] { dequantize_blocks(x, "gguf_q4_0", {32, 1}); }),
            "dequantize_blocks: packed: f32[2,32] has dtype f32; packed weights are bytes, u8");
  EXPECT_EQ(
      message_of([&] { dequant_moe_weights(p, "int4/32", {1, 6, 6}); }),
      "dequant_moe_weights: scheme 'int4/32' keeps scales beside its codes; expert slabs are gguf_TYPE");
  EXPECT_EQ(message_of([&] { dequant_matmul_packed(x, p, "int4/32"); }),
            "dequant_matmul_packed: scheme 'int4/32' has scales beside its codes; use dequant_matmul");
}

TEST(QuantRefusal, dequant_matmul_wants_exactly_the_operands_of_its_scheme) {
  Graph g("g");
  const Expr x = typed(g, "f32[2,8]"), w = typed(g, "i8[8,3]"), scale = typed(g, "f32[2,3]"), none;
  EXPECT_EQ(message_of([&] { dequant_matmul(x, w, none, none, "int8/4"); }),
            "dequant_matmul: int8/4 needs scale: f32[2,3]");
  EXPECT_EQ(message_of([&] { dequant_matmul(x, w, scale, scale, "int8/4"); }),
            "dequant_matmul: int8/4 has no zp; leave it out");
  EXPECT_EQ(message_of([&] { dequant_matmul(x, w, scale, none, "int8a/4"); }),
            "dequant_matmul: int8a/4 needs zp: f32[2,3]");
  EXPECT_EQ(message_of([&] { dequant_matmul(x, w, scale, none, "int8/8"); }),
            "dequant_matmul: scale: f32[2,3] does not fit int8/8; it must be f32[1,3]");
  EXPECT_EQ(message_of([&] { dequant_matmul(x, w, none, scale, "int8/4"); }),
            "dequant_matmul: zp is given without scale; they come together");
  EXPECT_EQ(message_of([&] { dequant_matmul(x, typed(g, "u8[5]"), scale, none, "int4/4"); }),
            "dequant_matmul: w: u8[5] does not fit int4/4; it must hold 12 bytes, u8");
  EXPECT_EQ(
      message_of([&] { dequant_matmul(typed(g, "f32[2,seq]"), w, scale, none, "int8/4"); }),
      "dequant_matmul: x: f32[2,seq] has a symbolic last axis; the blocks of the weights need its size");
  EXPECT_EQ(
      message_of([&] { dequant_matmul_packed(typed(g, "f32[1,32]"), typed(g, "u8[19]"), "gguf_q4_0"); }),
      "dequant_matmul: packed: 19 bytes are no whole number of gguf_q4_0 columns of 18 bytes");
}

TEST(QuantRefusal, rounded_activations_want_blocks) {
  Graph g("g");
  const Expr x = typed(g, "f32[2,8]"), w = typed(g, "i8[8,3]"), scale = typed(g, "f32[2,3]");
  EXPECT_EQ(message_of([&] { make<DequantMatmul>(g, {"int8/4", Activations::q8}, {x, w, scale}); }),
            "dequant_matmul: activations=q8 needs blocks, gguf_TYPE; scheme is int8/4");
}

TEST(QuantRefusal, numbers_are_encoded_in_whole_blocks) {
  Graph g("g");
  EXPECT_EQ(message_of([&] { make<EncodeBlocks>(g, {"gguf_q8_0"}, {typed(g, "f32[2,40]")}); }),
            "encode_blocks: x: f32[2,40] has rows of 40; a multiple of 32, the block of gguf_q8_0, expected");
  EXPECT_EQ(message_of([&] { make<EncodeBlocks>(g, {"int8/4"}, {typed(g, "f32[2,32]")}); }),
            "encode_blocks: numbers cannot be encoded as int8/4");
}

TEST(QuantRefusal, fake_quantize_wants_the_state_of_its_mode) {
  Graph g("g");
  const Expr x = typed(g, "f32[2,3]"), one = typed(g, "f32[1]"), two = typed(g, "f32[2]");
  EXPECT_EQ(message_of([&] { fake_quantize(x, {}, {.bits = 5}); }),
            "fake_quantize: bits 5 is not supported; 8, 4 or 2");
  EXPECT_EQ(message_of([&] { fake_quantize(x, one, {}); }),
            "fake_quantize: a state is given, but scale_mode per_batch has none");
  EXPECT_EQ(message_of([&] { fake_quantize(x, {}, {.scale_mode = ScaleMode::fixed}); }),
            "fake_quantize: no state is given, but scale_mode fixed needs one");
  EXPECT_EQ(message_of([&] { fake_quantize(x, two, {.axis = 1, .scale_mode = ScaleMode::fixed}); }),
            "fake_quantize: state: f32[2] does not fit x: f32[2,3]; it must be f32[3]");
  EXPECT_EQ(message_of([&] { fake_quantize(x, one, {.scale_mode = ScaleMode::ema, .decay = 2}); }),
            "fake_quantize: decay 2.0 must lie in 0 .. 1");
  EXPECT_EQ(message_of([&] { fake_quantize_backward(x, one, two, 8, {}, SteKind::tanh); }),
            "fake_quantize_backward: shapes differ, x: f32[2,3] and dy: f32[2]");
  EXPECT_EQ(message_of([&] { fake_quantize_lsq(x, two, 8, 1); }),
            "fake_quantize_lsq: scale: f32[2] does not fit x: f32[2,3]; it must be f32[3]");
  EXPECT_EQ(message_of([&] { fake_quantize_lsq_backward_x(x, one, x, 3); }),
            "fake_quantize_lsq_backward_x: bits 3 is not supported; 8, 4 or 2");
  EXPECT_EQ(message_of([&] { fake_quantize_lsq_backward_scale(x, two, x, 8); }),
            "fake_quantize_lsq_backward_scale: scale: f32[2] does not fit x: f32[2,3]; it must be f32[1]");
}

TEST(QuantRefusal, q_conv2d_and_experts_check_their_sizes) {
  Graph g("g");
  const Expr x = typed(g, "i8[1,2,4,4]"), w = typed(g, "i8[3,2,5,5]"), bias = typed(g, "i32[3]");
  const auto conv = [&](std::vector<int64_t> kernel, std::vector<int64_t> stride, int64_t groups) {
    return message_of([&] { q_conv2d(x, w, bias, kernel, stride, {}, {}, groups, 0, 0, 0, 1); });
  };
  EXPECT_EQ(conv({3, 3}, {}, 1), "q_conv2d: kernel_size [3, 3] is not that of w: i8[3,2,5,5]");
  EXPECT_EQ(conv({}, {0, 1}, 1), "q_conv2d: stride [0, 1] must be two numbers of 1 or more");
  EXPECT_EQ(conv({}, {}, 2), "q_conv2d: groups 2 does not divide the 3 channels of w: i8[3,2,5,5]");
  EXPECT_EQ(conv({}, {}, 1), "q_conv2d: a window of 5 does not fit an image of 4 with padding 0");
  const Expr rows = typed(g, "f32[2,32]"), flat = typed(g, "u8[36]"), ids = typed(g, "i32[3]");
  EXPECT_EQ(message_of([&] { dequant_grouped_matmul(rows, flat, ids, "gguf_q4_0"); }),
            "dequant_grouped_matmul: experts: i32[3] does not fit x: f32[2,32]; each row has one");
  EXPECT_EQ(message_of([&] { dequant_grouped_matmul(rows, flat, typed(g, "i32[2]"), "gguf_q4_0"); }),
            "dequant_grouped_matmul: packed: u8[36] does not tell the number of experts; set num_experts");
}

TEST(QuantRefusal, scaled_matmul_wants_fp8_and_scales_that_fit) {
  Graph g("g");
  const Expr x = typed(g, "f8e4m3[2,256]"), w = typed(g, "f8e5m2[256,300]"), one = typed(g, "f32[1,1]"),
             blocks = typed(g, "f32[2,2]"), f = typed(g, "f32[2,256]");
  EXPECT_EQ(message_of([&] { scaled_matmul(f, w); }),
            "scaled_matmul: x: f32[2,256] has dtype f32; it must be f8e4m3 or f8e5m2");
  EXPECT_EQ(message_of([&] { scaled_matmul(x, x); }),
            "scaled_matmul: inner sizes differ, f8e4m3[2,256] x w: f8e4m3[2,256]; w must have 256 rows");
  EXPECT_EQ(message_of([&] { scaled_matmul(x, w, one, one, DType::f8e4m3); }),
            "scaled_matmul: to is f8e4m3; a product of fp8 is bf16, f16, f32 or f64");
  EXPECT_EQ(message_of([&] { scaled_matmul(x, w, one, one, DType::bf16, 0); }),
            "scaled_matmul: block is 0; it must be positive");
  EXPECT_EQ(message_of([&] { scaled_matmul(x, w, x); }),
            "scaled_matmul: x_scale: f8e4m3[2,256] has dtype f8e4m3; scales are f32 or f64");
  EXPECT_EQ(message_of([&] { scaled_matmul(x, w, typed(g, "f32[2]")); }),
            "scaled_matmul: x_scale: f32[2] has rank 1; it must have rank 2 or that of x: f8e4m3[2,256]");
  EXPECT_EQ(
      message_of([&] { scaled_matmul(x, w, typed(g, "f32[2,3]")); }),
      "scaled_matmul: x_scale: f32[2,3] does not fit x: f8e4m3[2,256]; axis 1 must have 1 or 2 elements");
  EXPECT_EQ(
      message_of([&] { scaled_matmul(x, w, blocks, blocks); }),
      "scaled_matmul: w_scale: f32[2,2] does not fit w: f8e5m2[256,300]; axis 1 must have 1 or 300 or 3 "
      "elements");
  EXPECT_EQ(message_of([&] { scaled_matmul(x, w, {}, one); }),
            "scaled_matmul: w_scale is given without x_scale; [1,1] of 1 stands for none");
}

}  // namespace
}  // namespace rlx::ops
