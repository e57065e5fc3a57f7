// Which splats matter where: the discrete part of splatting.
#pragma once

#include "rlx/ops/splat/params.h"

namespace rlx::ops {

/// A splat is seen from the camera as the cone of rays d with d^T Q d <= 0, Q =
/// M^T ((|o|^2 - r^2) I - o o^T) M, where M maps to the space in which the
/// splat is a unit Gaussian, o is the camera there and r the radius at which
/// its opacity falls below alpha_cutoff. The box around that conic on the
/// screen gives its tiles.
struct GaussianSplatLists {
  static constexpr std::string_view name = "gaussian_splat_lists",
                                    summary = "The splats that each tile of the picture sees, nearest first.",
                                    operands = "positions, scales, rotations, opacities, meta",
                                    results = "ids, ranges, dropped";
  static constexpr std::string_view doc =
      "Splats between near and far whose opacity reaches alpha_cutoff are taken by distance from the camera "
      "(ties by index) and entered into each tile that they may touch, until max_list_entries. ids i32 "
      "[max_list_entries] holds the lists of all tiles in row-major order, unused entries the number of "
      "splats; ranges i32 [tiles, 2] is where each begins and ends; dropped i32 counts entries that found no "
      "room";
  static constexpr Traits traits{.zero_gradient = true};
  using Attrs = SplatParams;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

}  // namespace rlx::ops
