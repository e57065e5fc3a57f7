// Random zeros for training.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct Dropout {
  static constexpr std::string_view name = "dropout",
                                    summary = "Elements set to zero at random, the others scaled up.",
                                    operands = "x, key, counter";
  static constexpr std::string_view doc =
      "y[e] = x[e] / (1 - rate) where random_bits(key, counter)[e] >= rate 2^32, else 0, so that the mean "
      "stays; the gradient passes through the same mask";
  struct Attrs {
    double rate = 0.5;
    static constexpr auto fields() {
      return std::tuple{field("rate", &Attrs::rate, "probability of a zero, at least 0 and below 1")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr dropout(Expr x, Expr key, Expr counter, double rate);

}  // namespace rlx::ops
