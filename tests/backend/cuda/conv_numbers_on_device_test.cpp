// Convolutions and sums of windows of integers, of complex numbers and of 8-bit codes.
#include "tests/backend/cuda/texts.h"

namespace rlx {
namespace {

using test::TextCase;

std::vector<TextCase> numbers() {
  std::vector<TextCase> out;
  for (const char* type : {"i8", "u8", "i16", "i32", "u32", "i64", "c64"}) {
    // Products of i8 leave their type: the low bits are kept.
    const std::string t = type, fill = t == "c64" ? "" : t[0] == 'u' ? " in 0..90" : " in -90..90";
    const std::map<std::string, std::string> fills = {{"x", fill}, {"w", fill}};
    out.push_back(
        {cat("graph @f(x: ", t, "[2,6,9,7], w: ", t,
             "[8,3,3,2]) { y = conv(x, w, stride=[2,1], padding=[1,1], dilation=[1,2], groups=2) return y }"),
         fills, 2e-5});
    out.push_back(
        {cat("graph @f(x: ", t, "[2,3,11], w: ", t,
             "[4,3,3]) { y = conv(x, w, stride=[1], padding=[-1], dilation=[-1], input_dilation=[3], "
             "size=(30)) return y }"),
         fills, 2e-5});
    out.push_back(
        {cat("graph @f(x: ", t,
             "[3,5,3,3,2]) { y = windows_sum(x, size=(9,4), stride=[2,1], padding=[1,0]) return y }"),
         {{"x", fill}},
         2e-5});
  }
  out.push_back(
      {"graph @f(x: c64[1,2,5,5], w: c64[2,2,3,3]) { t = transpose(x, perm=[0,1,3,2]) y = conv(t, w) return y }",
       {},
       2e-5});
  return out;
}

// Images that are wide, kernels of one tap, groups of one channel, multipliers for each channel; ties are rounded both ways.
std::vector<TextCase> codes() {
  return {
      {"graph @f(x: i8[2,8,13,11], w: i8[12,4,3,3], b: i32[12]) { y = q_conv2d(x, w, b, stride=[2,1], padding=[1,2], "
       "groups=2, x_zp=3, w_zp=-2, out_zp=5, mult=0.002) return y }",
       {{"b", " in -4000..4000"}}},
      {"graph @f(x: u8[1,5,9,40], w: i8[3,5,1,1], b: i32[3]) { y = q_conv2d(x, w, b, x_zp=128, out_zp=120, mult=0.5, "
       "rounding=half_away, mults=[0.5,0.25,0.0078125]) return y }",
       {{"b", " in -900..900"}}},
      {"graph @f(x: i8[3,6,8,8], w: i8[6,1,3,3], b: i32[6]) { y = q_conv2d(x, w, b, padding=[2,2], dilation=[2,2], groups=6, "
       "x_zp=-7, mult=0.5) return y }",
       {{"b", " in -90..90"}}},
      // On matrix units: tiles and slices that channels and positions do not fill, zero points of both, of one, of none.
      {"graph @f(x: i8[2,40,9,7], w: i8[48,20,3,3], b: i32[48]) { y = q_conv2d(x, w, b, stride=[2,1], padding=[1,1], groups=2, "
       "x_zp=3, w_zp=-2, out_zp=5, mult=0.02) return y }",
       {{"b", " in -4000..4000"}}},
      {"graph @f(x: u8[3,33,6,30], w: i8[70,33,1,3], b: i32[70]) { y = q_conv2d(x, w, b, padding=[0,1], x_zp=120, out_zp=130, "
       "mult=0.005) return y }",
       {{"x", " bytes"}, {"w", " in -128..127"}, {"b", " in -4000..4000"}}},
      {"graph @f(x: i8[1,70,16,11], w: i8[16,70,2,2], b: i32[16]) { t = transpose(x, perm=[0,1,3,2]) y = q_conv2d(t, w, b, "
       "dilation=[2,3], w_zp=7, mult=0.003, rounding=half_away) return y }",
       {{"x", " in -128..127"}, {"w", " in -128..127"}, {"b", " in -4000..4000"}}},
      {"graph @f(x: i8[2,16,12,12], w: i8[130,16,3,3], b: i32[130]) { y = q_conv2d(x, w, b, padding=[1,1], mult=0.01) return y }",
       {{"b", " in -90..90"}}},
  };
}

TEST(CudaConvNumbers, has_kernels) {
  test::expect_kernels(numbers());
  test::expect_kernels(codes());
}

class ConvNumbersOnDevice : public test::OnDevice {};
TEST_F(ConvNumbersOnDevice, integers_and_complex_numbers) { test::expect_same_on_device(numbers()); }
TEST_F(ConvNumbersOnDevice, codes_have_the_reference_bits) { test::expect_same_on_device(codes()); }
// Three numbers in windows of six: most maxima are there several times.
TEST_F(ConvNumbersOnDevice, the_first_of_equal_maxima_has_the_gradient) {
  test::expect_same_on_device(
      {{"graph @f(x: i32[2,9,8], dy: f32[2,8,6]) { t = cast(x, to=f32) y = maxpool2d_backward(t, dy, kernel_size=[2,3], "
        "stride=[1,1]) return y }",
        {{"x", " <3"}}}});
}

}  // namespace
}  // namespace rlx
