// Functions of two elements, with NumPy broadcasting. Both operands have one dtype; nothing is promoted.
#pragma once

#include <array>
#include <complex>

#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

enum class BinaryOp { add, sub, mul, div, max, min, pow };
constexpr std::array<std::string_view, 7> choice_names(BinaryOp) {
  return {"add", "sub", "mul", "div", "max", "min", "pow"};
}

namespace detail {

struct BinaryDtypes {
  bool integers, complexes, floats = true, booleans = false;
};

Shapes infer_binary(Infer& c, BinaryDtypes);
std::vector<OpSample<NoAttrs>> binary_samples(BinaryDtypes, bool positive);
/// Gradients of both operands from one per result element, and the tangent spread over the result.
Exprs finish_vjp(const Vjp& c, Expr da, Expr db);
Exprs finish_jvp(const Jvp& c, Expr dy);

template <class T, class F>
std::vector<T> zip(const std::vector<T>& a, const std::vector<T>& b, const Eval& c, F f) {
  const auto at_a = broadcast_positions(c.in(0).shape().dims(), c.out().dims());
  const auto at_b = broadcast_positions(c.in(1).shape().dims(), c.out().dims());
  std::vector<T> y(at_a.size());
  for (size_t i = 0; i < y.size(); ++i) y[i] = f(a[size_t(at_a[i])], b[size_t(at_b[i])]);
  return y;
}

}  // namespace detail

/// Self provides name, summary, doc, eval for double and where it makes sense int64_t and complex, and
///   gradients(a, b, y, dy) -> {da, db}, one per element of the result, before summing over broadcast axes;
///   tangent(a, b, y, da, db), da or db empty when it is zero.
template <class Self>
struct Binary {
  static constexpr std::string_view operands = "a, b";
  static constexpr Traits traits{.elementwise = true};
  using Attrs = NoAttrs;

  static constexpr detail::BinaryDtypes dtypes() {
    constexpr bool kIntegers = requires(int64_t i) {
      { Self::eval(i, i) } -> std::same_as<int64_t>;
    };
    constexpr bool kComplexes = requires(std::complex<double> z) {
      { Self::eval(z, z) } -> std::same_as<std::complex<double>>;
    };
    detail::BinaryDtypes d{kIntegers, kComplexes};
    if constexpr (requires { Self::only_integers; }) d.floats = false, d.booleans = true;
    return d;
  }

  static Shapes infer(Infer& c, Attrs&) { return detail::infer_binary(c, dtypes()); }

  static Literals reference(const Eval& c, const Attrs&) {
    if constexpr (dtypes().complexes) {
      if (is_complex(c.out().dtype())) {
        return {Literal::complexes(c.out(), detail::zip(c.in(0).to_complexes(), c.in(1).to_complexes(), c,
                                                        [](auto a, auto b) { return Self::eval(a, b); }))};
      }
    }
    if constexpr (dtypes().integers) {
      if (!is_float(c.out().dtype())) {
        return {
            Literal::integers(c.out(), detail::zip(c.in(0).to_integers(), c.in(1).to_integers(), c,
                                                   [](int64_t a, int64_t b) { return Self::eval(a, b); }))};
      }
    }
    if constexpr (dtypes().floats) {
      return {Literal::reals(c.out(), detail::zip(c.in(0).to_reals(), c.in(1).to_reals(), c,
                                                  [](double a, double b) { return Self::eval(a, b); }))};
    }
    return {};
  }

  static Exprs vjp(const Vjp& c, const Attrs&) {
    if constexpr (requires(Expr t) { Self::gradients(t, t, t, t); }) {
      const auto [da, db] = Self::gradients(c.in(0), c.in(1), c.out(), c.dy());
      return detail::finish_vjp(c, da, db);
    }
    return {Expr{}, Expr{}};
  }

  static Exprs jvp(const Jvp& c, const Attrs&) {
    if constexpr (requires(Expr t) { Self::tangent(t, t, t, t, t); }) {
      return detail::finish_jvp(c, Self::tangent(c.in(0), c.in(1), c.out(), c.tangents[0], c.tangents[1]));
    }
    return {Expr{}};
  }

  static std::vector<OpSample<Attrs>> samples() {
    return detail::binary_samples(dtypes(), requires { Self::positive; });
  }
};

using Pair = std::pair<Expr, Expr>;

struct Add : Binary<Add> {
  static constexpr std::string_view name = "add";
  static constexpr std::string_view summary = "Sum of two tensors.";
  static constexpr std::string_view doc = "y = a + b; integers wrap";
  static constexpr Traits traits{.elementwise = true, .commutative = true};
  static double eval(double a, double b) { return a + b; }
  static int64_t eval(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }
  static std::complex<double> eval(std::complex<double> a, std::complex<double> b) { return a + b; }
  static Pair gradients(Expr a, Expr b, Expr y, Expr dy);
  static Expr tangent(Expr a, Expr b, Expr y, Expr da, Expr db);
};

struct Sub : Binary<Sub> {
  static constexpr std::string_view name = "sub";
  static constexpr std::string_view summary = "Difference of two tensors.";
  static constexpr std::string_view doc = "y = a - b; integers wrap";
  static double eval(double a, double b) { return a - b; }
  static int64_t eval(int64_t a, int64_t b) { return int64_t(uint64_t(a) - uint64_t(b)); }
  static std::complex<double> eval(std::complex<double> a, std::complex<double> b) { return a - b; }
  static Pair gradients(Expr a, Expr b, Expr y, Expr dy);
  static Expr tangent(Expr a, Expr b, Expr y, Expr da, Expr db);
};

