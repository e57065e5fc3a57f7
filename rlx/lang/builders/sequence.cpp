#include "rlx/lang/builders/sequence.h"

#include "rlx/lang/graph.h"
#include "rlx/ops/sequence/gated_delta_net.h"
#include "rlx/ops/sequence/selective_scan.h"

namespace rlx {

Value SequenceBuilder::selective_scan(Value x, Value delta, Value a, Value b, Value c, int64_t state_size,
                                      const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::selective_scan(t(x), t(delta), t(a), t(b), t(c), state_size); });
}

std::pair<Value, Value> SequenceBuilder::gated_delta_net(Value q, Value k, Value v, Value g, Value beta,
                                                         int64_t state_size, const Loc& loc) {
  return two(loc, [&] { return ops::gated_delta_net(t(q), t(k), t(v), t(g), t(beta), state_size); });
}

std::pair<Value, Value> SequenceBuilder::gated_delta_net_carry(Value q, Value k, Value v, Value g, Value beta,
                                                               Value state, int64_t state_size,
                                                               const Loc& loc) {
  return two(
      loc, [&] { return ops::gated_delta_net_carry(t(q), t(k), t(v), t(g), t(beta), t(state), state_size); });
}

}  // namespace rlx
