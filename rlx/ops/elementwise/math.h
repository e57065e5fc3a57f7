// The functions of one element: exponentials, roots, trigonometry, rounding.
#pragma once

#include "rlx/ops/elementwise/unary.h"

namespace rlx::ops {

struct Neg : Unary<Neg> {
  static constexpr std::string_view name = "neg", summary = "Negation.", doc = "y = -x; integers wrap";
  static double eval(double x) { return -x; }
  static int64_t eval(int64_t x) { return int64_t(0 - uint64_t(x)); }
  static std::complex<double> eval(std::complex<double> x) { return -x; }
  static Expr derivative(Expr x, Expr y);
};

struct Abs : Unary<Abs> {
  static constexpr std::string_view name = "abs", summary = "Absolute value.",
                                    doc = "y = |x|; derivative sign(x), 0 at 0";
  static double eval(double x);
  static int64_t eval(int64_t x) { return x < 0 ? int64_t(0 - uint64_t(x)) : x; }
  static Expr derivative(Expr x, Expr y);
};

struct Exp : Unary<Exp> {
  static constexpr std::string_view name = "exp", summary = "Exponential.", doc = "y = e^x";
  static double eval(double x);
  static std::complex<double> eval(std::complex<double> x);
  static Expr derivative(Expr x, Expr y);
};

struct Expm1 : Unary<Expm1> {
  static constexpr std::string_view name = "expm1", summary = "Exponential minus one, exact near 0.",
                                    doc = "y = e^x - 1";
  static double eval(double x);
  static Expr derivative(Expr x, Expr y);
};

struct Log : Unary<Log> {
  static constexpr std::string_view name = "log", summary = "Natural logarithm.",
                                    doc = "y = ln x; derivative 1/x";
  static constexpr auto domain = detail::UnaryDomain::positive;
  static double eval(double x);
  static std::complex<double> eval(std::complex<double> x);
  static Expr derivative(Expr x, Expr y);
};

struct Log1p : Unary<Log1p> {
  static constexpr std::string_view name = "log1p", summary = "Logarithm of one plus x, exact near 0.",
                                    doc = "y = ln(1 + x)";
  static constexpr auto domain = detail::UnaryDomain::positive;
  static double eval(double x);
  static Expr derivative(Expr x, Expr y);
};

struct Sqrt : Unary<Sqrt> {
  static constexpr std::string_view name = "sqrt", summary = "Square root.",
                                    doc = "y = x^(1/2); derivative 1/(2y), taken as 0 at 0";
  static constexpr auto domain = detail::UnaryDomain::positive;
  static double eval(double x);
  static std::complex<double> eval(std::complex<double> x);
  static Expr derivative(Expr x, Expr y);
};

struct Rsqrt : Unary<Rsqrt> {
  static constexpr std::string_view name = "rsqrt", summary = "Reciprocal square root.",
                                    doc = "y = x^(-1/2); derivative -y/(2x), taken as 0 at 0";
  static constexpr auto domain = detail::UnaryDomain::positive;
  static double eval(double x);
  static Expr derivative(Expr x, Expr y);
};

struct Sin : Unary<Sin> {
  static constexpr std::string_view name = "sin", summary = "Sine.", doc = "y = sin x";
  static double eval(double x);
  static Expr derivative(Expr x, Expr y);
};

struct Cos : Unary<Cos> {
  static constexpr std::string_view name = "cos", summary = "Cosine.", doc = "y = cos x";
  static double eval(double x);
  static Expr derivative(Expr x, Expr y);
};

struct Tan : Unary<Tan> {
  static constexpr std::string_view name = "tan", summary = "Tangent.", doc = "y = tan x; derivative 1 + y^2";
  static double eval(double x);
  static Expr derivative(Expr x, Expr y);
};

struct Atan : Unary<Atan> {
  static constexpr std::string_view name = "atan", summary = "Arc tangent.",
                                    doc = "y = atan x; derivative 1/(1 + x^2)";
  static double eval(double x);
  static Expr derivative(Expr x, Expr y);
};

struct Tanh : Unary<Tanh> {
  static constexpr std::string_view name = "tanh", summary = "Hyperbolic tangent.",
                                    doc = "y = tanh x; derivative 1 - y^2";
  static double eval(double x);
  static Expr derivative(Expr x, Expr y);
};

struct Erf : Unary<Erf> {
  static constexpr std::string_view name = "erf", summary = "Error function.",
                                    doc = "y = 2/sqrt(pi) * integral of e^(-t^2) from 0 to x";
  static double eval(double x);
  static Expr derivative(Expr x, Expr y);
};

struct Floor : Unary<Floor> {
  static constexpr std::string_view name = "floor", summary = "Largest whole number not above x.",
                                    doc = "y = floor(x); derivative 0";
  static double eval(double x);
};

struct Ceil : Unary<Ceil> {
  static constexpr std::string_view name = "ceil", summary = "Smallest whole number not below x.",
                                    doc = "y = ceil(x); derivative 0";
  static double eval(double x);
};

struct Round : Unary<Round> {
  static constexpr std::string_view name = "round", summary = "Nearest whole number, halves to even.",
                                    doc = "y = round(x): 0.5 -> 0, 1.5 -> 2, 2.5 -> 2; derivative 0";
  static double eval(double x);
};

struct Sign : Unary<Sign> {
  static constexpr std::string_view name = "sign", summary = "-1, 0 or 1.",
                                    doc = "y = x / |x|, 0 at 0, NaN for NaN; derivative 0";
  static double eval(double x) { return x != x ? x : double((x > 0) - (x < 0)); }
  static int64_t eval(int64_t x) { return (x > 0) - (x < 0); }
};

Expr neg(Expr x);
Expr abs(Expr x);
Expr exp(Expr x);
Expr expm1(Expr x);
Expr log(Expr x);
Expr log1p(Expr x);
Expr sqrt(Expr x);
Expr rsqrt(Expr x);
Expr sin(Expr x);
Expr cos(Expr x);
Expr tan(Expr x);
Expr atan(Expr x);
Expr tanh(Expr x);
Expr erf(Expr x);
Expr floor(Expr x);
Expr ceil(Expr x);
Expr round(Expr x);
Expr sign(Expr x);
Expr square(Expr x);

}  // namespace rlx::ops
