// Forward mode: tangents flow with the computation.
#pragma once

#include "rlx/transform/walk.h"

namespace rlx::transform {

/// Appends to `g` the tangents of its outputs, given tangents of `inputs` (empty is zero); returns one per
/// output, empty where none arrives. A node uses, in this order: its jvp rule; itself on the tangents when it
/// is linear; the transpose of its vjp rule. Other composites must be expanded before.
Tensors push_forward(Graph& g, const Values& inputs, const Tensors& tangents);

bool needs_expansion_for_jvp(const Node& n);

}  // namespace rlx::transform
