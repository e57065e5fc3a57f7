#include "rlx/ops/splat/render.h"

#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/splat/prepare.h"
#include "rlx/ops/splat/rasterize.h"

namespace rlx::ops {

Shapes GaussianSplatRender::infer(Infer& c, Attrs& a) {
  const Shapes prepared = GaussianSplatPrepare::infer(c, a);
  return {c.in(0).with_dims({a.height, a.width, 4}), prepared.back(), Shape(DType::i32, {})};
}

Exprs GaussianSplatRender::decompose(const Lower& c, const Attrs& a) {
  const SplatPicture y =
      gaussian_splat_render_decomposed({c.in(0), c.in(1), c.in(2), c.in(3), c.in(4), c.in(5), c.in(6)}, a);
  return {y.rgba, y.dropped, y.stopped};
}

std::vector<OpSample<GaussianSplatRender::Attrs>> GaussianSplatRender::samples() {
  SplatParams tiny{.width = 3,
                   .height = 2,
                   .tile_size = 2,
                   .alpha_cutoff = 1e-4,
                   .transmittance_threshold = 1e-4,
                   .max_list_entries = 6};
  SplatParams one = tiny, wide = tiny;
  one.width = one.height = one.tile_size = 1;
  wide.width = 5, wide.tile_size = 16, wide.max_list_entries = 2;
  using detail::splat_sample;
  return {{tiny, splat_sample("f32", 2, 0)}, {tiny, splat_sample("f64", 3, 4)},
          {one, splat_sample("f32", 1, 1)},  {tiny, splat_sample("f32", 0, 0)},
          {wide, splat_sample("f32", 2, 9)}, {tiny, splat_sample("f16", 1, 16)}};
}

namespace {

Values operands_of(const SplatInputs& in) {
  return {in.positions, in.scales, in.rotations, in.opacities, in.colors, in.sh, in.meta};
}

}  // namespace

SplatPicture gaussian_splat_render(const SplatInputs& in, const SplatParams& params) {
  const Exprs y = make_all<GaussianSplatRender>(*in.positions.graph, params, operands_of(in));
  return {y[0], y[1], y[2]};
}

SplatPrepared gaussian_splat_prepare(const SplatInputs& in, const SplatParams& params) {
  const Exprs y = make_all<GaussianSplatPrepare>(*in.positions.graph, params, operands_of(in));
  return {y[0], y[1], y[2], y[3], y[4], y[5], y[6], y[7]};
}

SplatPicture gaussian_splat_rasterize(const SplatPrepared& p, Expr meta, const SplatParams& params) {
  const Exprs y = make_all<GaussianSplatRasterize>(
      *meta.graph, params,
      {p.color, p.opacity, p.origin, p.transform, p.rays, p.ids, p.ranges, narrow(meta, 0, 12, 3)});
  return {y[0], p.dropped, y[1]};
}

SplatPicture gaussian_splat_render_decomposed(const SplatInputs& in, const SplatParams& params) {
  return gaussian_splat_rasterize(gaussian_splat_prepare(in, params), in.meta, params);
}

Expr gaussian_splat_render_meta(Graph& g, const SplatVector& camera_position,
                                const SplatVector& camera_target, const SplatVector& camera_up,
                                double fov_y_degrees, double near, double far,
                                const SplatVector& background) {
  if (!(fov_y_degrees > 0 && fov_y_degrees < 180)) {
    throw invalid("gaussian_splat_render_meta: fov_y_degrees is ", fov_y_degrees,
                  "; it must lie between 0 and 180");
  }
  if (!(near >= 0 && near < far))
    throw invalid("gaussian_splat_render_meta: near is ", near, " and far ", far,
                  "; 0 <= near < far is needed");
  std::vector<double> meta;
  for (const SplatVector* v : {&camera_position, &camera_target, &camera_up})
    meta.insert(meta.end(), v->begin(), v->end());
  meta.insert(meta.end(), {fov_y_degrees, near, far});
  meta.insert(meta.end(), background.begin(), background.end());
  return {&g, g.constant(Literal::reals(Shape(DType::f32, {kSplatMeta}), meta))};
}

}  // namespace rlx::ops
