// Products with bias, activation or a low-rank update behind them.
#pragma once

#include "rlx/ops/elementwise/activation.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct FusedMatmulBiasAct {
  static constexpr std::string_view name = "fused_matmul_bias_act",
                                    summary = "Matrix product, bias and activation.", operands = "x, w, bias";
  static constexpr std::string_view doc =
      "y = act(x w + bias): x is [.., M, K], w [K, N] or [.., K, N], bias [N]";
  static constexpr Traits traits{.contraction = true};
  struct Attrs {
    std::optional<Activation> activation;
    static constexpr auto fields() {
      return std::tuple{
          field("activation", &Attrs::activation, "what is applied to the sum; default nothing")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&) {
    return product_operations(in, out);
  }
  static std::vector<OpSample<Attrs>> samples();
};

struct LoraMatmul {
  static constexpr std::string_view name = "lora_matmul",
                                    summary = "Matrix product with a scaled low-rank update.",
                                    operands = "x, w, a, b";
  static constexpr std::string_view doc =
      "y = x w + scale (x a) b: x is [.., M, K], w [K, N], a [K, R], b [R, N]";
  static constexpr Traits traits{.contraction = true};
  struct Attrs {
    double scale = 1;
    static constexpr auto fields() {
      return std::tuple{field("scale", &Attrs::scale, "factor of the update")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr fused_matmul_bias_act(Expr x, Expr w, Expr bias, std::optional<Activation> activation = std::nullopt);
Expr lora_matmul(Expr x, Expr w, Expr a, Expr b, double scale);

}  // namespace rlx::ops
