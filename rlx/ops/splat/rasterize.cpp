#include "rlx/ops/splat/rasterize.h"

#include <cmath>

#include "rlx/ir/leaves.h"
#include "rlx/ops/elementwise/activation.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/index/gather.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/reduce/cumulative.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/require.h"
#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::ops {

Shapes GaussianSplatRasterize::infer(Infer& c, Attrs& a) {
  detail::check_splat_params(c, a);
  c.require_float(0);
  for (const int i : {1, 2, 3, 4, 7}) c.same_dtype({0, i});
  c.require_rank(1, 1);
  const Dim n = c.in(1).dim(0);
  require_dims(c, 0, {n, 3}, "(splats, rgb)");
  require_dims(c, 2, {n, 3}, "(splats, xyz)");
  require_dims(c, 3, {n, 3, 3}, "(splats, 3, 3)");
  require_dims(c, 4, {a.height, a.width, 3}, "(height, width, xyz)");
  for (const int i : {5, 6}) {
    if (!is_integer(c.in(i).dtype())) c.fail(c.operand_name(i), ": ", c.in(i), " must hold integers");
  }
  require_dims(c, 5, {a.max_list_entries}, "(max_list_entries)");
  require_dims(c, 6, {a.tiles(), 2}, "(tiles, begin and end)");
  require_dims(c, 7, {3}, "(rgb)");
  return {c.in(0).with_dims({a.height, a.width, 4}), Shape(DType::i32, {})};
}

Literals GaussianSplatRasterize::reference(const Eval& c, const Attrs& a) {
  const auto color = c.in(0).to_reals(), opacity = c.in(1).to_reals(), origin = c.in(2).to_reals(),
             transform = c.in(3).to_reals(), rays = c.in(4).to_reals(), background = c.in(7).to_reals();
  const auto ids = c.in(5).to_integers(), ranges = c.in(6).to_integers();
  for (const int64_t end : ranges) {
    if (end < 0 || end > a.max_list_entries)
      throw invalid("gaussian_splat_rasterize: ranges hold ", end, "; ids have ", a.max_list_entries,
                    " entries");
  }
  std::vector<double> rgba;
  int64_t stopped = 0;
  for (int64_t y = 0; y < a.height; ++y) {
    for (int64_t x = 0; x < a.width; ++x) {
      const double* ray = rays.data() + 3 * (y * a.width + x);
      const auto tile = size_t(y / a.tile_size * a.tiles_x() + x / a.tile_size);
      double sum[3] = {}, light = 1;
      int64_t steps = 0;
      for (int64_t entry = ranges[2 * tile]; entry < ranges[2 * tile + 1]; ++entry) {
        if (light < a.transmittance_threshold) break;
        const auto id = size_t(ids[size_t(entry)]);
        if (id >= opacity.size()) {
          throw invalid("gaussian_splat_rasterize: entry ", entry, " of ids is ", ids[size_t(entry)],
                        "; there are ", opacity.size(), " splats");
        }
        const double *o = origin.data() + 3 * id, *m = transform.data() + 9 * id;
        double oo = 0, od = 0, dd = 0;
        for (int i = 0; i < 3; ++i) {
          const double d = m[3 * i] * ray[0] + m[3 * i + 1] * ray[1] + m[3 * i + 2] * ray[2];
          oo += o[i] * o[i], od += o[i] * d, dd += d * d;
        }
        const double alpha = opacity[id] * std::exp(-0.5 * (oo - od * od / dd));
        if (!(od < 0) || !(alpha >= a.alpha_cutoff)) continue;
        if (steps++ == a.max_splat_steps) {
          ++stopped;
          break;
        }
        for (size_t i = 0; i < 3; ++i) sum[i] += light * alpha * color[3 * id + i];
        light *= 1 - alpha;
      }
      for (size_t i = 0; i < 3; ++i) rgba.push_back(std::max(sum[i] + light * background[i], 0.0));
      rgba.push_back(1 - light);
    }
  }
  return {Literal::reals(c.out(0), rgba), Literal::integers(c.out(1), std::vector<int64_t>{stopped})};
}

namespace {

// [height, width, k] <-> [tiles, pixels of a tile, k]; tiles that stick out are
// filled with ones.
Expr to_tiles(Expr x, const SplatParams& p) {
  const int64_t s = p.tile_size, k = x.dim(2).value();
  const auto fill = [&](int64_t rows, int64_t columns) {
    return full(*x.graph, Shape(x.dtype(), {rows, columns, k}), 1);
  };
  if (const int64_t extra = p.tiles_x() * s - p.width) x = concat({x, fill(p.height, extra)}, 1);
  if (const int64_t extra = p.tiles_y() * s - p.height) x = concat({x, fill(extra, p.tiles_x() * s)}, 0);
  x = transpose(reshape(x, {p.tiles_y(), s, p.tiles_x(), s, k}), {0, 2, 1, 3, 4});
  return reshape(x, {p.tiles(), s * s, k});
}

Expr from_tiles(Expr x, const SplatParams& p) {
  const int64_t s = p.tile_size;
  const Dim k = x.dim(2);
  x = transpose(reshape(x, {p.tiles_y(), p.tiles_x(), s, s, k}), {0, 2, 1, 3, 4});
  x = reshape(x, {p.tiles_y() * s, p.tiles_x() * s, k});
  return narrow(narrow(x, 0, 0, p.height), 1, 0, p.width);
}

}  // namespace

