// Gaussian splatting in f32: the view of a cloud, the lists of the tiles, and the picture.
#include "rlx/backend/cpu/kernels/splat.h"

#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/backend/cpu/nodes/families.h"
#include "rlx/ops/splat/lists.h"
#include "rlx/ops/splat/prepare.h"
#include "rlx/ops/splat/rasterize.h"

namespace rlx::cpu {
namespace {

float* f32_out(const Launch& l, size_t i) { return reinterpret_cast<float*>(l.out[i]); }
int32_t* i32_out(const Launch& l, size_t i) { return reinterpret_cast<int32_t*>(l.out[i]); }

SplatPicture picture_of(const ops::SplatParams& a) {
  return {.width = a.width,
          .height = a.height,
          .tile_size = a.tile_size,
          .radius_scale = a.radius_scale,
          .alpha_cutoff = a.alpha_cutoff,
          .max_splat_steps = a.max_splat_steps,
          .transmittance_threshold = a.transmittance_threshold,
          .max_list_entries = a.max_list_entries};
}

// `first`: the operands that must be f32.
Support accepts_floats(const Request& r, size_t first) {
  for (size_t i = 0; i < first; ++i) {
    if (r.in[i].dtype() != DType::f32) return Support::no("operand ", i, " is ", r.in[i].dtype());
  }
  if (r.in[0].shape.elements() == 0) return Support::no("there is no splat");
  return all_row_major(r);
}

SplatCloud shapes_of(const Launch& l, int64_t count) {
  return {.count = count,
          .positions = f32(l, 0),
          .scales = f32(l, 1),
          .rotations = f32(l, 2),
          .opacities = f32(l, 3)};
}

// ---- prepare ----

Support accepts_prepare(const Request& r) { return accepts_floats(r, 7); }

std::unique_ptr<Step> prepare_prepare(const Request& r) {
  const SplatPicture picture = picture_of(r.node.as<ops::GaussianSplatPrepare>());
  const int64_t count = r.in[0].shape.dim(0).value(), harmonics = r.in[5].shape.dim(1).value();
  return make_step(
      [picture, count, harmonics](const Launch& l) {
        SplatCloud cloud = shapes_of(l, count);
        cloud.harmonics = harmonics;
        cloud.colors = f32(l, 4);
        cloud.sh = f32(l, 5);
        cloud.meta = f32(l, 6);
        const SplatPrepared out{.color = f32_out(l, 0),
                                .opacity = f32_out(l, 1),
                                .origin = f32_out(l, 2),
                                .transform = f32_out(l, 3),
                                .rays = f32_out(l, 4),
                                .ids = i32_out(l, 5),
                                .ranges = i32_out(l, 6),
                                .dropped = i32_out(l, 7)};
        splat_prepare(l.team, picture, cloud, out, l.workspace);
      },
      splat_prepare_workspace(picture, {.count = count, .harmonics = harmonics}, r.threads));
}

// ---- lists ----

Support accepts_lists(const Request& r) { return accepts_floats(r, 5); }

// What a pixel needs of the splats is made as well and dropped. Without harmonics any three numbers do for
// their colours.
std::unique_ptr<Step> prepare_lists(const Request& r) {
  const SplatPicture picture = picture_of(r.node.as<ops::GaussianSplatLists>());
  const int64_t count = r.in[0].shape.dim(0).value();
  const auto floats = [](int64_t n) { return round_up(size_t(n) * sizeof(float)); };
  const size_t triple = floats(3 * count), single = floats(count), matrix = floats(9 * count);
  const size_t rays = floats(3 * picture.width * picture.height);
  return make_step(
      [=](const Launch& l) {
        SplatCloud cloud = shapes_of(l, count);
        cloud.colors = cloud.positions;
        cloud.meta = f32(l, 4);
        std::byte* at = l.workspace;
        const auto take = [&](size_t bytes) {
          at += bytes;
          return reinterpret_cast<float*>(at - bytes);
        };
        SplatPrepared out{.color = take(triple), .opacity = take(single), .origin = take(triple)};
        out.transform = take(matrix);
        out.rays = take(rays);
        out.ids = i32_out(l, 0);
        out.ranges = i32_out(l, 1);
        out.dropped = i32_out(l, 2);
        splat_prepare(l.team, picture, cloud, out, at);
      },
      2 * triple + single + matrix + rays + splat_prepare_workspace(picture, {.count = count}, r.threads));
}

// ---- the picture ----

Support accepts_rasterize(const Request& r) {
  for (const size_t i : {size_t(5), size_t(6)}) {
    if (r.in[i].dtype() != DType::i32) return Support::no("operand ", i, " is ", r.in[i].dtype());
  }
  if (r.in[7].dtype() != DType::f32) return Support::no("operand 7 is ", r.in[7].dtype());
  return accepts_floats(r, 5);
}

// Lists that point outside are found before anything is drawn.
void check_lists(const Launch& l, const SplatPicture& picture, int64_t count) {
  const auto* ids = reinterpret_cast<const int32_t*>(l.in[5]);
  const auto* ranges = reinterpret_cast<const int32_t*>(l.in[6]);
  for (int64_t t = 0; t < 2 * picture.tiles(); ++t) {
    if (ranges[t] < 0 || ranges[t] > picture.max_list_entries)
      throw invalid("gaussian_splat_rasterize: ranges hold ", ranges[t], "; ids have ",
                    picture.max_list_entries, " entries");
  }
  for (int64_t t = 0; t < picture.tiles(); ++t) {
    for (int64_t e = ranges[2 * t]; e < ranges[2 * t + 1]; ++e) {
      if (ids[e] < 0 || ids[e] >= count)
        throw invalid("gaussian_splat_rasterize: entry ", e, " of ids is ", ids[e], "; there are ", count,
                      " splats");
    }
  }
}

std::unique_ptr<Step> prepare_rasterize(const Request& r) {
  const SplatPicture picture = picture_of(r.node.as<ops::GaussianSplatRasterize>());
  const int64_t count = r.in[1].shape.dim(0).value();
  return make_step(
      [picture, count](const Launch& l) {
        check_lists(l, picture, count);
        const auto in = [&](size_t i) { return reinterpret_cast<float*>(l.in[i]); };
        SplatBlend blend{.count = count};
        blend.in = {.color = in(0), .opacity = in(1), .origin = in(2), .transform = in(3), .rays = in(4)};
        blend.in.ids = reinterpret_cast<int32_t*>(l.in[5]);
        blend.in.ranges = reinterpret_cast<int32_t*>(l.in[6]);
        blend.background = f32(l, 7);
        blend.rgba = f32_out(l, 0);
        blend.stopped = i32_out(l, 1);
        splat_blend(l.team, picture, blend, l.workspace);
      },
      splat_blend_workspace(picture, {.count = count}, r.threads));
}

}  // namespace

void add_splat(KernelTable& table) {
  table.add<ops::GaussianSplatPrepare>({"splat_prepare_f32", accepts_prepare, prepare_prepare});
  table.add<ops::GaussianSplatLists>({"splat_lists_f32", accepts_lists, prepare_lists});
  table.add<ops::GaussianSplatRasterize>({"splat_blend_f32", accepts_rasterize, prepare_rasterize});
}

}  // namespace rlx::cpu
