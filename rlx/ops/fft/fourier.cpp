#include "rlx/ops/fft/fourier.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace rlx::ops {
namespace {

// Up to here a prime factor is summed plainly: n p steps are fewer than three transforms of four times the
// length.
constexpr size_t kLargePrime = 61;

size_t smallest_factor(size_t n) {
  for (size_t p = 2; p * p <= n; ++p) {
    if (n % p == 0) return p;
  }
  return n;
}

size_t largest_factor(size_t n) {
  size_t p = 1;
  for (; n > 1; n /= p) p = smallest_factor(n);
  return p;
}

// e^(sign pi i k / n), from the angle itself so that errors do not add up.
Fourier::Complex half_turn(uint64_t k, size_t n, double sign) {
  const double angle = sign * std::numbers::pi * double(k) / double(n);
  return {std::cos(angle), std::sin(angle)};
}

}  // namespace

Fourier::Fourier(size_t n, double sign) : n_(n) {
  if (largest_factor(n) <= kLargePrime) {
    roots_.resize(n);
    for (size_t k = 0; k < n; ++k) roots_[k] = half_turn(2 * k, n, sign);
    return;
  }
  chirp_.resize(n);
  for (uint64_t k = 0, square = 0; k < n; ++k) {  // k^2 modulo the period 2 n
    chirp_[k] = half_turn(square, n, sign);
    square = (square + 2 * k + 1) % (2 * uint64_t(n));
  }
  size_t points = 1;
  while (points < 2 * n - 1) points *= 2;
  forward_ = std::make_unique<Fourier>(points, -1);
  back_ = std::make_unique<Fourier>(points, 1);
  std::vector<Complex> conjugate(points, 0.0);
  for (size_t k = 0; k < n; ++k) conjugate[k] = conjugate[(points - k) % points] = std::conj(chirp_[k]);
  kernel_.resize(points);
  forward_->run(conjugate.data(), kernel_.data());
  for (Complex& z : kernel_) z /= double(points);
}

void Fourier::run(const Complex* x, Complex* y) const {
  if (n_ == 0) return;
  if (chirp_.empty()) return run_mixed(x, 1, n_, y, 1);
  run_chirp(x, y);
}

// Splits off the smallest prime factor p of n: p interleaved transforms of n / p points, combined by
//   y[k] = sum over r < p of w^(r k) Y_r[k mod n/p].
// A prime n is the plain sum. The roots of the whole length are `step` apart for this part of it.
void Fourier::run_mixed(const Complex* x, size_t stride, size_t n, Complex* y, size_t step) const {
  if (n == 1) {
    y[0] = x[0];
    return;
  }
  const size_t p = smallest_factor(n), part = n / p;
  std::vector<Complex> inner(n);
  for (size_t r = 0; r < p; ++r)
    run_mixed(x + r * stride, stride * p, part, inner.data() + r * part, step * p);
  for (size_t k = 0; k < n; ++k) {
    Complex sum = 0;
    for (size_t r = 0; r < p; ++r) sum += roots_[r * k % n * step] * inner[r * part + k % part];
    y[k] = sum;
  }
}

// With j k = (j^2 + k^2 - (k - j)^2) / 2 and c the chirp: y[k] = c[k] sum over j of (x[j] c[j]) conj c[k - j]
// (Bluestein).
void Fourier::run_chirp(const Complex* x, Complex* y) const {
  std::vector<Complex> signal(kernel_.size(), 0.0), spectrum(kernel_.size());
  for (size_t j = 0; j < n_; ++j) signal[j] = x[j] * chirp_[j];
  forward_->run(signal.data(), spectrum.data());
  for (size_t k = 0; k < spectrum.size(); ++k) spectrum[k] *= kernel_[k];
  back_->run(spectrum.data(), signal.data());
  for (size_t k = 0; k < n_; ++k) y[k] = chirp_[k] * signal[k];
}

}  // namespace rlx::ops
