// Spectra and windows.
#include <cmath>
#include <numbers>

#include "rlx/lang/operators.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {
namespace {

// x as [.., n] real and imaginary parts of the transformed axis, moved last; the last axis of ONNX holds 1 or 2 parts.
struct Parts {
  Tensor re, im;  // im is empty for a real signal
};

Parts parts_of(const Tensor& x, int axis) {
  std::vector<int> perm;
  for (int i = 0; i + 1 < x.rank(); ++i) {
    if (i != axis) perm.push_back(i);
  }
  perm.push_back(axis);
  const auto part = [&](int64_t k) { return x.narrow(-1, k, 1).squeeze(-1).transpose(perm); };
  return {part(0), x.dim(-1) == Dim(2) ? part(1) : Tensor()};
}

Tensor resized(const Tensor& x, Dim length) {
  const Dim now = x.dim(-1);
  if (now == length) return x;
  if (now.value() > length.value()) return x.narrow(-1, 0, length);
  Dims low(size_t(x.rank()), 0), high(size_t(x.rank()), 0);
  high.back() = length - now;
  return rlx::pad(x, {.low = low, .high = high});
}

// The transform of rows, its parts side by side: the library takes 2 n reals as real parts, then imaginary parts.
Parts transformed(const Parts& p, bool inverse) {
  const Tensor im = p.im.is_empty() ? p.re.zeros_like() : p.im;
  const Tensor y =
      rlx::fft(rlx::concat({p.re, im}, {.axis = -1}),
               {.inverse = inverse, .norm = inverse ? ops::FftNorm::forward : ops::FftNorm::backward});
  const Dim n = p.re.dim(-1);
  return {y.narrow(-1, 0, n), y.narrow(-1, n, n)};
}

Tensor moved_back(const Parts& p, int axis, bool real) {
  const int rank = p.re.rank();
  std::vector<int> perm;
  for (int i = 0; i < rank; ++i) perm.push_back(i < axis ? i : i == axis ? rank - 1 : i - 1);
  const auto back = [&](const Tensor& t) { return t.transpose(perm).unsqueeze(rank); };
  return real ? back(p.re) : rlx::concat({back(p.re), back(p.im)}, {.axis = -1});
}

Items dft(Call& c) {
  Tensor x = c.in(0);
  const bool inverse = c.flag("inverse"), onesided = c.flag("onesided");
  const int last = x.rank() - 1;
  int64_t given = 1;
  if (c.opset() < 20) {
    given = c.integer("axis", 1);
  } else {
    given = c.has(2) ? c.known_int(2, "the axis") : -2;
  }
  const int axis = c.axis(given, x.rank());
  if (axis == last) throw c.wrong("the last axis holds the parts of a number");
  Parts p = parts_of(x, axis);
  if (inverse && onesided) {
    // The upper bins of a real signal are the conjugates of the lower ones.
    const Dim n = c.has(1) ? Dim(c.known_int(1, "the length")) : Dim(2) * (p.re.dim(-1) - Dim(1));
    const Dim half = floordiv(n, 2) + Dim(1);
    p = {resized(p.re, half), resized(p.im.is_empty() ? p.re.zeros_like() : p.im, half)};
    const Dim rest = n - half;
    const auto mirror = [&](const Tensor& t) {
      return rlx::flip(t.narrow(-1, 1, rest), {.axes = {t.rank() - 1}});
    };
    p = {rlx::concat({p.re, mirror(p.re)}, {.axis = -1}), rlx::concat({p.im, -mirror(p.im)}, {.axis = -1})};
    return {moved_back(transformed(p, true), axis, true)};
  }
  if (c.has(1)) {
    const Dim n = c.known_int(1, "the length");
    p.re = resized(p.re, n);
    if (!p.im.is_empty()) p.im = resized(p.im, n);
  }
  Parts y = transformed(p, inverse);
  if (onesided) {
    const Dim half = floordiv(y.re.dim(-1), 2) + Dim(1);
    y = {y.re.narrow(-1, 0, half), y.im.narrow(-1, 0, half)};
  }
  return {moved_back(y, axis, false)};
}

Items stft(Call& c) {
  const Tensor x = c.in(0);  // [batch, length] or [batch, length, 1 or 2]
  const int64_t hop = c.known_int(1, "the step between frames");
  const bool onesided = c.flag("onesided", true);
  int64_t length = 0;
  if (c.has(3))
    length = c.known_int(3, "the length of a frame");
  else if (c.has(2))
    length = c.shape(2).dim(0).value();
  if (hop < 1 || length < 1) throw c.wrong("frames of ", length, " at steps of ", hop);
  const bool complex = x.rank() == 3 && x.dim(2) == Dim(2);
  const auto framed = [&](const Tensor& signal) {
    Tensor f = rlx::windows(signal, {.kernel_size = {length}, .stride = {hop}});
    if (c.has(2)) f = f * c.in(2);
    return f;
  };
  const Dims flat{x.dim(0), x.dim(1)};
  Parts p;
  p.re = framed(x.rank() == 3 ? x.narrow(2, 0, 1).reshape(flat) : x);
  if (complex) p.im = framed(x.narrow(2, 1, 1).reshape(flat));
  Parts y = transformed(p, false);
  if (onesided) {
    const int64_t half = length / 2 + 1;
    y = {y.re.narrow(-1, 0, half), y.im.narrow(-1, 0, half)};
  }
  return {rlx::concat({y.re.unsqueeze(3), y.im.unsqueeze(3)}, {.axis = 3})};
}

// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n), n the size or, for a symmetric window, one less.
Items cosine_window(Call& c, double a0, double a1, double a2) {
  const int64_t size = c.known_int(0, "the size of the window");
  c.require_table({size}, "the window");
  const auto type = c.element("output_datatype", file::ElementType::f32);
  const double n = c.flag("periodic", true) ? double(size) : double(size - 1);
  std::vector<double> values;
  for (int64_t i = 0; i < size; ++i) {
    const double t = 2 * std::numbers::pi * double(i) / n;
    values.push_back(a0 - a1 * std::cos(t) + a2 * std::cos(2 * t));
  }
  return {Literal::reals(Shape(*file::info_of(type).dtype, {size}), values)};
}

Items hann(Call& c) { return cosine_window(c, 0.5, 0.5, 0); }
Items hamming(Call& c) { return cosine_window(c, 25.0 / 46, 21.0 / 46, 0); }
Items blackman(Call& c) { return cosine_window(c, 0.42, 0.5, 0.08); }

// Triangles with corners at equal steps of 2595 log10(1 + f / 700).
Items mel_weights(Call& c) {
  const int64_t bins = c.known_int(0, "the number of bands"),
                length = c.known_int(1, "the length of the transform"),
                rate = c.known_int(2, "the sample rate");
  const double low = c.known_real(3, "the lowest frequency"), high = c.known_real(4, "the highest frequency");
  const auto type = c.element("output_datatype", file::ElementType::f32);
  const int64_t rows = length / 2 + 1;
  if (bins < 1 || length < 1) throw c.wrong(bins, " bands of a transform of ", length);
  c.require_table({rows, bins}, "the matrix");
  const auto mel = [](double f) { return 2595 * std::log10(1 + f / 700); };
  const double first = mel(low), step = (mel(high) - mel(low)) / double(bins + 2);
  std::vector<int64_t> corner;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double f = 700 * (std::pow(10, (double(i) * step + first) / 2595) - 1);
    corner.push_back(int64_t(double(length + 1) * f / double(rate)));
  }
  std::vector<double> w(size_t(rows * bins), 0.0);
  for (int64_t i = 0; i < bins; ++i) {
    const int64_t a = corner[size_t(i)], b = corner[size_t(i) + 1], e = corner[size_t(i) + 2];
    const auto set = [&](int64_t row, double v) {
      if (row >= 0 && row < rows) w[size_t(row * bins + i)] = v;
    };
    if (a == b) set(b, 1);
    for (int64_t j = a; b > a && j <= b; ++j) set(j, double(j - a) / double(b - a));
    for (int64_t j = b; e > b && j < e; ++j) set(j, double(e - j) / double(e - b));
  }
  return {Literal::reals(Shape(*file::info_of(type).dtype, {rows, bins}), w)};
}

}  // namespace

std::span<const Entry> signal_entries() {
  static const std::vector<Entry> kEntries{
      {"BlackmanWindow", 17, blackman},     {"DFT", 17, dft},
      {"HammingWindow", 17, hamming},       {"HannWindow", 17, hann},
      {"MelWeightMatrix", 17, mel_weights}, {"STFT", 17, stft},
  };
  return kEntries;
}

}  // namespace rlx::onnx
