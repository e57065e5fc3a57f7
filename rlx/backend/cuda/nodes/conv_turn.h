// x with other neighbours, in the workspace, and weights in the order of rings (kernels/conv_turn.h).
#pragma once

#include "rlx/backend/cuda/nodes/conv_steps.h"
#include "rlx/backend/cuda/rounding.h"

namespace rlx::cuda {

/// Whether the elements of an image of these extents are neighbours.
bool is_run(const ConvPart::Strides&, const Axes& extents);

/// The part with x as it lies when it is turned, and the elements of that.
ConvPart with_turned_x(ConvPart, Turned);
int64_t turned_elements(const ConvPart&, Turned);

/// x of the part as it lies, to its turned form.
ConvLaunch turn_launch(const Device&, const ConvPart&, Turned, const ConvResults&);

/// The order of weights: tiles of so many rows, slices of 64 terms, of which `taps` neighbours have the same channels.
struct RingOrder {
  int64_t rows = 64, slices = 1, tile = 64, taps = 1;
};
/// The same with weights, `constants` being those of their terms; x may stay as it lies (Turned::no).
ConvLaunch turn_and_pack_launch(const Device&, const ConvPart&, Turned, const RingOrder&, const ConvResults&,
                                const std::string& constants);

}  // namespace rlx::cuda
