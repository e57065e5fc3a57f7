#include "rlx/ops/fft/spectrum.h"

#include <cmath>

#include "rlx/ir/leaves.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/narrow.h"

namespace rlx::ops {
namespace {

void require_real(std::string_view op, Expr x) {
  if (x.rank() < 1) throw invalid(op, ": x: ", x.shape(), " has no axis; a signal lies on the last axis");
  if (!is_float(x.dtype()) || is_storage_only(x.dtype()))
    throw invalid(op, ": x: ", x.shape(), " has dtype ", x.dtype(), "; it must be f16, bf16, f32 or f64");
}

void require_pair(std::string_view op, Expr re, Expr im) {
  require_real(op, re);
  if (re.shape() != im.shape())
    throw invalid(op, ": real and imaginary parts differ, ", re.shape(), " and ", im.shape());
}

// Zeros at the end of the last axis, up to n.
Expr padded(Expr x, Dim n) {
  const Dim missing = n - x.dim(-1);
  if (missing == Dim(0)) return x;
  return concat({x, full(*x.graph, x.shape().with_dim(-1, missing), 0)}, -1);
}

Expr first(Expr x, Dim n) { return n == x.dim(-1) ? x : narrow(x, -1, 0, n); }

Spectrum transformed(Expr re, Expr im, bool inverse, FftNorm norm) {
  return split_spectrum(fft_norm(concat({re, im}, -1), inverse, norm));
}

Spectrum real_transform(Expr x, FftNorm norm) { return transformed(x, zeros_like(x), false, norm); }

Spectrum half_of(Spectrum s) {
  const Dim bins = floordiv(s.re.dim(-1), 2) + Dim(1);
  return {first(s.re, bins), first(s.im, bins)};
}

// The real signal of `points` samples from its first half of bins X: the others are conjugate mirror images,
// so
//   x[t] = Re sum over k <= points/2 of c[k] X[k] e^(2 pi i k t / points),
// c = 1 for bin 0 and for bin points/2 of an even number of points, 2 for those that have a mirror image.
Expr signal_of_half(std::string_view op, Expr re, Expr im, int64_t points, FftNorm norm) {
  require_pair(op, re, im);
  const int64_t bins = points / 2 + 1;
  if (decide_equal(re.dim(-1), bins) == false) {
    throw invalid(op, ": ", re.dim(-1), " bins given for ", points, " points, re_half: ", re.shape(),
                  "; they have ", bins);
  }
  std::vector<double> weight(static_cast<size_t>(bins), 2.0);
  weight[0] = 1;
  if (points % 2 == 0) weight[size_t(bins - 1)] = 1;
  const Expr c{re.graph, re.graph->constant(Literal::reals(Shape(re.dtype(), {bins}), weight))};
  return transformed(padded(re * c, points), padded(im * c, points), true, norm).re;
}

void require_length(std::string_view op, int64_t n) {
  if (n < 1) throw invalid(op, ": n = ", n, "; a signal has one sample or more");
}

// k / n for k < count, less 1 from bin `negative_from` on.
Expr frequencies(Graph& g, int64_t n, int64_t count, int64_t negative_from) {
  std::vector<double> f(static_cast<size_t>(count));
  for (int64_t k = 0; k < count; ++k) f[size_t(k)] = double(k < negative_from ? k : k - n) / double(n);
  return {&g, g.constant(Literal::of<double>({count}, f))};
}

}  // namespace

Dim next_pow2(Dim n) {
  if (!n.is_static())
    throw invalid("fft: the power of two above ", n, " is not known; bind its symbols first");
  int64_t p = 1;
  while (p < n.value()) p *= 2;
  return p;
}

Expr pad_last_axis_to_pow2(Expr x) {
  if (x.rank() < 1) throw invalid("pad_last_axis_to_pow2: x: ", x.shape(), " has no axis");
  return padded(x, next_pow2(x.dim(-1)));
}

Spectrum split_spectrum(Expr x) {
  require_real("split_spectrum", x);
  const auto half = exact_div(x.dim(-1), 2);
  if (!half)
    throw invalid("split_spectrum: x: ", x.shape(), " has a last axis of ", x.dim(-1), "; it must be even");
  return {narrow(x, -1, 0, *half), narrow(x, -1, *half, *half)};
}

Spectrum fft_real(Expr x, FftNorm norm) {
  require_real("fft_real", x);
  return real_transform(pad_last_axis_to_pow2(x), norm);
}

Spectrum fft_batch_real(Expr x, FftNorm norm) {
  if (x.rank() < 2)
    throw invalid("fft_batch_real: x: ", x.shape(), " has rank ", x.rank(), "; it must be [.., n]");
  return fft_real(x, norm);
}

Spectrum rfft(Expr x, FftNorm norm) {
  require_real("rfft", x);
  return half_of(real_transform(pad_last_axis_to_pow2(x), norm));
}

Spectrum rfft_exact(Expr x, FftNorm norm) {
  require_real("rfft_exact", x);
  return half_of(real_transform(x, norm));
}

Expr irfft(Expr re_half, Expr im_half, int64_t n, FftNorm norm) {
  require_length("irfft", n);
  return first(signal_of_half("irfft", re_half, im_half, next_pow2(n).value(), norm), n);
}

Expr irfft_exact(Expr re_half, Expr im_half, int64_t n, FftNorm norm) {
  require_length("irfft_exact", n);
  return signal_of_half("irfft_exact", re_half, im_half, n, norm);
}

Expr stft(Expr x, int64_t frame_len, int64_t hop, FftNorm norm) {
  require_real("stft", x);
  if (frame_len < 1 || hop < 1)
    throw invalid("stft: frame_len ", frame_len, " and hop ", hop, " must be one or more");
  if (!x.dim(-1).is_static())
    throw invalid("stft: x: ", x.shape(),
                  " has a symbolic number of samples; bind it first, the frames are counted");
  const int64_t length = x.dim(-1).value();
  if (frame_len > length)
    throw invalid("stft: frame_len ", frame_len, " exceeds the last axis of x: ", x.shape());
  Exprs frames;
  for (int64_t at = 0; at + frame_len <= length; at += hop) frames.push_back(narrow(x, -1, at, frame_len));
  const Spectrum s = rfft(stack(frames, 0), norm);
  return concat({s.re, s.im}, -1);
}

Expr fft_conv1d(Expr a, Expr b, int64_t n_fft, FftNorm norm) {
  require_real("fft_conv1d", a);
  require_real("fft_conv1d", b);
  const Dim length = a.dim(-1) + b.dim(-1) - Dim(1);
  if (length.is_static() && length.value() > n_fft) {
    throw invalid("fft_conv1d: a: ", a.shape(), " and b: ", b.shape(), " have a convolution of ", length,
                  " samples, n_fft is ", n_fft, "; it must not be smaller");
  }
  const Spectrum p = real_transform(padded(a, n_fft), norm), q = real_transform(padded(b, n_fft), norm);
  const Expr y = transformed(p.re * q.re - p.im * q.im, p.re * q.im + p.im * q.re, true, norm).re;
  // Two transforms and an inverse carry s^2 s' with s s' = 1 only for `forward`; ortho lacks sqrt(N), and
  // backward has N too many.
  const double n = double(n_fft);
  const double correction = norm == FftNorm::backward ? 1 / n : norm == FftNorm::ortho ? std::sqrt(n) : 1;
  return first(correction == 1 ? y : y * correction, length);
}

Expr fftfreq_tensor(Graph& g, int64_t n) {
  require_length("fftfreq_tensor", n);
  return frequencies(g, n, n, (n + 1) / 2);
}

Expr rfftfreq_tensor(Graph& g, int64_t n) {
  require_length("rfftfreq_tensor", n);
  return frequencies(g, n, n / 2 + 1, n);
}

Spectrum ifft_spectrum(Expr re, Expr im, FftNorm norm) {
  require_pair("ifft_spectrum", re, im);
  return transformed(re, im, true, norm);
}

Expr psd(Expr re, Expr im) {
  require_pair("psd", re, im);
  return (square(re) + square(im)) / count_like(re, {re.rank() - 1});
}

Expr psd_real(Expr x, FftNorm norm) {
  const Spectrum s = rfft(x, norm);
  return psd(s.re, s.im);
}

}  // namespace rlx::ops
