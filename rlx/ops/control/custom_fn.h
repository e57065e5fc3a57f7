// A function given as a graph, with derivatives that may be given as graphs too.
#pragma once

#include <optional>

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct CustomFn {
  static constexpr std::string_view name = "custom_fn",
                                    summary = "A sub-graph whose derivatives may be overridden.",
                                    operands = "operands...", results = "results...";
  static constexpr std::string_view doc =
      "results = fwd_body(operands). vjp_body takes the n operands, then inputs named primal_output and "
      "d_output (for several results primal_output_0, d_output_0, ...) and returns n gradients. jvp_body "
      "takes the n operands, inputs named tangent_0 ... and, if it likes, primal_output, and returns a "
      "tangent per result. A mode without an override differentiates fwd_body";
  struct Attrs {
    GraphRef fwd_body, vjp_body, jvp_body;
    static constexpr auto fields() {
      return std::tuple{field("fwd_body", &Attrs::fwd_body, "the function"),
                        field("vjp_body", &Attrs::vjp_body, "its reverse mode; none: by differentiation"),
                        field("jvp_body", &Attrs::jvp_body, "its forward mode; none: by differentiation")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Exprs custom_fn(Graph& g, const Exprs& inputs, Graph fwd_body, std::optional<Graph> vjp_body = std::nullopt,
                std::optional<Graph> jvp_body = std::nullopt);

}  // namespace rlx::ops
