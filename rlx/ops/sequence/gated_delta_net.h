// The gated delta rule: a linear attention whose state forgets by a gate and
// corrects itself by an error.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct GatedDeltaNetAttrs {
  int64_t state_size = 0;
  static constexpr auto fields() {
    return std::tuple{
        field("state_size", &GatedDeltaNetAttrs::state_size, "n, lanes of q, k and v; 0 reads it from q")};
  }
};

/// Both forms: with `state` as sixth operand, or from zero.
struct GatedDeltaNetRules {
  static constexpr std::string_view results = "y, state";
  static constexpr Traits traits{.contraction = true};
  using Attrs = GatedDeltaNetAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&);
};

struct GatedDeltaNet : GatedDeltaNetRules {
  static constexpr std::string_view name = "gated_delta_net",
                                    summary = "Gated delta rule from an empty state.",
                                    operands = "q, k, v, g, beta";
  static constexpr std::string_view doc =
      "q, k, v [batch, seq, heads, n]; g (log gate), beta [batch, seq, heads]. "
      "For each batch row and head, "
      "with S an n x n matrix of key lanes by value lanes, from 0: S = e^g S; "
      "d = beta (v - S^T k); "
      "S = S + k d^T; y = S^T q / sqrt(n). The final S is the second result";
  static std::vector<OpSample<Attrs>> samples();
};

struct GatedDeltaNetCarry : GatedDeltaNetRules {
  static constexpr std::string_view name = "gated_delta_net_carry",
                                    summary = "Gated delta rule from a given state.",
                                    operands = "q, k, v, g, beta, state";
  static constexpr std::string_view doc =
      "As gated_delta_net, with S starting from state [batch, heads, n, n]; "
      "the operand is not changed, the "
      "final S is the second result";
  static std::vector<OpSample<Attrs>> samples();
};

struct GatedDeltaNetResult {
  Expr output, state;
};

GatedDeltaNetResult gated_delta_net(Expr q, Expr k, Expr v, Expr g, Expr beta, int64_t state_size);
GatedDeltaNetResult gated_delta_net_carry(Expr q, Expr k, Expr v, Expr g, Expr beta, Expr state,
                                          int64_t state_size);

}  // namespace rlx::ops
