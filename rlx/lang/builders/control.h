// Loops, branches, and functions given as graphs. Words that C++ keeps for itself end in an underscore. Bodies
// written as lambdas stand in rlx/lang/control.h.
#pragma once

#include "rlx/lang/builders/builder.h"
#include "rlx/ops/table.h"

namespace rlx {

/// The results of a function with several, by number. Nothing is packed: `offsets` are where result i would
/// start, in elements, if all were one after another.
struct MultiOutputHandle {
  Value source;
  Shapes sub_shapes;
  Dims offsets;
  size_t n_outputs = 0;

  /// Result i; `g` is the graph that holds the function.
  Value output(const ir::Graph& g, size_t i) const;
};

/// What a scan has besides its initial carries and its body.
struct ScanParts {
  Values consts = {};              // the same in every step
  Values xs = {};                  // [length, ...]: step t sees slice t
  std::optional<Dim> length = {};  // number of steps; may be left out where there are xs
  bool reverse = false;            // from the last slice to the first
  int64_t checkpoints = 0;  // carries that reverse mode keeps, running each segment again; 0: every step
};

/// Loops, branches and functions given as graphs.
class ControlBuilder : public BuilderTheme<ControlBuilder> {
 public:
  /// The general loop. The body maps carries, constants and slices, in this order, to the next carries and what
  /// the step puts out. Returned are the final carries, then the outputs of all steps, [length, ...].
  Values scan(const Values& init, const ScanParts& parts, const ir::Graph& body,
              const Loc& loc = Loc::current());

  // The same loop under the names of its common forms, with one carry.
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

  /// Any operator of a table by name, a program's own among them (rlx/ops/control/custom_op.h). `attrs` is written
  /// as in a graph text: "k=2, axis=1".
  Values custom_op(std::string_view name, std::string_view attrs, const Values& inputs,
                   const ir::OpTable& ops = ops::table(), const Loc& loc = Loc::current());
  /// The same for an operator with one result, of type `out_shape`.
  Value custom_op_packed(std::string_view name, std::string_view attrs, const Values& inputs,
                         const Shape& out_shape, const ir::OpTable& ops = ops::table(),
                         const Loc& loc = Loc::current());
  // Functions whose derivatives may be overridden.
  Value custom_fn(const Values& inputs, const ir::Graph& fwd_body,
                  const std::optional<ir::Graph>& vjp_body = {},
                  const std::optional<ir::Graph>& jvp_body = {}, const Declared& shape = {},
                  const Loc& loc = Loc::current());
  MultiOutputHandle custom_fn_multi(const Values& inputs, const ir::Graph& fwd_body,
                                    const std::optional<ir::Graph>& vjp_body = {},
                                    const std::optional<ir::Graph>& jvp_body = {},
                                    const Loc& loc = Loc::current());

 private:
  Value final_carry(const Values& init, const ScanParts& parts, const ir::Graph& body, const Declared& shape,
                    const Loc& loc);
};

}  // namespace rlx
