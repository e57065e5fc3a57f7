#include "rlx/ops/splat/params.h"

#include "rlx/ops/require.h"

namespace rlx::ops::detail {

void check_splat_params(Infer& c, const SplatParams& p) {
  if (p.width < 1 || p.height < 1 || p.tile_size < 1) {
    c.fail("width ", p.width, ", height ", p.height, ", tile_size ", p.tile_size, "; they must be 1 or more");
  }
  if (p.max_splat_steps < 1 || p.max_list_entries < 1) {
    c.fail("max_splat_steps ", p.max_splat_steps, ", max_list_entries ", p.max_list_entries,
           "; they must be 1 or more");
  }
  if (!(p.radius_scale > 0) || !(p.alpha_cutoff > 0))
    c.fail("radius_scale ", p.radius_scale, ", alpha_cutoff ", p.alpha_cutoff, "; they must be positive");
}

Dim check_splats(Infer& c, int meta) {
  c.require_float(0);
  for (int i = 1; i < c.count(); ++i) c.same_dtype({0, i});
  c.require_rank(3, 1);
  const Dim count = c.in(3).dim(0);
  require_dims(c, 0, {count, 3}, "(splats, xyz)");
  require_dims(c, 1, {count, 3}, "(splats, logarithms of the radii)");
  require_dims(c, 2, {count, 4}, "(splats, wxyz)");
  require_dims(c, meta, {kSplatMeta}, "(see gaussian_splat_render_meta)");
  return count;
}

std::vector<std::string> splat_sample(const std::string& t, int n, int k) {
  return {cat(t, "[", n, ",3] in -0.4..0.4"),
          cat(t, "[", n, ",3] in -1.6..-0.9"),
          cat(t, "[", n, ",4] positive"),
          cat(t, "[", n, "] in -1..1"),
          cat(t, "[", n, ",3] unit"),
          cat(t, "[", n, ",", k, ",3] in 0.1..0.5"),
          cat(t, "[15] near 0.3 0.2 -3 0.05 -0.02 0.1 0.1 1 0.05 40 0.1 50 0.2 0.3 0.4")};
}

}  // namespace rlx::ops::detail
