// Values of the quantisation operators against numbers worked out by hand and against the codecs.
#include <gtest/gtest.h>

#include <algorithm>

#include "rlx/base/float16.h"
#include "rlx/ir/sample.h"
#include "rlx/ops/quant/dequant_matmul.h"
#include "rlx/ops/quant/dequantize_blocks.h"
#include "rlx/ops/quant/q_matmul.h"
#include "rlx/ops/quant/quantize.h"
#include "rlx/ops/quant/scaled_matmul.h"
#include "rlx/quant/scheme.h"
#include "tests/support/compare.h"
#include "tests/support/evaluate.h"

namespace rlx::ops {
namespace {

using test::evaluate;
using test::expect_close;
using test::numbers;

Literal f64(Dims dims, std::vector<double> v) { return Literal::of<double>(std::move(dims), v); }
Literal bytes(Dims dims, std::vector<uint8_t> v) { return Literal::of<uint8_t>(std::move(dims), v); }

TEST(Quantize, rounds_halves_to_even_and_saturates) {
  const auto y = evaluate({f64({8}, {0.25, 0.75, 1.25, -0.25, -0.75, 1000, -1000, NAN})},
                          [](const Exprs& x) { return quantize(x[0], 0.5, 0); });
  EXPECT_EQ(cat(y[0]), "i8[8]{0, 2, 2, 0, -2, 127, -128, 0}");
  // The zero point is added after rounding: 0.5 -> 0 -> 1, where rounding 1.5 would give 2.
  EXPECT_EQ(cat(evaluate({f64({1}, {0.5})}, [](const Exprs& x) { return quantize(x[0], 1, 1); })[0]),
            "i8[1]{1}");
}

TEST(Quantize, has_a_scale_per_channel_along_any_axis) {
  const Literal x = f64({2, 2}, {1, 1, 2, 2});
  EXPECT_EQ(
      cat(evaluate({x}, [](const Exprs& t) { return quantize_per_channel(t[0], 0, {1, 0.5}, {0, 10}); })[0]),
      "i8[2,2]{1, 1, 14, 14}");
  EXPECT_EQ(
      cat(evaluate({x}, [](const Exprs& t) { return quantize_per_channel(t[0], -1, {1, 0.5}, {0, 10}); })[0]),
      "i8[2,2]{1, 12, 2, 14}");
}

TEST(Dequantize, undoes_the_codes) {
  const Literal q = Literal::of<int8_t>({2, 2}, {-128, 0, 3, 127});
  EXPECT_EQ(numbers({q}, [](const Exprs& x) { return dequantize(x[0], 0.5, 3); }),
            (std::vector<double>{-65.5, -1.5, 0, 62}));
  EXPECT_EQ(numbers({q}, [](const Exprs& x) { return dequantize_per_channel(x[0], 1, {1, 2}, {-128, 127}); }),
            (std::vector<double>{0, -254, 131, 0}));
}

TEST(QMatmul, accumulates_in_i32_and_requantizes) {
  // (1-3)(4+2) + (5-3)(-6+2) + 7 = -12 - 8 + 7 = -13; -13 * 0.5 = -6.5 -> -6 (even), + 1
  const Literals in = {Literal::of<int8_t>({1, 2}, {1, 5}), Literal::of<int8_t>({2, 1}, {4, -6}),
                       Literal::of<int32_t>({1}, {7})};
  EXPECT_EQ(cat(evaluate(in, [](const Exprs& x) { return q_matmul(x[0], x[1], x[2], 3, -2, 1, 0.5); })[0]),
            "i8[1,1]{-5}");
  EXPECT_EQ(cat(evaluate(in,
                         [](const Exprs& x) {
                           return q_matmul(x[0], x[1], x[2], 3, -2, 1, 0.5, Rounding::half_away);
                         })[0]),
            "i8[1,1]{-6}");
  EXPECT_EQ(cat(evaluate(in, [](const Exprs& x) { return q_matmul(x[0], x[1], x[2], 3, -2, 1, 100); })[0]),
            "i8[1,1]{-128}");
}

TEST(DequantizeBlocks, decodes_fp8_by_the_ocp_tables) {
  // 0x7e is 448, the largest E4M3; 0x7b is 57344, the largest E5M2, and 0x7c its infinity.
  EXPECT_EQ(numbers({bytes({1, 2}, {0x7e, 0xb8})},
                    [](const Exprs& x) { return dequantize_blocks(x[0], "fp8e4m3", {1, 2}); }),
            (std::vector<double>{448, -1}));
  EXPECT_EQ(numbers({bytes({1, 2}, {0x7b, 0x7c})},
                    [](const Exprs& x) { return dequantize_blocks(x[0], "fp8e5m2", {1, 2}); }),
            (std::vector<double>{57344, INFINITY}));
}

TEST(DequantizeBlocks, lays_gguf_rows_out_as_columns) {
  // One q8_0 block per column of W[32, 2]: scale 0.5, codes 0 .. 31; scale 2, codes all 1.
  std::vector<uint8_t> packed(68);
  const uint16_t half = f32_to_f16(0.5f), two = f32_to_f16(2.0f);
  packed[0] = uint8_t(half), packed[1] = uint8_t(half >> 8);
  packed[34] = uint8_t(two), packed[35] = uint8_t(two >> 8);
  for (size_t i = 0; i < 32; ++i) packed[2 + i] = uint8_t(i), packed[36 + i] = 1;
  const auto w = numbers({bytes({68}, packed)},
                         [](const Exprs& x) { return dequantize_blocks(x[0], "gguf_q8_0", {32, 2}); });
  for (size_t k = 0; k < 32; ++k) {
    EXPECT_EQ(w[2 * k], 0.5 * double(k));
    EXPECT_EQ(w[2 * k + 1], 2);
  }
}

// x W with W decoded by the codec and multiplied plainly.
Literal plain_product(const Literal& x, const std::vector<float>& w, int64_t k, int64_t n) {
  const int64_t m = x.elements() / k;
  std::vector<double> y(size_t(m * n), 0.0);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t j = 0; j < n; ++j)
        y[size_t(i * n + j)] += x.real_at(i * k + p) * double(w[size_t(p * n + j)]);
    }
  }
  return Literal::reals(x.shape().with_dim(-1, n), y);
}

