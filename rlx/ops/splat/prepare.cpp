#include "rlx/ops/splat/prepare.h"

#include <cmath>

#include "rlx/ir/leaves.h"
#include "rlx/ops/elementwise/activation.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/require.h"
#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/expand.h"
#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/splat/lists.h"

namespace rlx::ops {
namespace {

// Vectors along the last axis.
Expr unit(Expr v) { return v * rsqrt(reduce_sum(square(v), {-1}, true)); }

Expr cross(Expr a, Expr b) {
  const auto rolled = [](Expr v, int64_t by) {
    return concat({narrow(v, 0, by, 3 - by), narrow(v, 0, 0, by)}, 0);
  };
  return rolled(a, 1) * rolled(b, 2) - rolled(a, 2) * rolled(b, 1);
}

Expr column(Expr x, int64_t i) { return narrow(x, 1, i, 1); }

// The transposed rotation of each quaternion, [n, 3, 3].
Expr axes_of(Expr rotations) {
  const Expr q = unit(rotations);
  const Expr w = column(q, 0), x = column(q, 1), y = column(q, 2), z = column(q, 3);
  const auto diagonal = [](Expr a, Expr b) { return 1.0 - (a * a + b * b) * 2.0; };
  const Expr rows = concat(
      {diagonal(y, z), (x * y + w * z) * 2.0, (x * z - w * y) * 2.0, (x * y - w * z) * 2.0, diagonal(x, z),
       (y * z + w * x) * 2.0, (x * z + w * y) * 2.0, (y * z - w * x) * 2.0, diagonal(x, y)},
      1);
  return reshape(rows, {rotations.dim(0), 3, 3});
}

// Real spherical harmonics of unit vectors [n, 3] with the signs customary in
// splatting, [n, count].
Expr harmonics(Expr d, int64_t count) {
  const Expr x = column(d, 0), y = column(d, 1), z = column(d, 2);
  Exprs out{full(*d.graph, Shape(d.dtype(), {d.dim(0), 1}), 0.28209479177387814)};
  if (count > 1) {
    const double c1 = 0.4886025119029199;
    out.insert(out.end(), {y * -c1, z * c1, x * -c1});
  }
  if (count > 4) {
    const double a = 1.0925484305920792;
    out.insert(out.end(), {x * y * a, y * z * -a, (z * z * 2.0 - x * x - y * y) * 0.31539156525252005,
                           x * z * -a, (x * x - y * y) * (a / 2)});
  }
  if (count > 9) {
    const double b = 0.5900435899266435, e = 0.4570457994644658;
    const Expr xx = x * x, yy = y * y, zz = z * z;
    out.insert(out.end(),
               {y * (xx * 3.0 - yy) * -b, x * y * z * 2.890611442640554, y * (zz * 4.0 - xx - yy) * -e,
                z * (zz * 2.0 - xx * 3.0 - yy * 3.0) * 0.3731763325901154, x * (zz * 4.0 - xx - yy) * -e,
                z * (xx - yy) * 1.445305721320277, x * (xx - yy * 3.0) * -b});
  }
  return concat(out, 1);
}

// f + x r + y u for every pixel centre, [height, width, 3].
Expr rays_of(Expr meta, const SplatParams& p) {
  const auto part = [&](int64_t at, int64_t len) { return narrow(meta, 0, at, len); };
  const Expr forward = unit(part(3, 3) - part(0, 3)), right = unit(cross(part(6, 3), forward)),
             up = unit(cross(forward, right));
  const Expr per_pixel = tan(part(9, 1) * (M_PI / 360)) / (0.5 * double(p.height));
  const auto centres = [&](int64_t count, Dims dims) {
    std::vector<double> v;
    for (int64_t i = 0; i < count; ++i) v.push_back(double(i) + 0.5 - 0.5 * double(count));
    return Expr{meta.graph, meta.graph->constant(Literal::reals(Shape(meta.dtype(), std::move(dims)), v))};
  };
  const Expr x = centres(p.width, {1, p.width, 1}), y = centres(p.height, {p.height, 1, 1});
  return forward + x * per_pixel * right + y * per_pixel * up;
}

}  // namespace

Shapes GaussianSplatPrepare::infer(Infer& c, Attrs& a) {
  detail::check_splat_params(c, a);
  const Dim n = detail::check_splats(c, 6);
  require_dims(c, 4, {n, 3}, "(splats, rgb)");
  c.require_rank(5, 3);
  const Dim k = c.in(5).dim(1);
  if (!k.is_static() || (k != Dim(0) && k != Dim(1) && k != Dim(4) && k != Dim(9) && k != Dim(16)))
    c.fail("sh: ", c.in(5), " has ", k, " harmonics; it must have 0, 1, 4, 9 or 16 (bands 0 to 3)");
  require_dims(c, 5, {n, k, 3}, "(splats, harmonics, rgb)");
  const auto real = [&](Dims dims) { return c.in(0).with_dims(std::move(dims)); };
  return {real({n, 3}),
          real({n}),
          real({n, 3}),
          real({n, 3, 3}),
          real({a.height, a.width, 3}),
          Shape(DType::i32, {a.max_list_entries}),
          Shape(DType::i32, {a.tiles(), 2}),
          Shape(DType::i32, {})};
}

Exprs GaussianSplatPrepare::decompose(const Lower& c, const Attrs& a) {
  const Expr positions = c.in(0), scales = c.in(1), rotations = c.in(2), opacities = c.in(3),
             colors = c.in(4), sh = c.in(5), meta = c.in(6);
  const Expr to_camera = narrow(meta, 0, 0, 3) - positions;
  const Expr inverse_radii = exp(-scales) / a.radius_scale;
  const Expr transform = axes_of(rotations) * unsqueeze(inverse_radii, 2);
  const Expr origin = squeeze(matmul(transform, unsqueeze(to_camera, 2)), 2);
  Expr color = colors;
  if (const int64_t k = sh.dim(1).value(); k > 0)
    color = reduce_sum(unsqueeze(harmonics(unit(to_camera), k), 2) * sh, {1}) + 0.5;
  const Exprs lists =
      make_all<GaussianSplatLists>(c.graph, a, {positions, scales, rotations, opacities, meta});
  return {color, sigmoid(opacities), origin, transform, rays_of(meta, a), lists[0], lists[1], lists[2]};
}

std::vector<OpSample<GaussianSplatPrepare::Attrs>> GaussianSplatPrepare::samples() {
  using detail::splat_sample;
  const SplatParams tiny{
      .width = 3, .height = 2, .tile_size = 2, .alpha_cutoff = 1e-3, .max_list_entries = 9};
  return {{tiny, splat_sample("f32", 2, 0)},  {tiny, splat_sample("f64", 1, 1)},
          {tiny, splat_sample("f32", 2, 4)},  {tiny, splat_sample("f64", 1, 9)},
          {tiny, splat_sample("f32", 1, 16)}, {tiny, splat_sample("f32", 0, 1)},
          {tiny, splat_sample("f16", 1, 1)}};
}

}  // namespace rlx::ops
