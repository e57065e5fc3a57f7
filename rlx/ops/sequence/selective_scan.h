// The selective state-space recurrence of Mamba.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct SelectiveScan {
  static constexpr std::string_view name = "selective_scan", summary = "Selective state-space scan.",
                                    operands = "x, delta, a, b, c";
  static constexpr std::string_view doc =
      "x, delta [batch, seq, h]; a [h, n]; b, c [batch, seq, n]. From state 0 for each batch row and "
      "channel: S[t] = exp(delta[t] a) S[t-1] + delta[t] b[t] x[t], y[t] = sum over n of c[t] S[t]";
  struct Attrs {
    int64_t state_size = 0;
    static constexpr auto fields() {
      return std::tuple{field("state_size", &Attrs::state_size, "n, states of a channel; 0 reads it from a")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static double operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr selective_scan(Expr x, Expr delta, Expr a, Expr b, Expr c, int64_t state_size);

}  // namespace rlx::ops