class EveryScheme : public testing::TestWithParam<std::string> {
 protected:
  static constexpr int64_t kColumns = 3;
  quant::Scheme scheme = *quant::scheme_from_text(GetParam());
  int64_t k = scheme.is_gguf() ? scheme.block * 2 : 37;  // a tail in the last group where there may be one
  quant::SchemeWeights encoded() const {
    const Literal w = ir::sample_literal(cat("f32[", k, ",", kColumns, "]"), 11);
    return quant::encode_scheme(scheme, w.data<float>(), k, kColumns);
  }
};

std::vector<std::string> gguf_schemes() {
  std::vector<std::string> out;
  for (const auto& f : quant::formats()) {
    if (!f.is_plain() && f.decode && f.encode) out.push_back(cat(quant::Scheme::gguf(f)));
  }
  return out;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Scaled, EveryScheme,
                         testing::Values("int8/16", "int8a/16", "int4/16", "fp8e4m3", "fp8e5m2", "nvfp4/16"),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Gguf, EveryScheme, testing::ValuesIn(gguf_schemes()), test_name);

class EveryGgufType : public EveryScheme {};
INSTANTIATE_TEST_SUITE_P(Gguf, EveryGgufType, testing::ValuesIn(gguf_schemes()), test_name);

TEST_P(EveryScheme, dequant_matmul_is_the_product_with_the_decoded_weights) {
  const quant::SchemeWeights e = encoded();
  std::vector<float> w(size_t(k * kColumns));
  quant::decode_scheme(scheme, e.view(), k, kColumns, w);
  const Literal x = ir::sample_literal(cat("f64[2,2,", k, "]"), 12);

  const auto groups = scheme.block > 0 ? (k + scheme.block - 1) / scheme.block : int64_t(1);
  const Dims scale_dims = scheme.block > 0 ? Dims{groups, kColumns} : Dims{kColumns};
  const int64_t count = int64_t(e.codes.size());
  const bool i8 =
      scheme.kind == quant::SchemeKind::int8_block || scheme.kind == quant::SchemeKind::int8_block_asym;
  const Dims code_dims = scheme.is_gguf() || scheme.kind == quant::SchemeKind::int4_block
                             ? Dims{count}
                             : Dims{count / kColumns, kColumns};
  Literals in = {x, Literal::copy_of(Shape(i8 ? DType::i8 : DType::u8, code_dims), e.codes)};
  if (!e.scale.empty()) in.push_back(Literal::of<float>(scale_dims, e.scale));
  if (!e.fp8_scale.empty()) {
    in.push_back(bytes(scale_dims, e.fp8_scale));
    in.push_back(Literal::of<float>({1}, {e.global_scale}));
  }
  if (!e.zero_point.empty()) in.push_back(Literal::of<float>(scale_dims, e.zero_point));
  const Literals y = evaluate(in, [&](const Exprs& t) {
    return dequant_matmul(t[0], t[1], t.size() > 2 ? t[2] : Expr{}, t.size() > 3 ? t[3] : Expr{}, GetParam());
  });
  expect_close(y[0], plain_product(x, w, k, kColumns), 1e-5);
}

