#include "rlx/backend/cpu/kernels/complex.h"

#include <cmath>
#include <complex>

#include "rlx/backend/cpu/kernels/grain.h"
#include "rlx/base/error.h"

namespace rlx::cpu {
namespace {

using Complex = std::complex<float>;

Complex divided(Complex a, Complex b) { return Complex(std::complex<double>(a) / std::complex<double>(b)); }
// Without the checks for infinities that the standard product makes.
Complex times(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// op on lines of the last axis; the others are walked.
template <class From, class Op>
void walk(Team team, const ComplexMap& p, Op op) {
  const int last = p.box.rank - 1;
  const int64_t n = last < 0 ? 1 : p.box.size[last];
  const int64_t step_a = last < 0 ? 0 : p.box.strides[0][last],
                step_b = last < 0 ? 0 : p.box.strides[1][last];
  int64_t lines = 1;
  for (int i = 0; i < last; ++i) lines *= p.box.size[i];
  const int64_t grain = rows_worth(kGrain, n);
  team.parallel_for(lines, grain, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      int64_t rest = line, at_a = 0, at_b = 0;
      for (int i = last - 1; i >= 0; --i) {
        at_a += rest % p.box.size[i] * p.box.strides[0][i];
        at_b += rest % p.box.size[i] * p.box.strides[1][i];
        rest /= p.box.size[i];
      }
      const From *a = static_cast<const From*>(p.a) + at_a, *b = static_cast<const From*>(p.b) + at_b;
      Complex* y = static_cast<Complex*>(p.y) + line * n;
      for (int64_t i = 0; i < n; ++i) y[i] = op(a[i * step_a], b[i * step_b]);
    }
  });
}

using Wide = std::complex<double>;
bool finite(Complex z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); }
bool nan(Complex z) { return std::isnan(z.real()) || std::isnan(z.imag()); }

template <class To, class Op>
void map(Team team, const void* x, void* y, int64_t n, Op op) {
  team.parallel_for(n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) static_cast<To*>(y)[i] = op(static_cast<const Complex*>(x)[i]);
  });
}

}  // namespace

void complex_binary(Team team, const ComplexMap& p) {
  switch (p.op) {
    case ComplexBinary::add:
      return walk<Complex>(team, p, [](Complex a, Complex b) { return a + b; });
    case ComplexBinary::sub:
      return walk<Complex>(team, p, [](Complex a, Complex b) { return a - b; });
    case ComplexBinary::mul:
      return walk<Complex>(team, p, times);
    case ComplexBinary::div:
      return walk<Complex>(team, p, divided);
    case ComplexBinary::make:
      return walk<float>(team, p, [](float a, float b) { return Complex(a, b); });
  }
}

void complex_unary(Team team, ComplexUnary op, const void* x, void* y, int64_t n) {
  switch (op) {
    case ComplexUnary::conjugate:
      return map<Complex>(team, x, y, n, [](Complex z) { return std::conj(z); });
    case ComplexUnary::negative:
      return map<Complex>(team, x, y, n, [](Complex z) { return -z; });
    case ComplexUnary::exp:
      return map<Complex>(team, x, y, n, [](Complex z) { return Complex(std::exp(Wide(z))); });
    case ComplexUnary::log:
      return map<Complex>(team, x, y, n, [](Complex z) { return Complex(std::log(Wide(z))); });
    case ComplexUnary::sqrt:
      return map<Complex>(team, x, y, n, [](Complex z) { return Complex(std::sqrt(Wide(z))); });
    case ComplexUnary::is_finite:
      return map<uint8_t>(team, x, y, n, [](Complex z) { return uint8_t(finite(z)); });
    case ComplexUnary::is_nan:
      return map<uint8_t>(team, x, y, n, [](Complex z) { return uint8_t(nan(z)); });
    case ComplexUnary::norm_squared:
      return map<float>(team, x, y, n, [](Complex z) { return std::norm(z); });
    case ComplexUnary::real:
      return map<float>(team, x, y, n, [](Complex z) { return z.real(); });
    case ComplexUnary::imaginary:
      return map<float>(team, x, y, n, [](Complex z) { return z.imag(); });
  }
}

}  // namespace rlx::cpu
