// Loops, branches, sequence models, custom operators, random numbers. Words that C++ keeps for itself end in
// an underscore.
#pragma once

#include "rlx/lang/builders/fft.h"

namespace rlx {

class SequenceBuilder : public FftBuilder {
 public:
  using FftBuilder::FftBuilder;

  Value selective_scan(Value x, Value delta, Value a, Value b, Value c, int64_t state_size,
                       const Declared& shape = {}, const Loc& loc = Loc::current());
  /// Output and final state.
  std::pair<Value, Value> gated_delta_net(Value q, Value k, Value v, Value g, Value beta, int64_t state_size,
                                          const Loc& loc = Loc::current());
  std::pair<Value, Value> gated_delta_net_carry(Value q, Value k, Value v, Value g, Value beta, Value state,
                                                int64_t state_size, const Loc& loc = Loc::current());

  // The body maps carry, constants and slices to the next carry.
  Value scan(Value init, const ir::Graph& body, Dim length, const Declared& shape = {},
             const Loc& loc = Loc::current());
  Value scan_checkpointed(Value init, const ir::Graph& body, Dim length, int64_t num_checkpoints,
                          const Declared& shape = {}, const Loc& loc = Loc::current());
  Value scan_with_xs(Value init, const Values& xs, const ir::Graph& body, Dim length,
                     const Declared& shape = {}, const Loc& loc = Loc::current());
  Value scan_with_bcasts_and_xs(Value init, const Values& bcasts, const Values& xs, const ir::Graph& body,
                                Dim length, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value scan_trajectory(Value init, const ir::Graph& body, Dim length, const Declared& shape = {},
                        const Loc& loc = Loc::current());
  /// Final carries, then the outputs of all steps.
  Values scan_all(const Values& init, const Values& consts, const Values& xs, const ir::Graph& body,
                  Dim length, bool reverse = false, const Loc& loc = Loc::current());
  /// Only the branch taken runs.
  Values if_(Value predicate, const Values& captures, const ir::Graph& then_body, const ir::Graph& else_body,
             const Loc& loc = Loc::current());
  Values while_(const Values& init, const Values& consts, const ir::Graph& cond, const ir::Graph& body,
                std::optional<int64_t> max_iterations = {}, const Loc& loc = Loc::current());

  // Operators registered with ops::register_custom_op, and functions whose derivatives may be overridden.
  Values custom_op(const std::string& name, const std::string& attrs, const Values& inputs,
                   const Loc& loc = Loc::current());
  Value custom_op_packed(const std::string& name, const std::string& attrs, const Values& inputs,
                         const Shape& out_shape, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value custom_fn(const Values& inputs, const ir::Graph& fwd_body,
                  const std::optional<ir::Graph>& vjp_body = {},
                  const std::optional<ir::Graph>& jvp_body = {}, const Declared& shape = {},
                  const Loc& loc = Loc::current());

  // Random numbers by key and counter: the same pair gives the same numbers.
  Value random_bits(Value key, Value counter, Dims dims, const Declared& shape = {},
                    const Loc& loc = Loc::current());
  Value random_uniform(Value key, Value counter, const Shape& type, double low = 0, double high = 1,
                       const Declared& shape = {}, const Loc& loc = Loc::current());
  Value random_normal(Value key, Value counter, const Shape& type, double mean = 0, double stddev = 1,
                      const Declared& shape = {}, const Loc& loc = Loc::current());
  Value dropout(Value x, Value key, Value counter, double rate, const Declared& shape = {},
                const Loc& loc = Loc::current());
};

}  // namespace rlx
