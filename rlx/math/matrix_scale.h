// Bringing a matrix to the middle of the range of double before squares of its elements are formed.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <optional>
#include <vector>

namespace rlx::detail {

inline double times_power(double x, int e) { return std::ldexp(x, e); }
inline std::complex<double> times_power(std::complex<double> x, int e) {
  return {std::ldexp(x.real(), e), std::ldexp(x.imag(), e)};
}

/// x / |x|, and 1 for 0.
inline double phase_of(double x) { return x < 0 ? -1 : 1; }
inline std::complex<double> phase_of(std::complex<double> x) {
  const double modulus = std::abs(x);
  return modulus > 0 ? x / modulus : 1;
}

template <class T>
struct Scaled {
  std::vector<T> values;  // a 2^-exponent, the largest part between 1 and 2
  int exponent = 0;
};

/// Nothing where an element is not finite.
template <class T>
std::optional<Scaled<T>> scaled_copy(const T* a, int64_t count) {
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    for (const double part : {std::fabs(std::real(a[i])), std::fabs(std::imag(a[i]))}) {
      if (!std::isfinite(part)) return std::nullopt;
      largest = std::max(largest, part);
    }
  }
  Scaled<T> out{std::vector<T>(a, a + count), largest > 0 ? std::ilogb(largest) : 0};
  for (T& x : out.values) x = times_power(x, -out.exponent);
  return out;
}

}  // namespace rlx::detail
