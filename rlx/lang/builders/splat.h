// Gaussian splatting, token sampling and functions with several results.
#pragma once

#include "rlx/lang/builders/backward.h"
#include "rlx/ops/splat/render.h"

namespace rlx {

/// Operands of a splat render, one row per splat, and the camera.
struct SplatValues {
  Value positions, scales, rotations, opacities, colors, sh, meta;
};
struct SplatPictureValues {
  Value rgba, dropped, stopped;
};
struct SplatPreparedValues {
  Value color, opacity, origin, transform, rays, ids, ranges, dropped;
};

/// The results of a function with several, by number. Nothing is packed: `offsets` are where result i would
/// start, in elements, if all were one after another.
struct MultiOutputHandle {
  Value source;
  Shapes sub_shapes;
  Dims offsets;
  size_t n_outputs = 0;

  Value output(const ir::Graph& g, size_t i) const;
};

class SplatBuilder : public BackwardBuilder {
 public:
  using BackwardBuilder::BackwardBuilder;

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

  /// A token per row of logits, i32 or the dtype of `output_shape`. `counter` numbers the draws: the same
  /// seed and counter draw the same token, so a graph that runs more than once takes it as an input. Without
  /// one, each call of this method in a graph has a counter of its own, and every run repeats its draw.
  Value sample(Value logits, int64_t top_k, double top_p, double temperature, int64_t seed,
               const Declared& output_shape = {}, std::optional<Value> counter = {},
               const Loc& loc = Loc::current());

  MultiOutputHandle custom_fn_multi(const Values& inputs, const ir::Graph& fwd_body,
                                    const std::optional<ir::Graph>& vjp_body = {},
                                    const std::optional<ir::Graph>& jvp_body = {},
                                    const Loc& loc = Loc::current());

 private:
  ops::SplatInputs tensors(const SplatValues& v);
};

}  // namespace rlx
