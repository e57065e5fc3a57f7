// Parts of complex numbers. Cotangents follow the Wirtinger convention dL/d(conj z): |z|^2 gives g z,
// a holomorphic f gives dy conj(f'(z)).
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Conjugate {
  static constexpr std::string_view name = "conjugate", summary = "Complex conjugate.",
                                    doc = "y = re x - i im x", operands = "z";
  static constexpr Traits traits{.elementwise = true};
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct ComplexNormSq {
  static constexpr std::string_view name = "complex_norm_sq",
                                    summary = "Squared modulus of a complex number.",
                                    doc = "y = re^2 + im^2, f32; gradient dy z", operands = "z";
  static constexpr Traits traits{.elementwise = true};
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

/// Real part of a complex tensor, and with its cotangent the convention: z gets dy / 2 (dL/d(conj z) of
/// re z = (z + conj z) / 2).
struct RealPart {
  static constexpr std::string_view name = "real", summary = "Real part of a complex number.",
                                    doc = "y = re z, f32; gradient dy / 2", operands = "z";
  static constexpr Traits traits{.elementwise = true};
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct ImagPart {
  static constexpr std::string_view name = "imag", summary = "Imaginary part of a complex number.",
                                    doc = "y = im z, f32; gradient i dy / 2", operands = "z";
  static constexpr Traits traits{.elementwise = true};
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct MakeComplex {
  static constexpr std::string_view name = "make_complex", summary = "Complex number from two real parts.",
                                    doc = "z = re + i im; gradients 2 re dz and 2 im dz", operands = "re, im";
  static constexpr Traits traits{.elementwise = true};
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr conjugate(Expr z);
/// The conjugate of complex tensors; real ones as they are.
Expr conj_of(Expr t);
Expr complex_norm_sq(Expr z);
Expr real_part(Expr z);
Expr imag_part(Expr z);
Expr make_complex(Expr re, Expr im);

}  // namespace rlx::ops
