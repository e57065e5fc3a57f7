#include "rlx/base/float16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace rlx {
namespace {

// Every code must survive narrow -> f32 -> narrow; NaNs stay NaN.
template <class Code, class Widen, class Narrow>
void expect_round_trip(int count, Widen widen, Narrow narrow) {
  for (int code = 0; code < count; ++code) {
    const float value = widen(Code(code));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(widen(narrow(value)))) << code;
    } else {
      EXPECT_EQ(narrow(value), Code(code)) << "code " << code << " value " << value;
    }
  }
}

TEST(Float16, every_code_survives_widening) {
  expect_round_trip<uint16_t>(1 << 16, f16_to_f32, [](float v) { return f32_to_f16(v); });
  expect_round_trip<uint16_t>(1 << 16, bf16_to_f32, [](float v) { return f32_to_bf16(v); });
  expect_round_trip<uint8_t>(256, f8e4m3_to_f32, [](float v) { return f32_to_f8e4m3(v); });
  expect_round_trip<uint8_t>(256, f8e5m2_to_f32, [](float v) { return f32_to_f8e5m2(v); });
}

// The midpoint between neighbours goes to the even code, and anything beyond it to the nearer one.
template <class Code, class Widen, class Narrow>
void expect_half_to_even(Code largest, Widen widen, Narrow narrow) {
  for (Code code = 0; code < largest; ++code) {
    const float low = widen(code), high = widen(Code(code + 1)), middle = low + (high - low) / 2;
    EXPECT_EQ(narrow(middle), Code(code & 1 ? code + 1 : code)) << code;
    EXPECT_EQ(narrow(std::nextafter(middle, low)), code);
    EXPECT_EQ(narrow(std::nextafter(middle, high)), Code(code + 1));
  }
}

TEST(Float16, rounds_half_to_even) {
  expect_half_to_even<uint16_t>(0x7bff, f16_to_f32, [](float v) { return f32_to_f16(v); });
  expect_half_to_even<uint16_t>(0x7f7f, bf16_to_f32, [](float v) { return f32_to_bf16(v); });
  expect_half_to_even<uint8_t>(0x7e, f8e4m3_to_f32, [](float v) { return f32_to_f8e4m3(v); });
  expect_half_to_even<uint8_t>(0x7b, f8e5m2_to_f32, [](float v) { return f32_to_f8e5m2(v); });
}

TEST(Float16, overflow_follows_the_format) {
  EXPECT_TRUE(std::isinf(f16_to_f32(f32_to_f16(65520.0f))));
  EXPECT_EQ(f16_to_f32(f32_to_f16(65519.0f)), 65504.0f);
  EXPECT_TRUE(std::isnan(f8e4m3_to_f32(f32_to_f8e4m3(1000.0f))));
  EXPECT_EQ(f8e4m3_to_f32(f32_to_f8e4m3(1000.0f, true)), 448.0f);
  EXPECT_EQ(f8e4m3_to_f32(f32_to_f8e4m3(-1000.0f, true)), -448.0f);
  EXPECT_TRUE(std::isinf(f8e5m2_to_f32(f32_to_f8e5m2(1e6f))));
  EXPECT_EQ(f8e5m2_to_f32(f32_to_f8e5m2(1e6f, true)), 57344.0f);
}

}  // namespace
}  // namespace rlx
