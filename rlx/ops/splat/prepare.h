// From splats and a camera to what a pixel needs of each splat.
#pragma once

#include "rlx/ops/splat/params.h"

namespace rlx::ops {

struct GaussianSplatPrepare {
  static constexpr std::string_view name = "gaussian_splat_prepare",
                                    summary = "Splats as seen by a camera, ready to be drawn.",
                                    operands = "positions, scales, rotations, opacities, colors, sh, meta",
                                    results = "color, opacity, origin, transform, rays, ids, ranges, dropped";
  static constexpr std::string_view doc =
      "positions [n,3], scales [n,3] (logarithms), rotations [n,4] "
      "(quaternions wxyz, normalised here), "
      "opacities [n] (logits), colors [n,3], sh [n,k,3] with k 0, 1, 4, 9 or "
      "16 harmonics, meta [15] (see "
      "gaussian_splat_render_meta). transform = diag(1 / (e^scale "
      "radius_scale)) R^T maps to the space in "
      "which the splat is a unit Gaussian, origin is the camera there, opacity "
      "= sigmoid(logit), color = 1/2 "
      "+ harmonics of the unit vector from splat to camera, or colors where k "
      "= 0 (they are not used "
      "otherwise). rays [height, width, 3] = f + x r + y u through pixel "
      "centres, f forward, r = up x f, u = "
      "f x r; rows go along u. ids, ranges and dropped are those of "
      "gaussian_splat_lists";
  using Attrs = SplatParams;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

}  // namespace rlx::ops
