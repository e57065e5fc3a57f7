// Gaussian splatting: a picture of a cloud of splats, as one differentiable
// function.
#pragma once

#include <array>

#include "rlx/ops/splat/params.h"

namespace rlx::ops {

struct GaussianSplatRender {
  static constexpr std::string_view name = "gaussian_splat_render", summary = "A picture of Gaussian splats.",
                                    operands = "positions, scales, rotations, opacities, colors, sh, meta",
                                    results = "rgba, dropped, stopped";
  static constexpr std::string_view doc =
      "rgba [height, width, 4] = gaussian_splat_rasterize(gaussian_splat_prepare(operands)): linear colours "
      "over the background and 1 - T, the light that does not pass. dropped i32 counts list entries beyond "
      "max_list_entries and stopped i32 the pixels cut short by max_splat_steps; both are 0 when no limit "
      "was hit";
  using Attrs = SplatParams;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct SplatInputs {
  Expr positions, scales, rotations, opacities, colors, sh, meta;
};
struct SplatPicture {
  Expr rgba, dropped, stopped;
};
struct SplatPrepared {
  Expr color, opacity, origin, transform, rays, ids, ranges, dropped;
};

SplatPicture gaussian_splat_render(const SplatInputs&, const SplatParams&);
SplatPrepared gaussian_splat_prepare(const SplatInputs&, const SplatParams&);
/// Of `meta` only the background is read; the camera is in `prepared`.
SplatPicture gaussian_splat_rasterize(const SplatPrepared& prepared, Expr meta, const SplatParams&);
/// The same picture as gaussian_splat_render, made of the two steps above.
SplatPicture gaussian_splat_render_decomposed(const SplatInputs&, const SplatParams&);

using SplatVector = std::array<double, 3>;
/// The camera and background as a constant f32 [15].
Expr gaussian_splat_render_meta(Graph&, const SplatVector& camera_position, const SplatVector& camera_target,
                                const SplatVector& camera_up, double fov_y_degrees, double near, double far,
                                const SplatVector& background);

}  // namespace rlx::ops
