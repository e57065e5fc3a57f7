// Orthogonal-triangular factorisation.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Qr {
  static constexpr std::string_view name = "qr", summary = "Reduced QR factorisation of matrices.",
                                    operands = "a", results = "q, r";
  static constexpr std::string_view doc =
      "a[.., M, N] = q[.., M, K] r[.., K, N], K = min(M, N); q^H q = 1, r upper triangular with a diagonal "
      "that is real and not negative, which makes both unique for full rank. The gradient needs the first K columns "
      "of a to be independent";
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct QrResult {
  Expr q, r;
};
QrResult qr(Expr a);

}  // namespace rlx::ops
