#include "rlx/quant/scheme.h"

#include <gtest/gtest.h>

#include <cmath>

#include "rlx/base/philox.h"
#include "tests/support/errors.h"

namespace rlx::quant {
namespace {

std::vector<float> random_weight(int64_t count) {
  std::vector<float> w(static_cast<size_t>(count));
  for (size_t i = 0; i < w.size(); ++i) w[i] = uniform_from_bits(philox_block(1, 2, i)[0]) * 2 - 0.7f;
  return w;
}

std::vector<float> through(const Scheme& scheme, const std::vector<float>& w, int64_t k, int64_t n) {
  const SchemeWeights weights = encode_scheme(scheme, w, k, n);
  std::vector<float> out(w.size());
  decode_scheme(scheme, weights.view(), k, n, out);
  return out;
}

double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
    norm += double(a[i]) * a[i];
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

TEST(Scheme, prints_and_reads_every_text) {
  for (const char* text : {"int8/32", "int8a/64", "int4/16", "fp8e4m3", "fp8e5m2", "nvfp4/16", "gguf_q4_0",
                           "gguf_q8_0", "gguf_q2k", "gguf_q8k", "gguf_iq4_nl", "gguf_iq2_s", "gguf_tq1_0"}) {
    const auto scheme = scheme_from_text(text);
    ASSERT_TRUE(scheme) << text;
    EXPECT_EQ(cat(*scheme), text);
  }
  EXPECT_EQ(cat(*scheme_from_text("gguf_q4_k")), "gguf_q4k");
  for (const char* text : {"", "int8", "int8/", "int8/0", "int8/-4", "int8/3x", "nvfp4/32", "gguf_f16",
                           "gguf_q4_0_4_4", "gguf_", "gguf_k", "gguf_nothing"}) {
    EXPECT_FALSE(scheme_from_text(text)) << text;
  }
}

// Sizes that leave a last group short and an odd number of nibbles.
TEST(Scheme, round_trip_error_fits_the_code_width) {
  const int64_t k = 37, n = 5;
  const std::vector<float> w = random_weight(k * n);
  const std::pair<const char*, double> bounds[] = {{"int8/16", 0.005}, {"int8a/16", 0.003},
                                                   {"int4/16", 0.05},  {"fp8e4m3", 0.03},
                                                   {"fp8e5m2", 0.06},  {"nvfp4/16", 0.09}};
  for (const auto& [text, bound] : bounds) {
    const double error = relative_error(w, through(*scheme_from_text(text), w, k, n));
    EXPECT_LT(error, bound) << text;
    EXPECT_GT(error, bound / 20) << text << ": suspiciously small";
  }
}

TEST(Scheme, gguf_blocks_hold_the_transposed_weight) {
  const int64_t k = 64, n = 3;
  const std::vector<float> w = random_weight(k * n);
  const Scheme q8 = *scheme_from_text("gguf_q8_0");
  EXPECT_LT(relative_error(w, through(q8, w, k, n)), 0.01);
  // Column 1 of W is row 1 of the stored matrix: change its first block only.
  SchemeWeights weights = encode_scheme(q8, w, k, n);
  std::vector<float> before(w.size()), after(w.size());
  decode_scheme(q8, weights.view(), k, n, before);
  weights.codes[2 * 34 + 2] ^= std::byte{1};
  decode_scheme(q8, weights.view(), k, n, after);
  for (size_t i = 0; i < w.size(); ++i) EXPECT_EQ(before[i] != after[i], i == 1) << i;
}

TEST(Scheme, int4_codes_are_unsigned_with_a_zero_point) {
  const std::byte codes[] = {std::byte{0xf0}, std::byte{0x08}};  // flat: 0, 15, 8, 0
  const float scale[] = {0.5f, 2.0f}, zero[] = {8.0f, 8.0f};
  float out[4];
  decode_scheme(*scheme_from_text("int4/2"), {.codes = codes, .scale = scale, .zero_point = zero}, 2, 2, out);
  EXPECT_EQ(out[0], -4.0f);
  EXPECT_EQ(out[1], 14.0f);
  EXPECT_EQ(out[2], 0.0f);
  EXPECT_EQ(out[3], -16.0f);
}

TEST(Scheme, nvfp4_packs_neighbours_along_k) {
  // k = 3, n = 2: bytes [2,2]. Column 0: codes 2, 7, 9; column 1: codes 0, 1, 15.
  const std::byte codes[] = {std::byte{0x72}, std::byte{0x10}, std::byte{0x09}, std::byte{0x0f}};
  const uint8_t scales[] = {0x38, 0x40};  // 1 and 2
  float out[6];
  decode_scheme(*scheme_from_text("nvfp4/16"), {.codes = codes, .fp8_scale = scales, .global_scale = 3.0f}, 3,
                2, out);
  const float expected[] = {3.0f, 0.0f, 18.0f, 3.0f, -1.5f, -36.0f};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(out[i], expected[i]) << i;
}

TEST(Scheme, fp8_is_ocp) {
  const std::byte codes[] = {std::byte{0x7e}, std::byte{0x78}};
  const float scale[] = {1.0f, 1.0f};
  float out[2];
  decode_scheme(*scheme_from_text("fp8e4m3"), {.codes = codes, .scale = scale}, 1, 2, out);
  EXPECT_EQ(out[0], 448.0f);
  EXPECT_EQ(out[1], 256.0f);  // exponent 15 is an ordinary binade
  decode_scheme(*scheme_from_text("fp8e5m2"), {.codes = codes, .scale = scale}, 1, 2, out);
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_EQ(out[1], 32768.0f);
}

TEST(Scheme, constant_and_zero_groups_are_kept) {
  for (const char* text : {"int8/8", "int8a/8", "int4/8", "fp8e4m3", "fp8e5m2", "nvfp4/16"}) {
    for (const float value : {0.0f, 1.5f, -1.5f}) {
      const std::vector<float> w(24, value);
      for (const float v : through(*scheme_from_text(text), w, 24, 1)) EXPECT_NEAR(v, value, 1e-2f) << text;
    }
  }
}

TEST(Scheme, refuses_operands_of_the_wrong_size) {
  const std::byte codes[4] = {};
  const float scale[1] = {1};
  float out[4];
  const Scheme scheme = *scheme_from_text("int8/2");
  EXPECT_EQ(test::message_of([&] { decode_scheme(scheme, {.codes = codes, .scale = scale}, 4, 1, out); }),
            "quant scheme int8/2: scale has 1 entries; a weight of 4 x 1 needs 2");
  EXPECT_THROW(code_bytes(*scheme_from_text("int8/2"), int64_t(1) << 40, int64_t(1) << 40), Error);
  EXPECT_THROW(code_bytes(*scheme_from_text("int8/2"), -1, 4), Error);
}

}  // namespace
}  // namespace rlx::quant
