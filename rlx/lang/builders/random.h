// Random numbers and sampling.
#pragma once

#include "rlx/lang/builders/builder.h"

namespace rlx {

/// Random numbers and sampling.
class RandomBuilder : public BuilderTheme<RandomBuilder> {
 public:
  // Random numbers by key and counter: the same pair gives the same numbers.
  Value random_bits(Value key, Value counter, Dims dims, const Declared& shape = {},
                    const Loc& loc = Loc::current());
  Value random_uniform(Value key, Value counter, const Shape& type, double low = 0, double high = 1,
                       const Declared& shape = {}, const Loc& loc = Loc::current());
  Value random_normal(Value key, Value counter, const Shape& type, double mean = 0, double stddev = 1,
                      const Declared& shape = {}, const Loc& loc = Loc::current());
  Value dropout(Value x, Value key, Value counter, double rate, const Declared& shape = {},
                const Loc& loc = Loc::current());

  /// A token per row of logits, i32 or the dtype of `output_shape`. `counter` numbers the draws: the same
  /// seed and counter draw the same token, so a graph that runs more than once takes it as an input. Without
  /// one, each call of this method in a graph has a counter of its own, and every run repeats its draw.
  Value sample(Value logits, int64_t top_k, double top_p, double temperature, int64_t seed,
               const Declared& output_shape = {}, std::optional<Value> counter = {},
               const Loc& loc = Loc::current());
};

}  // namespace rlx
