// Drawing the next token.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct SampleTokens {
  static constexpr std::string_view name = "sample", summary = "A token drawn from logits.",
                                    operands = "logits, key, counter";
  static constexpr std::string_view doc =
      "for each row: keep the top_k largest logits (equal ones beyond k go by index, the smaller stays), p = "
      "softmax(logits / temperature) of them, keep the shortest prefix of descending p whose sum reaches "
      "top_p, draw u in [0, 1) and return the first token, in order of the vocabulary, with u (sum of p "
      "kept) < sum of p kept up to it. Row r draws u from word r of random_bits(seed + key, counter). "
      "Temperature 0 returns the argmax. i32";
  static constexpr Traits traits{.zero_gradient = true};
  struct Attrs {
    int64_t top_k = 0;
    double top_p = 1;
    double temperature = 1;
    int64_t seed = 0;
    static constexpr auto fields() {
      return std::tuple{field("top_k", &Attrs::top_k, "how many of the largest logits to keep; 0 keeps all"),
                        field("top_p", &Attrs::top_p, "probability mass to keep, above 0 and at most 1"),
                        field("temperature", &Attrs::temperature, "divides the logits; 0 takes the largest"),
                        field("seed", &Attrs::seed, "added to the key")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr sample(Expr logits, Expr key, Expr counter, int64_t top_k = 0, double top_p = 1, double temperature = 1,
            int64_t seed = 0);

}  // namespace rlx::ops
