// Gradients of scans with one carry, called by hand. grad() differentiates scans by itself.
#pragma once

#include "rlx/lang/builders/builder.h"

namespace rlx {

/// The walk runs t = length - 1 .. 0. body_vjp takes the carry before step t, the slices t of `xs` and, in an
/// input named d_output, the gradient of the carry after it; it returns the gradients of carry and slices.
/// `upstream` is the gradient of the final carry or, with save_trajectory, of all carries [length, ...].
class ScanBackwardBuilder : public BuilderTheme<ScanBackwardBuilder> {
 public:
  /// Gradient of init. Row t of `trajectory` is the carry after step t.
  Value scan_backward(Value init, Value trajectory, Value upstream, const Values& xs,
                      const ir::Graph& body_vjp, int64_t length, bool save_trajectory,
                      const Declared& shape = {}, const Loc& loc = Loc::current());
  /// Gradient of xs[xs_idx], [length, ...].
  Value scan_backward_xs(Value init, Value trajectory, Value upstream, const Values& xs,
                         const ir::Graph& body_vjp, int64_t length, bool save_trajectory, size_t xs_idx,
                         const Declared& shape = {}, const Loc& loc = Loc::current());
  /// Row k of `trajectory` is the carry after step ceil((k + 1) length / num_checkpoints) - 1; forward_body
  /// computes the carries in between again, a segment at a time.
  Value scan_backward_with_checkpoints(Value init, Value trajectory, Value upstream, const Values& xs,
                                       const ir::Graph& body_vjp, int64_t length, bool save_trajectory,
                                       int64_t num_checkpoints, const std::optional<ir::Graph>& forward_body,
                                       const Declared& shape = {}, const Loc& loc = Loc::current());
  /// The gradient of xs[xs_idx] from checkpoints.
  Value scan_backward_xs_with_checkpoints(Value init, Value trajectory, Value upstream, const Values& xs,
                                          const ir::Graph& body_vjp, int64_t length, bool save_trajectory,
                                          int64_t num_checkpoints,
                                          const std::optional<ir::Graph>& forward_body, size_t xs_idx,
                                          const Declared& shape = {}, const Loc& loc = Loc::current());
};

}  // namespace rlx
