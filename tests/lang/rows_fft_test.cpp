// Rows of the public surface: Fourier transforms. The signal 1, 2, 3, 4 has the spectrum 10, -2+2i, -2,
// -2-2i.
#include <cmath>

#include "tests/lang/rows.h"

namespace rlx {
namespace {

using namespace test;
using ops::FftNorm;

const Literal kSignal = c64({4}, {1, 2, 3, 4});
const Literal kSpectrum = c64({4}, {10, {-2, 2}, -2, {-2, -2}});
const Literal kReal = f32({4}, {1, 2, 3, 4});

TEST(GraphRow, fft) {
  expect_row({kSignal}, [](Graph& g, const Values& v) { return g.fft(v[0], false); }, kSpectrum);
  // The default norm scales neither way.
  expect_row(
      {kSpectrum}, [](Graph& g, const Values& v) { return g.fft(v[0], true); }, c64({4}, {4, 8, 12, 16}));
}
TEST(GraphRow, fft_norm) {
  expect_row(
      {kSpectrum}, [](Graph& g, const Values& v) { return g.fft_norm(v[0], true, FftNorm::forward); },
      kSignal);
  expect_row(
      {kSignal}, [](Graph& g, const Values& v) { return g.fft_norm(v[0], false, FftNorm::ortho); },
      c64({4}, {5, {-1, 1}, -1, {-1, -1}}));
}
TEST(GraphRow, fft_axis) {
  expect_row(
      {c64({2, 2}, {1, 2, 3, 4})}, [](Graph& g, const Values& v) { return g.fft_axis(v[0], 0, false); },
      c64({2, 2}, {4, 6, -2, -2}));
}
TEST(GraphRow, fftn) {
  expect_row(
      {c64({2, 2}, {1, 2, 3, 4})}, [](Graph& g, const Values& v) { return g.fftn(v[0], {0, 1}, false); },
      c64({2, 2}, {10, -2, -4, 0}));
}
TEST(GraphRow, ifftn) {
  expect_row(
      {c64({2, 2}, {10, -2, -4, 0})}, [](Graph& g, const Values& v) { return g.ifftn(v[0], {0, 1}); },
      c64({2, 2}, {4, 8, 12, 16}));
}
TEST(GraphRow, pad_last_axis_to_pow2) {
  expect_row(
      {f32({3}, {1, 2, 3})}, [](Graph& g, const Values& v) { return g.pad_last_axis_to_pow2(v[0]); },
      f32({4}, {1, 2, 3, 0}));
}
TEST(GraphRow, split_spectrum) {
  const Literals out = run({f32({8}, {10, -2, -2, -2, 0, 2, 0, -2})},
                           [](Graph& g, const Values& v) { return g.split_spectrum(v[0]); });
  expect_close(out[0], f32({4}, {10, -2, -2, -2}), 1e-6);
  expect_close(out[1], f32({4}, {0, 2, 0, -2}), 1e-6);
}
TEST(GraphRow, fft_real) {
  const Literals out = run({kReal}, [](Graph& g, const Values& v) { return g.fft_real(v[0]); });
  expect_close(out[0], f32({4}, {10, -2, -2, -2}), 1e-6);
  expect_close(out[1], f32({4}, {0, 2, 0, -2}), 1e-6);
}
TEST(GraphRow, fft_batch_real) {
  const Literals out =
      run({kReal.reshaped({1, 4})}, [](Graph& g, const Values& v) { return g.fft_batch_real(v[0]); });
  expect_close(out[0], f32({1, 4}, {10, -2, -2, -2}), 1e-6);
  expect_close(out[1], f32({1, 4}, {0, 2, 0, -2}), 1e-6);
}
TEST(GraphRow, rfft) {
  const Literals out = run({f32({3}, {1, 2, 3})}, [](Graph& g, const Values& v) { return g.rfft(v[0]); });
  expect_close(out[0], f32({3}, {6, -2, 2}), 1e-6);  // of 1, 2, 3, 0
  expect_close(out[1], f32({3}, {0, -2, 0}), 1e-6);
}
TEST(GraphRow, irfft) {
  expect_row(
      {f32({3}, {10, -2, -2}), f32({3}, {0, 2, 0})},
      [](Graph& g, const Values& v) { return g.irfft(v[0], v[1], 4, FftNorm::forward); }, kReal);
}
TEST(GraphRow, ifft_spectrum) {
  const Literals out =
      run({f32({4}, {10, -2, -2, -2}), f32({4}, {0, 2, 0, -2})},
          [](Graph& g, const Values& v) { return g.ifft_spectrum(v[0], v[1], FftNorm::forward); });
  expect_close(out[0], kReal, 1e-6);
  expect_close(out[1], f32({4}, {0, 0, 0, 0}), 1e-6);
}
TEST(GraphRow, fft_conv1d) {
  // (1 + 2x)(3 + 4x) = 3 + 10x + 8x^2
  const Literal y = run({f32({2}, {1, 2}), f32({2}, {3, 4})},
                        [](Graph& g, const Values& v) { return g.fft_conv1d(v[0], v[1], 4); })[0];
  ASSERT_GE(y.elements(), 3);
  EXPECT_NEAR(y.real_at(0), 3, 1e-5);
  EXPECT_NEAR(y.real_at(1), 10, 1e-5);
  EXPECT_NEAR(y.real_at(2), 8, 1e-5);
}
TEST(GraphRow, fftfreq_tensor) {
  expect_row(
      {}, [](Graph& g, const Values&) { return g.fftfreq_tensor(4); }, f64({4}, {0, 0.25, -0.5, -0.25}));
}
TEST(GraphRow, rfftfreq_tensor) {
  expect_row({}, [](Graph& g, const Values&) { return g.rfftfreq_tensor(4); }, f64({3}, {0, 0.25, 0.5}));
}
TEST(GraphRow, psd) {
  // |z|^2 over the length of the last axis.
  expect_row(
      {f32({2}, {3, 0}), f32({2}, {4, 2})}, [](Graph& g, const Values& v) { return g.psd(v[0], v[1]); },
      f32({2}, {12.5, 2}));
}
TEST(GraphRow, psd_real) {
  const Literal y = run({kReal}, [](Graph& g, const Values& v) { return g.psd_real(v[0]); })[0];
  EXPECT_NEAR(y.real_at(0) / y.real_at(1), 100.0 / 8, 1e-4);  // |10|^2 : |-2+2i|^2
}
TEST(GraphRow, stft) {
  // Frames 1,2 and 3,4: sums 3 and 7, differences -1 and -1.
  const Literal y = run({kReal}, [](Graph& g, const Values& v) { return g.stft(v[0], 2, 2); })[0];
  // Per frame the real parts of both bins, then the imaginary ones.
  expect_close(y, f32({2, 4}, {3, -1, 0, 0, 7, -1, 0, 0}), 1e-6);
}

}  // namespace
}  // namespace rlx
