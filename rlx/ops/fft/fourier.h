// The discrete Fourier transform of plain numbers, in n log n steps for every length.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>
#include <vector>

namespace rlx::ops {

/// y[k] = sum over j of x[j] e^(sign 2 pi i j k / n). Made once, run for many signals.
class Fourier {
 public:
  using Complex = std::complex<double>;

  Fourier(size_t n, double sign);
  void run(const Complex* x, Complex* y) const;

 private:
  void run_mixed(const Complex* x, size_t stride, size_t n, Complex* y, size_t step) const;
  void run_chirp(const Complex* x, Complex* y) const;

  size_t n_;
  std::vector<Complex> roots_;  // e^(sign 2 pi i k / n); empty where the chirp is used
  // A length with a large prime factor becomes a convolution with a chirp, over a power of two.
  std::vector<Complex> chirp_, kernel_;  // e^(sign pi i k^2 / n), and the spectrum of its conjugate
  std::unique_ptr<Fourier> forward_, back_;
};

}  // namespace rlx::ops
