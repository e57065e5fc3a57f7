// A sub-graph that is to run as one piece.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Fused {
  static constexpr std::string_view name = "fused", summary = "A sub-graph that runs as one piece.",
                                    operands = "operands...", results = "results...";
  static constexpr std::string_view doc =
      "results = body(operands). The compiler groups operators this way; derivatives and batching look inside";
  struct Attrs {
    GraphRef body;
    static constexpr auto fields() { return std::tuple{field("body", &Attrs::body, "the sub-graph")}; }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

/// One node that computes the outputs of `body` from operands for its leaves, in order.
Exprs fused(Graph& g, const Exprs& operands, Graph body);

}  // namespace rlx::ops
