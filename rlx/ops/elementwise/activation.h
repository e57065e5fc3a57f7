// Activations of neural networks, and the list of all seventeen kinds by name.
#pragma once

#include <array>

#include "rlx/ops/elementwise/unary.h"

namespace rlx::ops {

struct Relu : Unary<Relu> {
  static constexpr std::string_view name = "relu", summary = "Rectifier.",
                                    doc = "y = max(x, 0); derivative 1 for x > 0, else 0; NaN stays NaN";
  static double eval(double x) { return x != x ? x : x > 0 ? x : 0; }
  static Expr derivative(Expr x, Expr y);
};

struct Sigmoid : Unary<Sigmoid> {
  static constexpr std::string_view name = "sigmoid", summary = "Logistic function.",
                                    doc = "y = 1 / (1 + e^-x); derivative y (1 - y)";
  static double eval(double x);
  static Expr derivative(Expr x, Expr y);
};

struct Silu : Unary<Silu> {
  static constexpr std::string_view name = "silu", summary = "x times its sigmoid (swish).",
                                    doc = "y = x s(x); derivative s (1 + x (1 - s)), s the sigmoid";
  static double eval(double x);
  static Expr derivative(Expr x, Expr y);
};

struct Gelu : Unary<Gelu> {
  static constexpr std::string_view
      name = "gelu",
      summary = "Gaussian error linear unit, exact.",
      doc =
          "y = x/2 (1 + erf(x / sqrt 2)); derivative P(x) + x p(x), P and p the normal "
          "distribution and its density";
  static double eval(double x);
  static Expr derivative(Expr x, Expr y);
};

struct GeluApprox : Unary<GeluApprox> {
  static constexpr std::string_view name = "gelu_approx", summary = "Gaussian error linear unit by tanh.",
                                    doc = "y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))";
  static double eval(double x);
  static Expr derivative(Expr x, Expr y);
};

struct Softplus : Unary<Softplus> {
  static constexpr std::string_view name = "softplus", summary = "Smooth rectifier.",
                                    doc = "y = ln(1 + e^x); derivative the sigmoid";
  static double eval(double x);
  static Expr derivative(Expr x, Expr y);
};

enum class Activation {
  gelu,
  gelu_approx,
  silu,
  relu,
  sigmoid,
  tanh,
  exp,
  log,
  sqrt,
  rsqrt,
  neg,
  abs,
  sin,
  cos,
  tan,
  atan,
  round
};
constexpr std::array<std::string_view, 17> choice_names(Activation) {
  return {"gelu",  "gelu_approx", "silu", "relu", "sigmoid", "tanh", "exp",  "log",  "sqrt",
          "rsqrt", "neg",         "abs",  "sin",  "cos",     "tan",  "atan", "round"};
}

Expr relu(Expr x);
Expr sigmoid(Expr x);
Expr silu(Expr x);
Expr gelu(Expr x);
Expr gelu_approx(Expr x);
Expr softplus(Expr x);
Expr activation(Activation kind, Expr x);

}  // namespace rlx::ops