// All entries of a tile's list against all its pixels, [tiles, entries,
// pixels].
Exprs GaussianSplatRasterize::decompose(const Lower& c, const Attrs& a) {
  Graph& g = c.graph;
  const int64_t tiles = a.tiles(), entries = a.max_list_entries;
  const Expr first = narrow(c.in(6), 1, 0, 1), last = narrow(c.in(6), 1, 1, 1);
  const Expr place = reshape(cumsum(full(g, Shape(first.dtype(), {entries}), 1), 0, true), {1, entries});
  const Expr in_list = unsqueeze(less(place, last - first), 2);
  // Places behind the end of a list read a row of zeros added to each table.
  const Expr nobody = count_like(full(g, Shape(c.in(5).dtype(), {c.in(1).dim(0)}), 0), {0});
  const Expr all_ids = concat({c.in(5), reshape(nobody, {1})}, 0);
  const Expr at = min(first + place, scalar_like(first, double(entries)));
  const Expr id = gather(all_ids, at, 0);
  const auto rows = [&](Expr table) {
    Dims dims = table.shape().dims();
    dims[0] = 1;
    return gather(concat({table, full(g, table.shape().with_dims(dims), 0)}, 0), id, 0);
  };
  const Expr color = rows(c.in(0)), opacity = unsqueeze(rows(c.in(1)), 2), origin = rows(c.in(2)),
             transform = reshape(rows(c.in(3)), {tiles, entries * 3, 3});
  const Expr rays = to_tiles(c.in(4), a);
  const Dim pixels = rays.dim(1);
  const Expr d = reshape(matmul(transform, swap_last(rays)), {tiles, entries, 3, pixels});
  const Expr o = unsqueeze(origin, 3);
  const Expr od = reduce_sum(o * d, {2}), oo = reduce_sum(square(o), {2});
  const Expr dd = where(in_list, reduce_sum(square(d), {2}), scalar_like(d, 1));
  const Expr zero = scalar_like(d, 0);
  Expr alpha = opacity * exp((oo - square(od) / dd) * -0.5);
  alpha = where(less(alpha, scalar_like(d, a.alpha_cutoff)), zero, alpha);
  alpha = where(less(od, zero), where(in_list, alpha, zero), zero);
  const Expr hit = cast(greater(alpha, zero), d.dtype());
  const Expr has_step = less(cumsum(hit, 1, true), scalar_like(d, double(a.max_splat_steps)));
  const Expr stepped = where(has_step, alpha, zero);
  const Expr dark = less(cumprod(1.0 - stepped, 1, true), scalar_like(d, a.transmittance_threshold));
  const Expr used = where(dark, zero, stepped);
  const Expr weight = used * cumprod(1.0 - used, 1, true);
  const Expr light = unsqueeze(reduce(1.0 - used, ReduceOp::prod, {1}, false), 2);
  const Expr rgb = relu(matmul(swap_last(weight), color) + light * c.in(7));
  const Expr cut = reduce_max(where(dark, zero, where(has_step, zero, hit)), {1});
  const Expr picture = from_tiles(concat({rgb, 1.0 - light, unsqueeze(cut, 2)}, 2), a);
  return {narrow(picture, 2, 0, 4), cast(reduce_sum(narrow(picture, 2, 4, 1), {0, 1, 2}), DType::i32)};
}

std::vector<OpSample<GaussianSplatRasterize::Attrs>> GaussianSplatRasterize::samples() {
  const auto sample = [](SplatParams p, const std::string& t, int n, const char* ids, const char* ranges) {
    const std::string count = cat("[", n);
    return OpSample<Attrs>{
        p,
        {t + count + ",3] unit", t + count + "] in 0.2..0.8", t + count + ",3] in -0.6..-0.2",
         t + count + ",3,3] unit", cat(t, "[", p.height, ",", p.width, ",3] positive"),
         cat("i32[", p.max_list_entries, "]", ids), cat("i32[", p.tiles(), ",2]", ranges),
         t + "[3] positive"}};
  };
  SplatParams p{.width = 3,
                .height = 2,
                .tile_size = 2,
                .alpha_cutoff = 1e-3,
                .transmittance_threshold = 1e-3,
                .max_list_entries = 4};
  SplatParams one = p, steps = p;
  one.width = one.height = one.tile_size = 1;
  steps.max_splat_steps = 1;
  return {sample(p, "f32", 3, " <3", " <4"),     sample(p, "f64", 2, " <2", " <4"),
          sample(one, "f32", 1, " <1", " <3"),   sample(p, "f32", 0, " <1", " <1"),
          sample(steps, "f32", 3, " <3", " <4"), sample(p, "f16", 2, " <2", " <3")};
}

}  // namespace rlx::ops