TEST_P(EveryGgufType, decodes_as_moe_weights) {
  const quant::SchemeWeights e = encoded();
  std::vector<float> w(size_t(k * kColumns));
  quant::decode_scheme(scheme, e.view(), k, kColumns, w);
  std::vector<std::byte> slabs = e.codes;
  slabs.insert(slabs.end(), e.codes.begin(), e.codes.end());
  const int64_t slab = int64_t(e.codes.size());
  const Literals y = evaluate({Literal::copy_of(Shape(DType::u8, {2, slab}), slabs)}, [&](const Exprs& t) {
    return dequant_moe_weights(t[0], GetParam(), {2, k, kColumns});
  });
  for (size_t i = 0; i < 2 * w.size(); ++i) EXPECT_EQ(y[0].real_at(int64_t(i)), double(w[i % w.size()])) << i;
}

TEST(DequantMatmul, int4_codes_are_unsigned_with_zero_point_eight_by_default) {
  // W[2, 2] = codes 0 15 / 8 9, packed low nibble first, scale 1.
  const Literals in = {f64({1, 2}, {1, 10}), bytes({2}, {0xf0, 0x98}), Literal::of<float>({1, 2}, {1, 1})};
  EXPECT_EQ(numbers(in, [](const Exprs& x) { return dequant_matmul(x[0], x[1], x[2], {}, "int4/2"); }),
            (std::vector<double>{-8, 17}));
  Literals with_zero = in;
  with_zero.push_back(Literal::of<float>({1, 2}, {0, 1}));
  EXPECT_EQ(
      numbers(with_zero, [](const Exprs& x) { return dequant_matmul(x[0], x[1], x[2], x[3], "int4/2"); }),
      (std::vector<double>{80, 94}));
}

TEST(DequantMatmul, nvfp4_packs_two_neighbours_along_k_in_a_byte) {
  // Column 0: rows 0, 1 = codes 2, 15 -> 1, -6; column 1: codes 7, 1 -> 6, 0.5. Scales 1 and NaN, which is 0.
  const Literals in = {f64({1, 2}, {1, 10}), bytes({1, 2}, {0xf2, 0x17}), bytes({1, 2}, {0x38, 0x38}),
                       Literal::of<float>({1}, {0.5})};
  EXPECT_EQ(numbers(in, [](const Exprs& x) { return dequant_matmul_nvfp4(x[0], x[1], x[2], x[3]); }),
            (std::vector<double>{-29.5, 5.5}));
  Literals with_nan = in;
  with_nan[2] = bytes({1, 2}, {0x38, 0x7f});
  EXPECT_EQ(numbers(with_nan, [](const Exprs& x) { return dequant_matmul_nvfp4(x[0], x[1], x[2], x[3]); }),
            (std::vector<double>{-29.5, 0}));
}

Literal codes(DType t, Dims dims, const std::vector<uint8_t>& v) {
  return Literal::copy_of(Shape(t, std::move(dims)), std::as_bytes(std::span(v)));
}

TEST(ScaledMatmul, blocks_along_k_have_scales_of_their_own) {
  // e4m3: 0x38 is 1, 0x40 is 2, 0x44 is 3, 0xb8 is -1; e5m2: 0x3c is 1, 0x42 is 3. Blocks of two along k, the last one of one; the columns share a block.
  const Literals in = {codes(DType::f8e4m3, {1, 3}, {0x38, 0x40, 0x44}),
                       codes(DType::f8e5m2, {3, 2}, {0x3c, 0x42, 0x3c, 0x3c, 0x42, 0x3c}),
                       Literal::of<float>({1, 2}, {1, 10}), Literal::of<float>({2, 1}, {0.5, 4})};
  EXPECT_EQ(numbers(in, [](const Exprs& x) { return scaled_matmul(x[0], x[1], x[2], x[3], DType::f32, 2); }),
            (std::vector<double>{3 * 0.5 + 9 * 40, 5 * 0.5 + 3 * 40}));
}

TEST(ScaledMatmul, codes_that_are_no_numbers_come_out) {
  // The largest e4m3 is 448, its last code is NaN; e5m2 has infinities.
  const Literals in = {codes(DType::f8e4m3, {3, 1}, {0x7e, 0x7f, 0x01}),
                       codes(DType::f8e5m2, {1, 2}, {0x3c, 0xfc})};
  const auto y = numbers(in, [](const Exprs& x) { return scaled_matmul(x[0], x[1], {}, {}, DType::f32); });
  EXPECT_EQ(y[0], 448);
  EXPECT_EQ(y[1], -INFINITY);
  EXPECT_TRUE(std::isnan(y[2]) && std::isnan(y[3]));
  EXPECT_EQ(y[4], 0x1p-9);
}

}  // namespace
}  // namespace rlx::ops
