// Gaussian splatting.
#pragma once

#include "rlx/lang/builders/builder.h"
#include "rlx/ops/splat/render.h"

namespace rlx {

/// Operands of a splat render, one row per splat, and the camera.
struct SplatValues {
  Value positions, scales, rotations, opacities, colors, sh, meta;
};
/// A picture, how many splats found no room, and where each pixel stopped.
struct SplatPictureValues {
  Value rgba, dropped, stopped;
};
/// Splats as the camera sees them, with the lists of each tile.
struct SplatPreparedValues {
  Value color, opacity, origin, transform, rays, ids, ranges, dropped;
};

/// Gaussian splatting.
class SplatBuilder : public BuilderTheme<SplatBuilder> {
 public:
  SplatPictureValues gaussian_splat_render(const SplatValues& inputs, const ops::SplatParams& params,
                                           const Loc& loc = Loc::current());
  Value gaussian_splat_render_meta(const ops::SplatVector& camera_position,
                                   const ops::SplatVector& camera_target, const ops::SplatVector& camera_up,
                                   double fov_y_degrees, double near, double far,
                                   const ops::SplatVector& background, const Loc& loc = Loc::current());
  SplatPreparedValues gaussian_splat_prepare(const SplatValues& inputs, const ops::SplatParams& params,
                                             const Loc& loc = Loc::current());
  SplatPictureValues gaussian_splat_rasterize(const SplatPreparedValues& prepared, Value meta,
                                              const ops::SplatParams& params,
                                              const Loc& loc = Loc::current());
  SplatPictureValues gaussian_splat_render_decomposed(const SplatValues& inputs,
                                                      const ops::SplatParams& params,
                                                      const Loc& loc = Loc::current());
  /// Gradients of the operands for the cotangent of rgba; those of camera and background are in meta.
  SplatValues gaussian_splat_render_backward(const SplatValues& inputs, Value d_loss_rgba,
                                             const ops::SplatParams& params, const Loc& loc = Loc::current());

 private:
  ops::SplatInputs tensors(const SplatValues& v);
};

}  // namespace rlx
