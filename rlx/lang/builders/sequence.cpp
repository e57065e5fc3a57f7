#include "rlx/lang/builders/sequence.h"

#include "rlx/ops/control/custom.h"
#include "rlx/ops/control/custom_fn.h"
#include "rlx/ops/control/if.h"
#include "rlx/ops/control/scan.h"
#include "rlx/ops/control/while.h"
#include "rlx/ops/random/dropout.h"
#include "rlx/ops/random/random.h"
#include "rlx/ops/random/sample.h"
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

Value SequenceBuilder::scan(Value init, const ir::Graph& body, Dim length, const Declared& shape,
                            const Loc& loc) {
  return one(shape, loc, [&] { return ops::scan(t(init), body, length); });
}

Value SequenceBuilder::scan_checkpointed(Value init, const ir::Graph& body, Dim length,
                                         int64_t num_checkpoints, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::scan_checkpointed(t(init), body, length, num_checkpoints); });
}

Value SequenceBuilder::scan_with_xs(Value init, const Values& xs, const ir::Graph& body, Dim length,
                                    const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::scan_with_xs(t(init), ts(xs), body, length); });
}

Value SequenceBuilder::scan_with_bcasts_and_xs(Value init, const Values& bcasts, const Values& xs,
                                               const ir::Graph& body, Dim length, const Declared& shape,
                                               const Loc& loc) {
  return one(shape, loc,
             [&] { return ops::scan_with_bcasts_and_xs(t(init), ts(bcasts), ts(xs), body, length); });
}

Value SequenceBuilder::scan_trajectory(Value init, const ir::Graph& body, Dim length, const Declared& shape,
                                       const Loc& loc) {
  return one(shape, loc, [&] { return ops::scan_trajectory(t(init), body, length); });
}

Values SequenceBuilder::scan_all(const Values& init, const Values& consts, const Values& xs,
                                 const ir::Graph& body, Dim length, bool reverse, const Loc& loc) {
  return many(loc, [&] { return ops::scan_all(*this, ts(init), ts(consts), ts(xs), body, length, reverse); });
}

Values SequenceBuilder::if_(Value predicate, const Values& captures, const ir::Graph& then_body,
                            const ir::Graph& else_body, const Loc& loc) {
  return many(loc, [&] { return ops::if_else(t(predicate), ts(captures), then_body, else_body); });
}

Values SequenceBuilder::while_(const Values& init, const Values& consts, const ir::Graph& cond,
                               const ir::Graph& body, std::optional<int64_t> max_iterations, const Loc& loc) {
  return many(loc, [&] { return ops::while_loop(*this, ts(init), ts(consts), cond, body, max_iterations); });
}

Values SequenceBuilder::custom_op(const std::string& name, const std::string& attrs, const Values& inputs,
                                  const Loc& loc) {
  return many(loc, [&] { return ops::custom_op(*this, name, attrs, ts(inputs)); });
}

Value SequenceBuilder::custom_op_packed(const std::string& name, const std::string& attrs,
                                        const Values& inputs, const Shape& out_shape, const Declared& shape,
                                        const Loc& loc) {
  return one(shape, loc, [&] { return ops::custom_op_packed(*this, name, attrs, ts(inputs), out_shape); });
}

Value SequenceBuilder::custom_fn(const Values& inputs, const ir::Graph& fwd_body,
                                 const std::optional<ir::Graph>& vjp_body,
                                 const std::optional<ir::Graph>& jvp_body, const Declared& shape,
                                 const Loc& loc) {
  return one(shape, loc,
             [&] { return ops::custom_fn(*this, ts(inputs), fwd_body, vjp_body, jvp_body).at(0); });
}

Value SequenceBuilder::random_bits(Value key, Value counter, Dims dims, const Declared& shape,
                                   const Loc& loc) {
  return one(shape, loc, [&] { return ops::random_bits(t(key), t(counter), std::move(dims)); });
}

Value SequenceBuilder::random_uniform(Value key, Value counter, const Shape& type, double low, double high,
                                      const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::random_uniform(t(key), t(counter), type, low, high); });
}

Value SequenceBuilder::random_normal(Value key, Value counter, const Shape& type, double mean, double stddev,
                                     const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::random_normal(t(key), t(counter), type, mean, stddev); });
}

Value SequenceBuilder::dropout(Value x, Value key, Value counter, double rate, const Declared& shape,
                               const Loc& loc) {
  return one(shape, loc, [&] { return ops::dropout(t(x), t(key), t(counter), rate); });
}

}  // namespace rlx
