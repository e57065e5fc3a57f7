// A loop whose length the data decide.
#pragma once

#include <optional>

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct While {
  static constexpr std::string_view name = "while", summary = "Loop while a condition holds.",
                                    operands = "operands...", results = "carries...";
  static constexpr std::string_view doc =
      "operands are `carries` carried values, then constants. While all elements of cond(carries, constants) "
      "are not 0 and max_iterations are not used up: carries = body(carries, constants). Reverse mode needs "
      "max_iterations; forward mode does not";
  struct Attrs {
    GraphRef cond, body;
    int carries = 0;
    std::optional<int64_t> max_iterations;
    static constexpr auto fields() {
      return std::tuple{field("cond", &Attrs::cond, "whether to go on"),
                        field("body", &Attrs::body, "one step"),
                        field("carries", &Attrs::carries, "how many operands are carried"),
                        field("max_iterations", &Attrs::max_iterations, "most steps; none means no bound")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Exprs while_loop(Graph& g, const Exprs& init, const Exprs& consts, Graph cond, Graph body,
                 std::optional<int64_t> max_iterations = std::nullopt);

}  // namespace rlx::ops
