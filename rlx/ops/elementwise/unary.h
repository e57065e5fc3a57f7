// Functions of one element. Each operator is its formula and its derivative; types, evaluation, transforms
// and samples are common.
#pragma once

#include <complex>

#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

namespace detail {

enum class UnaryDomain { real, positive };  // where samples are taken from

Shapes infer_unary(Infer& c, bool integers, bool complexes);
std::vector<OpSample<NoAttrs>> unary_samples(UnaryDomain, bool integers, bool complexes);
Expr scale_by(Expr factor, Expr dy);       // dy * factor
Expr scale_by_conj(Expr factor, Expr dy);  // dy * conj(factor), the Wirtinger rule

template <class F>
Literals map_real(const Eval& c, F f) {
  std::vector<double> v = c.in(0).to_reals();
  for (double& x : v) x = f(x);
  return {Literal::reals(c.out(), v)};
}

}  // namespace detail

/// Self provides name, summary, doc, eval(double) and, unless the derivative is zero, derivative(x, y).
/// Optional: eval(std::complex<double>), eval(int64_t), `domain`.
template <class Self>
struct Unary {
  static constexpr std::string_view operands = "x";
  static constexpr bool has_derivative = requires(Expr t) { Self::derivative(t, t); };
  static constexpr Traits traits{.elementwise = true, .zero_gradient = !has_derivative};
  using Attrs = NoAttrs;

  // Evaluated late, when Self is complete.
  static constexpr bool complexes() {
    return requires(std::complex<double> z) {
      { Self::eval(z) } -> std::same_as<std::complex<double>>;
    };
  }
  static constexpr bool integers() {
    return requires(int64_t i) {
      { Self::eval(i) } -> std::same_as<int64_t>;
    };
  }

  static Shapes infer(Infer& c, Attrs&) { return detail::infer_unary(c, integers(), complexes()); }

  static Literals reference(const Eval& c, const Attrs&) {
    if constexpr (complexes()) {
      if (is_complex(c.out().dtype())) {
        auto v = c.in(0).to_complexes();
        for (auto& z : v) z = Self::eval(z);
        return {Literal::complexes(c.out(), v)};
      }
    }
    if constexpr (integers()) {
      if (is_integer(c.out().dtype())) {
        auto v = c.in(0).to_integers();
        for (auto& i : v) i = Self::eval(i);
        return {Literal::integers(c.out(), v)};
      }
    }
    return detail::map_real(c, [](double x) { return Self::eval(x); });
  }

  static Exprs vjp(const Vjp& c, const Attrs&) {
    if constexpr (requires(Expr t) { Self::derivative(t, t); }) {
      return {detail::scale_by_conj(Self::derivative(c.in(0), c.out()), c.dy())};
    } else {
      return {Expr{}};
    }
  }

  static Exprs jvp(const Jvp& c, const Attrs&) {
    if constexpr (requires(Expr t) { Self::derivative(t, t); }) {
      return {detail::scale_by(Self::derivative(c.in(0), c.out()), c.dx(0))};
    } else {
      return {Expr{}};
    }
  }

  static std::vector<OpSample<Attrs>> samples() {
    auto domain = detail::UnaryDomain::real;
    if constexpr (requires { Self::domain; }) domain = Self::domain;
    return detail::unary_samples(domain, integers(), complexes());
  }
};

}  // namespace rlx::ops
