#include "rlx/lang/builders/splat.h"

#include "rlx/ops/control/custom_fn.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/random/sample.h"
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
  return build_at(*this, loc, [&] { return values(ops::gaussian_splat_render(tensors(inputs), params)); });
}

Value SplatBuilder::gaussian_splat_render_meta(const ops::SplatVector& camera_position,
                                               const ops::SplatVector& camera_target,
                                               const ops::SplatVector& camera_up, double fov_y_degrees,
                                               double near, double far, const ops::SplatVector& background,
                                               const Loc& loc) {
  return one({}, loc, [&] {
    return ops::gaussian_splat_render_meta(*this, camera_position, camera_target, camera_up, fov_y_degrees,
                                           near, far, background);
  });
}

SplatPreparedValues SplatBuilder::gaussian_splat_prepare(const SplatValues& inputs,
                                                         const ops::SplatParams& params, const Loc& loc) {
  return build_at(*this, loc, [&]() -> SplatPreparedValues {
    const auto p = ops::gaussian_splat_prepare(tensors(inputs), params);
    return {p.color, p.opacity, p.origin, p.transform, p.rays, p.ids, p.ranges, p.dropped};
  });
}

SplatPictureValues SplatBuilder::gaussian_splat_rasterize(const SplatPreparedValues& p, Value meta,
                                                          const ops::SplatParams& params, const Loc& loc) {
  return build_at(*this, loc, [&] {
    const ops::SplatPrepared prepared{t(p.color), t(p.opacity), t(p.origin), t(p.transform),
                                      t(p.rays),  t(p.ids),     t(p.ranges), t(p.dropped)};
    return values(ops::gaussian_splat_rasterize(prepared, t(meta), params));
  });
}

SplatPictureValues SplatBuilder::gaussian_splat_render_decomposed(const SplatValues& inputs,
                                                                  const ops::SplatParams& params,
                                                                  const Loc& loc) {
  return build_at(*this, loc,
                  [&] { return values(ops::gaussian_splat_render_decomposed(tensors(inputs), params)); });
}

SplatValues SplatBuilder::gaussian_splat_render_backward(const SplatValues& inputs, Value d_loss_rgba,
                                                         const ops::SplatParams& params, const Loc& loc) {
  return build_at(*this, loc, [&]() -> SplatValues {
    const auto d = transform::gaussian_splat_render_backward(tensors(inputs), t(d_loss_rgba), params);
    return {d.positions, d.scales, d.rotations, d.opacities, d.colors, d.sh, d.meta};
  });
}

Value SplatBuilder::sample(Value logits, int64_t top_k, double top_p, double temperature, int64_t seed,
                           const Declared& output_shape, std::optional<Value> counter, const Loc& loc) {
  return one(output_shape, loc, [&] {
    const auto number = [&](int64_t v) {
      return t(ir::Graph::constant(Literal::scalar(DType::i64, double(v))));
    };
    const int64_t call_site = next_id();  // no other call in this graph has it
    const ir::Expr token = ops::sample(t(logits), number(0), counter ? t(*counter) : number(call_site), top_k,
                                       top_p, temperature, seed);
    const bool other =
        output_shape && is_integer(output_shape->dtype()) && output_shape->dtype() != token.dtype();
    return other ? ops::cast(token, output_shape->dtype()) : token;
  });
}

MultiOutputHandle SplatBuilder::custom_fn_multi(const Values& inputs, const ir::Graph& fwd_body,
                                                const std::optional<ir::Graph>& vjp_body,
                                                const std::optional<ir::Graph>& jvp_body, const Loc& loc) {
  return build_at(*this, loc, [&] {
    const ir::Exprs results = ops::custom_fn(*this, ts(inputs), fwd_body, vjp_body, jvp_body);
    if (results.empty()) throw invalid("custom_fn_multi: the body of '", fwd_body.name(), "' has no outputs");
    MultiOutputHandle out{results[0], {}, {}, results.size()};
    Dim offset = 0;
    for (const ir::Expr& r : results) {
      out.sub_shapes.push_back(r.shape());
      out.offsets.push_back(offset);
      offset = offset + r.shape().num_elements();
    }
    return out;
  });
}

Value MultiOutputHandle::output(const ir::Graph& g, size_t i) const {
  if (i >= n_outputs) throw invalid("custom_fn_multi: there is no output ", i, "; it has ", n_outputs);
  return g.value(source.node, uint32_t(i));
}

}  // namespace rlx
