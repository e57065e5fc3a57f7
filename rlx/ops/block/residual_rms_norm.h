// Residual sum and root-mean-square norm in one block.
#pragma once

#include "rlx/ops/block/block.h"

namespace rlx::ops {

struct ResidualRmsNorm {
  static constexpr std::string_view name = "residual_rms_norm",
                                    summary = "Residual sum, then its root-mean-square norm (block).",
                                    operands = "x, residual, gamma, beta", results = "y, sum";
  static constexpr std::string_view doc =
      "sum = x + residual; y = sum / sqrt(mean(sum^2) + eps) gamma + beta";
  static constexpr Traits traits{.block = true};
  struct Attrs {
    double eps = 1e-6;
    static constexpr auto fields() {
      return std::tuple{field("eps", &Attrs::eps, "added to the mean square")};
    }
  };
  static Shapes infer(Infer& c, Attrs& a) { return infer_block<ResidualRmsNorm>(c, a); }
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

/// Norm and sum, fused or as primitives.
std::pair<Expr, Expr> residual_norm(Expr x, Expr residual, Expr gamma, Expr beta, double eps,
                                    FusionPolicy policy);

}  // namespace rlx::ops
