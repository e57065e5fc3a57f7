// The Fourier transform and its helpers against plain sums and known spectra.
#include <gtest/gtest.h>

#include <numbers>

#include "rlx/ir/sample.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/fft/spectrum.h"
#include "tests/support/compare.h"
#include "tests/support/evaluate.h"

namespace rlx::ops {
namespace {

using test::evaluate;
using test::expect_close;
using Complex = std::complex<double>;

constexpr FftNorm kNorms[] = {FftNorm::backward, FftNorm::forward, FftNorm::ortho};

Literal f64(Dims dims, std::vector<double> v) { return Literal::of<double>(std::move(dims), v); }

// The defining sum.
std::vector<Complex> plain_sum(const std::vector<Complex>& x, double sign, double scale) {
  const size_t n = x.size();
  std::vector<Complex> y(n);
  for (size_t k = 0; k < n; ++k) {
    for (size_t t = 0; t < n; ++t)
      y[k] += scale * x[t] * std::polar(1.0, sign * 2 * std::numbers::pi * double(k * t % n) / double(n));
  }
  return y;
}

double scale_of(double n, bool inverse, FftNorm norm) {
  return norm == FftNorm::ortho ? 1 / std::sqrt(n) : norm == FftNorm::forward && inverse ? 1 / n : 1;
}

TEST(Fft, is_the_defining_sum_for_every_length_direction_and_norm) {
  for (const int64_t n : {1, 2, 3, 4, 5, 12, 13, 30, 64, 67, 134, 257, 360, 1009}) {
    const Literal x = ir::sample_literal(cat("f64[", 2 * n, "]"), uint64_t(n));
    std::vector<Complex> z;
    for (int64_t i = 0; i < n; ++i) z.emplace_back(x.real_at(i), x.real_at(n + i));
    for (const bool inverse : {false, true}) {
      for (const FftNorm norm : kNorms) {
        const auto want = plain_sum(z, inverse ? 1 : -1, scale_of(double(n), inverse, norm));
        std::vector<double> parts;
        for (const Complex& w : want) parts.push_back(w.real());
        for (const Complex& w : want) parts.push_back(w.imag());
        SCOPED_TRACE(cat(n, " points"));
        expect_close(evaluate({x}, [&](const Exprs& in) { return fft_norm(in[0], inverse, norm); })[0],
                     f64({2 * n}, parts), 1e-11);
      }
    }
  }
}

// A prime length in n log n steps: as a plain sum these would be 1e10.
TEST(Fft, of_a_long_prime_length_is_undone_by_its_inverse) {
  const int64_t n = 100003;
  const Literal x = ir::sample_literal(cat("f64[", 2 * n, "]"), 3);
  const Literal y = evaluate({x}, [](const Exprs& in) {
    return fft_norm(fft_norm(in[0], false, FftNorm::ortho), true, FftNorm::ortho);
  })[0];
  expect_close(y, x, 1e-12);
}

TEST(Fft, of_interleaved_complex_rows) {
  const Shape s(DType::c64, {2, 4});
  const Literal x = Literal::complexes(s, std::vector<Complex>{1, 0, 0, 0, 1, {0, 1}, -1, {0, -1}});
  expect_close(evaluate({x}, [](const Exprs& in) { return fft(in[0]); })[0],
               Literal::complexes(s, std::vector<Complex>{1, 1, 1, 1, 0, 4, 0, 0}), 1e-7);
}

TEST(Fft, norm_forward_makes_the_inverse_undo_it_and_backward_gives_n_times_x) {
  const Literal x = ir::sample_literal("f64[12]", 1);
  const auto there_and_back = [&](FftNorm norm) {
    return evaluate({x},
                    [=](const Exprs& in) { return fft_norm(fft_norm(in[0], false, norm), true, norm); })[0];
  };
  expect_close(there_and_back(FftNorm::forward), x, 1e-14);
  expect_close(there_and_back(FftNorm::ortho), x, 1e-14);
  expect_close(there_and_back(FftNorm::backward),
               evaluate({x}, [](const Exprs& in) { return in[0] * 6.0; })[0], 1e-13);
}

TEST(Fft, along_another_axis_and_over_several) {
  const Literal x = ir::sample_literal("c64[3,4]", 2);
  const Literals y = evaluate({x}, [](const Exprs& in) {
    return Exprs{fftn(in[0], {0, -1}, false), fft_axis(fft(in[0]), 0, false),
                 ifftn(fftn(in[0], {1, 0}, false, FftNorm::forward), {0, 1}, FftNorm::forward)};
  });
  expect_close(y[0], y[1], 1e-6);
  expect_close(y[2], x, 1e-6);
}

TEST(Fft, helper_pads_to_the_next_power_of_two) {
  const Literals y = evaluate({f64({2, 5}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10})},
                              [](const Exprs& in) { return pad_last_axis_to_pow2(in[0]); });
  expect_close(y[0], f64({2, 8}, {1, 2, 3, 4, 5, 0, 0, 0, 6, 7, 8, 9, 10, 0, 0, 0}), 0);
}

TEST(Rfft, pads_to_a_power_of_two_and_has_an_exact_form_beside_it) {
  const Literal x = f64({3}, {1, 2, 4});
  const Literals y = evaluate({x}, [](const Exprs& in) {
    const Spectrum padded = rfft(in[0]), exact = rfft_exact(in[0]), whole = fft_real(in[0]);
    return Exprs{padded.re, padded.im, exact.re, exact.im, whole.re};
  });
  expect_close(y[0], f64({3}, {7, -3, 3}), 1e-15);  // of 1, 2, 4, 0
  expect_close(y[1], f64({3}, {0, -2, 0}), 1e-15);
  expect_close(y[2], f64({2}, {7, -2}), 1e-15);  // of 1, 2, 4
  expect_close(y[3], f64({2}, {0, std::sqrt(3.0)}), 1e-15);
  expect_close(y[4], f64({4}, {7, -3, 3, -3}), 1e-15);
}

TEST(Irfft, undoes_rfft_row_by_row) {
  const Literal x = ir::sample_literal("f64[3,2,6]", 3);
  const Literals y = evaluate({x}, [](const Exprs& in) {
    Exprs out;
    for (const FftNorm norm : {FftNorm::forward, FftNorm::ortho}) {
      const Spectrum p = rfft(in[0], norm), e = rfft_exact(in[0], norm);
      out.push_back(irfft(p.re, p.im, 6, norm));
      out.push_back(irfft_exact(e.re, e.im, 6, norm));
    }
    return out;
  });
  for (const Literal& back : y) expect_close(back, x, 1e-14);
}

TEST(Irfft, of_an_odd_number_of_samples) {
  const Literal x = ir::sample_literal("f64[5]", 3);
  const Literals y = evaluate({x}, [](const Exprs& in) {
    const Spectrum e = rfft_exact(in[0]);
    return irfft_exact(e.re, e.im, 5, FftNorm::forward);
  });
  expect_close(y[0], x, 1e-14);
}

TEST(Stft, is_the_rfft_of_each_frame) {
  const Literal x = f64({7}, {1, 2, 3, 4, 5, 6, 7});
  const Literals y = evaluate({x}, [](const Exprs& in) { return stft(in[0], 4, 2); });
  // Frames 1234 and 3456: [sum, 1-3 = -2, alternating sum -2 | 0, 2, 0].
  expect_close(y[0], f64({2, 6}, {10, -2, -2, 0, 2, 0, 18, -2, -2, 0, 2, 0}), 1e-14);
}

TEST(FftConv1d, has_the_right_scale_for_every_norm) {
  const Literal a = f64({3}, {1, 2, 3}), b = f64({2}, {4, -1});
  for (const FftNorm norm : kNorms) {
    for (const int64_t points : {4, 8, 9}) {
      SCOPED_TRACE(cat(points, " points"));
      const Literals y =
          evaluate({a, b}, [&](const Exprs& in) { return fft_conv1d(in[0], in[1], points, norm); });
      expect_close(y[0], f64({4}, {4, 7, 10, -3}), 1e-13);
    }
  }
}

TEST(Fftfreq, has_the_signs_of_numpy) {
  Graph g("g");
  g.set_outputs({fftfreq_tensor(g, 4), fftfreq_tensor(g, 5), rfftfreq_tensor(g, 4), rfftfreq_tensor(g, 2),
                 fftfreq_tensor(g, 1)});
  const Literals y = interpret(g, Literals{});
  expect_close(y[0], f64({4}, {0, 0.25, -0.5, -0.25}), 0);
  expect_close(y[1], f64({5}, {0, 0.2, 0.4, -0.4, -0.2}), 1e-16);
  expect_close(y[2], f64({3}, {0, 0.25, 0.5}), 0);
  expect_close(y[3], f64({2}, {0, 0.5}), 0);
  expect_close(y[4], f64({1}, {0}), 0);
}

TEST(Psd, divides_by_the_length_of_its_last_axis) {
  const Literals y = evaluate({f64({2, 3}, {1, 2, 3, 0, 0, 3}), f64({2, 3}, {0, 1, 4, 6, 0, 0})},
                              [](const Exprs& in) { return psd(in[0], in[1]); });
  expect_close(y[0], f64({2, 3}, {1. / 3, 5. / 3, 25. / 3, 12, 0, 3}), 1e-15);
  const Literals z = evaluate({f64({4}, {1, 0, 0, 0})}, [](const Exprs& in) { return psd_real(in[0]); });
  expect_close(z[0], f64({3}, {1. / 3, 1. / 3, 1. / 3}), 1e-15);
}

TEST(IfftSpectrum, transforms_a_whole_spectrum_back) {
  const Literal x = ir::sample_literal("f64[2,8]", 4);
  const Literals y = evaluate({x}, [](const Exprs& in) {
    const Spectrum s = fft_batch_real(in[0], FftNorm::forward);
    const Spectrum back = ifft_spectrum(s.re, s.im, FftNorm::forward);
    return Exprs{back.re, back.im};
  });
  expect_close(y[0], x, 1e-14);
  expect_close(y[1], Literal::zeros(x.shape()), 1e-14);
}

TEST(Fft, has_a_length_that_may_be_symbolic) {
  Graph g("g");
  const Expr x{&g, g.input("x", parse_shape("f64[batch,2*seq]"))};
  const Expr y = fft_norm(x, true, FftNorm::ortho);
  EXPECT_EQ(cat(y.shape()), "f64[batch,2*seq]");
}

}  // namespace
}  // namespace rlx::ops
