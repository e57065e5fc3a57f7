// The gradients of activations, and of the squared modulus, under their own names.
#pragma once

#include "rlx/ops/elementwise/activation.h"

namespace rlx::ops {

struct ReluBackward {
  static constexpr std::string_view name = "relu_backward", summary = "Gradient of relu.", operands = "x, dy",
                                    doc = "dx = dy where x > 0, else 0";
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct ActivationBackward {
  static constexpr std::string_view name = "activation_backward", summary = "Gradient of an activation.",
                                    operands = "x, dy";
  static constexpr std::string_view doc = "dx = dy f'(x), f the activation `kind`; 0 for round";
  struct Attrs {
    Activation kind = Activation::gelu;
    static constexpr auto fields() { return std::tuple{field("kind", &Attrs::kind, "which activation")}; }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct ComplexNormSqBackward {
  static constexpr std::string_view name = "complex_norm_sq_backward",
                                    summary = "Gradient of complex_norm_sq.", operands = "z, g",
                                    doc = "dz = g z, the derivative by the conjugate of z";
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr relu_backward(Expr x, Expr dy);
Expr activation_backward(Activation kind, Expr x, Expr dy);
Expr complex_norm_sq_backward(Expr z, Expr g);

}  // namespace rlx::ops
