// Sequence models.
#pragma once

#include "rlx/lang/builders/builder.h"

namespace rlx {

/// Sequence models.
class SequenceBuilder : public BuilderTheme<SequenceBuilder> {
 public:
  Value selective_scan(Value x, Value delta, Value a, Value b, Value c, int64_t state_size,
                       const Declared& shape = {}, const Loc& loc = Loc::current());
  /// Output and final state.
  std::pair<Value, Value> gated_delta_net(Value q, Value k, Value v, Value g, Value beta, int64_t state_size,
                                          const Loc& loc = Loc::current());
  std::pair<Value, Value> gated_delta_net_carry(Value q, Value k, Value v, Value g, Value beta, Value state,
                                                int64_t state_size, const Loc& loc = Loc::current());
};

}  // namespace rlx
