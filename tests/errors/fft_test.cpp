// Calls of the Fourier operators that must be refused, with their messages.
#include <gtest/gtest.h>

#include "rlx/ops/fft/spectrum.h"
#include "tests/support/errors.h"
#include "tests/support/evaluate.h"

namespace rlx::ops {
namespace {

using test::message_of;
using test::typed;

TEST(FftRefusal, says_what_a_transform_takes) {
  Graph g("g");
  EXPECT_EQ(
      message_of([&] { fft(typed(g, "f32[2,5]")); }),
      "fft: x: f32[2,5] is real and its last axis has odd size 5; it must hold the real parts, then as many "
      "imaginary parts");
  EXPECT_EQ(message_of([&] { fft(typed(g, "i32[4]")); }),
            "fft: x: i32[4] has dtype i32; it must be f16, bf16, f32 or f64");
  EXPECT_EQ(message_of([&] { fft(typed(g, "c64[]")); }),
            "fft: x: c64[] has rank 0; it must have rank 1 or more");
  EXPECT_EQ(
      message_of([&] { fftn(typed(g, "f32[4,4]"), {0, 1}, false); }),
      "fftn: x: f32[4,4] is real, which has room for one transformed axis, and 2 are listed; make it c64");
  EXPECT_EQ(message_of([&] { fftn(typed(g, "c64[4,4]"), {1, -1}, false); }),
            "fftn: axis 1 is listed twice for x: c64[4,4]");
  EXPECT_EQ(message_of([&] { fftn(typed(g, "c64[4]"), {2}, false); }),
            "fftn: axis 2 is out of range for x: c64[4]");
}

TEST(FftRefusal, helpers_name_themselves) {
  Graph g("g");
  const Expr x = typed(g, "f32[5]"), y = typed(g, "f32[3]"), z = typed(g, "c64[4]");
  EXPECT_EQ(message_of([&] { split_spectrum(x); }),
            "split_spectrum: x: f32[5] has a last axis of 5; it must be even");
  EXPECT_EQ(message_of([&] { rfft(z); }), "rfft: x: c64[4] has dtype c64; it must be f16, bf16, f32 or f64");
  EXPECT_EQ(message_of([&] { irfft(x, y, 4); }), "irfft: real and imaginary parts differ, f32[5] and f32[3]");
  EXPECT_EQ(message_of([&] { irfft(x, x, 4); }),
            "irfft: 5 bins given for 4 points, re_half: f32[5]; they have 3");
  EXPECT_EQ(message_of([&] { irfft(x, x, 0); }), "irfft: n = 0; a signal has one sample or more");
  EXPECT_EQ(message_of([&] { stft(x, 8, 2); }), "stft: frame_len 8 exceeds the last axis of x: f32[5]");
  EXPECT_EQ(message_of([&] { stft(x, 2, 0); }), "stft: frame_len 2 and hop 0 must be one or more");
  EXPECT_EQ(message_of([&] { fft_conv1d(x, y, 4); }),
            "fft_conv1d: a: f32[5] and b: f32[3] have a convolution of 7 samples, n_fft is 4; it must not be "
            "smaller");
  EXPECT_EQ(message_of([&] { fft_batch_real(x); }),
            "fft_batch_real: x: f32[5] has rank 1; it must be [.., n]");
  EXPECT_EQ(message_of([&] { pad_last_axis_to_pow2(typed(g, "f32[seq]")); }),
            "fft: the power of two above seq is not known; bind its symbols first");
  EXPECT_EQ(message_of([&] { fftfreq_tensor(g, 0); }),
            "fftfreq_tensor: n = 0; a signal has one sample or more");
}

}  // namespace
}  // namespace rlx::ops
