#include "rlx/lang/builders/splat.h"

#include "rlx/lang/graph.h"
#include "rlx/transform/splat_backward.h"

namespace rlx {
namespace {

SplatPictureValues values(const ops::SplatPicture& p) { return {p.rgba, p.dropped, p.stopped}; }

}  // namespace

ops::SplatInputs SplatBuilder::tensors(const SplatValues& v) {
  return {t(v.positions), t(v.scales), t(v.rotations), t(v.opacities), t(v.colors), t(v.sh), t(v.meta)};
}

SplatPictureValues SplatBuilder::gaussian_splat_render(const SplatValues& inputs,
                                                       const ops::SplatParams& params, const Loc& loc) {
  return build_at(graph(), loc, [&] { return values(ops::gaussian_splat_render(tensors(inputs), params)); });
}

Value SplatBuilder::gaussian_splat_render_meta(const ops::SplatVector& camera_position,
                                               const ops::SplatVector& camera_target,
                                               const ops::SplatVector& camera_up, double fov_y_degrees,
                                               double near, double far, const ops::SplatVector& background,
                                               const Loc& loc) {
  return one({}, loc, [&] {
    return ops::gaussian_splat_render_meta(graph(), camera_position, camera_target, camera_up, fov_y_degrees,
                                           near, far, background);
  });
}

SplatPreparedValues SplatBuilder::gaussian_splat_prepare(const SplatValues& inputs,
                                                         const ops::SplatParams& params, const Loc& loc) {
  return build_at(graph(), loc, [&]() -> SplatPreparedValues {
    const auto p = ops::gaussian_splat_prepare(tensors(inputs), params);
    return {p.color, p.opacity, p.origin, p.transform, p.rays, p.ids, p.ranges, p.dropped};
  });
}

SplatPictureValues SplatBuilder::gaussian_splat_rasterize(const SplatPreparedValues& p, Value meta,
                                                          const ops::SplatParams& params, const Loc& loc) {
  return build_at(graph(), loc, [&] {
    const ops::SplatPrepared prepared{t(p.color), t(p.opacity), t(p.origin), t(p.transform),
                                      t(p.rays),  t(p.ids),     t(p.ranges), t(p.dropped)};
    return values(ops::gaussian_splat_rasterize(prepared, t(meta), params));
  });
}

SplatPictureValues SplatBuilder::gaussian_splat_render_decomposed(const SplatValues& inputs,
                                                                  const ops::SplatParams& params,
                                                                  const Loc& loc) {
  return build_at(graph(), loc,
                  [&] { return values(ops::gaussian_splat_render_decomposed(tensors(inputs), params)); });
}

SplatValues SplatBuilder::gaussian_splat_render_backward(const SplatValues& inputs, Value d_loss_rgba,
                                                         const ops::SplatParams& params, const Loc& loc) {
  return build_at(graph(), loc, [&]() -> SplatValues {
    const auto d = transform::gaussian_splat_render_backward(tensors(inputs), t(d_loss_rgba), params);
    return {d.positions, d.scales, d.rotations, d.opacities, d.colors, d.sh, d.meta};
  });
}

}  // namespace rlx
