// Blending prepared splats into a picture.
#pragma once

#include "rlx/ops/splat/params.h"

namespace rlx::ops {

struct GaussianSplatRasterize {
  static constexpr std::string_view name = "gaussian_splat_rasterize",
                                    summary = "Prepared splats blended front to back.",
                                    operands =
                                        "color, opacity, origin, transform, rays, ids, ranges, background",
                                    results = "rgba, stopped";
  static constexpr std::string_view doc =
      "For each pixel and each splat of its tile's list in order: with o the "
      "origin and d = transform ray, "
      "D = |o|^2 - (o.d)^2 / |d|^2 is the squared distance of the ray from the "
      "splat and a = opacity e^(-D/2); "
      "left out when a < alpha_cutoff or o.d >= 0 (behind). C += T a color, T "
      "*= 1 - a, until T < "
      "transmittance_threshold or max_splat_steps splats are blended. rgba "
      "[height, width, 4] = "
      "(max(C + T background, 0), 1 - T). stopped i32 counts the pixels that "
      "max_splat_steps cut short";
  using Attrs = SplatParams;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

}  // namespace rlx::ops