struct Mul : Binary<Mul> {
  static constexpr std::string_view name = "mul";
  static constexpr std::string_view summary = "Product of two tensors, element by element.";
  static constexpr std::string_view doc = "y = a * b; integers wrap";
  static constexpr Traits traits{.elementwise = true, .commutative = true};
  static double eval(double a, double b) { return a * b; }
  static int64_t eval(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }
  static std::complex<double> eval(std::complex<double> a, std::complex<double> b) { return a * b; }
  static Pair gradients(Expr a, Expr b, Expr y, Expr dy);
  static Expr tangent(Expr a, Expr b, Expr y, Expr da, Expr db);
};

struct Div : Binary<Div> {
  static constexpr std::string_view name = "div";
  static constexpr std::string_view summary = "Quotient of two tensors.";
  static constexpr std::string_view doc = "y = a / b; integers truncate toward zero, and x / 0 = 0 for them";
  static constexpr bool positive = true;
  static double eval(double a, double b) { return a / b; }
  static int64_t eval(int64_t a, int64_t b) {
    return b == 0 ? 0 : b == -1 ? int64_t(0 - uint64_t(a)) : a / b;
  }
  static std::complex<double> eval(std::complex<double> a, std::complex<double> b) { return a / b; }
  static Pair gradients(Expr a, Expr b, Expr y, Expr dy);
  static Expr tangent(Expr a, Expr b, Expr y, Expr da, Expr db);
};

struct Max : Binary<Max> {
  static constexpr std::string_view name = "max";
  static constexpr std::string_view summary = "Larger of two elements.";
  static constexpr std::string_view doc = "y = max(a, b); NaN wins; equal elements share the gradient";
  static constexpr Traits traits{.elementwise = true, .commutative = true};
  static double eval(double a, double b) { return a != a ? a : b != b ? b : a > b ? a : b; }
  static int64_t eval(int64_t a, int64_t b) { return a > b ? a : b; }
  static Pair gradients(Expr a, Expr b, Expr y, Expr dy);
  static Expr tangent(Expr a, Expr b, Expr y, Expr da, Expr db);
};

struct Min : Binary<Min> {
  static constexpr std::string_view name = "min";
  static constexpr std::string_view summary = "Smaller of two elements.";
  static constexpr std::string_view doc = "y = min(a, b); NaN wins; equal elements share the gradient";
  static constexpr Traits traits{.elementwise = true, .commutative = true};
  static double eval(double a, double b) { return a != a ? a : b != b ? b : a < b ? a : b; }
  static int64_t eval(int64_t a, int64_t b) { return a < b ? a : b; }
  static Pair gradients(Expr a, Expr b, Expr y, Expr dy);
  static Expr tangent(Expr a, Expr b, Expr y, Expr da, Expr db);
};

struct Pow : Binary<Pow> {
  static constexpr std::string_view name = "pow";
  static constexpr std::string_view summary = "Real power.";
  static constexpr std::string_view doc =
      "y = a ^ b. da = dy b a^(b-1), 0 where b = 0; db = dy y ln a, 0 where a = 0 and b > 0 (the limit), and "
      "NaN for a < 0, where y is defined for whole b only";
  static constexpr bool positive = true;
  static double eval(double a, double b);
  static Pair gradients(Expr a, Expr b, Expr y, Expr dy);
  static Expr tangent(Expr a, Expr b, Expr y, Expr da, Expr db);
};

struct Rem : Binary<Rem> {
  static constexpr std::string_view name = "rem";
  static constexpr std::string_view summary = "Remainder of a division, with the sign of the dividend.";
  static constexpr std::string_view doc =
      "y = a - b trunc(a / b); integers have x rem 0 = 0, floats NaN. da = dy, db = -dy trunc(a / b)";
  static constexpr bool positive = true;
  static double eval(double a, double b);
  static int64_t eval(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
  static Pair gradients(Expr a, Expr b, Expr y, Expr dy);
  static Expr tangent(Expr a, Expr b, Expr y, Expr da, Expr db);
};

Expr add(Expr a, Expr b);
Expr sub(Expr a, Expr b);
Expr mul(Expr a, Expr b);
Expr div(Expr a, Expr b);
Expr max(Expr a, Expr b);
Expr min(Expr a, Expr b);
Expr pow(Expr a, Expr b);
Expr rem(Expr a, Expr b);
Expr binary(BinaryOp op, Expr a, Expr b);

/// A scalar constant of t's dtype in t's graph.
Expr scalar_like(Expr t, double value);

// Arithmetic as it is written; a number becomes a scalar of the tensor's dtype.
inline Expr operator+(Expr a, Expr b) { return add(a, b); }
inline Expr operator-(Expr a, Expr b) { return sub(a, b); }
inline Expr operator*(Expr a, Expr b) { return mul(a, b); }
inline Expr operator/(Expr a, Expr b) { return div(a, b); }
inline Expr operator+(Expr a, double b) { return add(a, scalar_like(a, b)); }
inline Expr operator-(Expr a, double b) { return sub(a, scalar_like(a, b)); }
inline Expr operator*(Expr a, double b) { return mul(a, scalar_like(a, b)); }
inline Expr operator/(Expr a, double b) { return div(a, scalar_like(a, b)); }
inline Expr operator+(double a, Expr b) { return add(scalar_like(b, a), b); }
inline Expr operator-(double a, Expr b) { return sub(scalar_like(b, a), b); }
inline Expr operator*(double a, Expr b) { return mul(scalar_like(b, a), b); }
inline Expr operator/(double a, Expr b) { return div(scalar_like(b, a), b); }
Expr operator-(Expr a);

/// Sum of two tensors either of which may be empty, which is zero.
Expr add_or(Expr a, Expr b);

}  // namespace rlx::ops
