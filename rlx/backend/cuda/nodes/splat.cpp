// The lists of splats that tiles see, and the picture that is drawn from them.
#include <bit>
#include <limits>

#include "rlx/backend/control/body.h"
#include "rlx/backend/cuda/fault.h"
#include "rlx/backend/cuda/kernels/casts.h"
#include "rlx/backend/cuda/kernels/complex.h"
#include "rlx/backend/cuda/kernels/host_words.h"
#include "rlx/backend/cuda/kernels/room_sources.h"
#include "rlx/backend/cuda/kernels/splat_blend.h"
#include "rlx/backend/cuda/kernels/splat_lists.h"
#include "rlx/backend/cuda/nodes/element_kernel.h"
#include "rlx/backend/cuda/nodes/sort_lines.h"
#include "rlx/ops/splat/lists.h"
#include "rlx/ops/splat/rasterize.h"

namespace rlx::cuda {
namespace {

Support row_major(const Request& r) {
  for (size_t i = 0; i < r.in.size(); ++i) {
    if (!r.in[i].is_row_major()) return Support::no("operand ", i, " is strided");
  }
  return Support::yes();
}

std::string real(double x) { return cat("from_bits(u64(", std::bit_cast<uint64_t>(x), "ull))"); }

// ---- lists ----

Support accepts_lists(const Request& r) {
  if (const Support s = row_major(r); !s) return s;
  const auto& a = r.node.as<ops::GaussianSplatLists>();
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 2;
  const int64_t splats = r.in[3].shape.elements();
  if (std::max({splats, a.max_list_entries, a.tiles()}) > kMost)
    return Support::no(splats, " splats, ", a.max_list_entries, " entries, ", a.tiles(),
                       " tiles; they are counted in i32");
  return Support::yes();
}

constexpr int64_t kThreads = 256;
constexpr size_t kBoxBytes = 4 * sizeof(int32_t);

std::string sizes_text(const ops::SplatParams& a, int64_t splats) {
  return cat("constexpr i64 kSplats = ", splats, ", kEntries = ", a.max_list_entries, ", kWidth = ", a.width,
             ", kHeight = ", a.height, ", kTileSize = ", a.tile_size, ";\n");
}

std::string boxes_text(const ops::SplatParams& a, DType t) {
  return cat(kHostWords, room_source("rlx/math/splat_view.h"), room_source("rlx/math/splat_view.cpp"),
             "typedef ", memory_type(t), " T;\n#define kRadiusScale ", real(a.radius_scale),
             "\n#define kCutoff ", real(a.alpha_cutoff), "\n", kSplatBoxes);
}

std::unique_ptr<Step> prepare_lists(const Request& r) {
  const auto& a = r.node.as<ops::GaussianSplatLists>();
  const int64_t splats = r.in[3].shape.elements(), entries = a.max_list_entries, ends = 2 * a.tiles();
  if (splats == 0) {  // unused entries hold the number of splats
    const size_t bytes[] = {size_t(entries) * 4, size_t(ends) * 4, 4};
    return make_gpu_step("no splats", [=](Stream& s, const Launch& l) {
      for (size_t i = 0; i < 3; ++i)
        check(s.gpu.use().MemsetD8Async(device_pointer(l.out[i]), 0, bytes[i], s.handle), "a fill");
    });
  }
  const Device& device = device_of(r);
  const std::string sizes = sizes_text(a, splats) + kSplatSizes;
  const auto kernel = [&](const char* name, const std::string& text) {
    return device.functions().get({name, sizes + text});
  };
  const FunctionRef boxes_of = kernel("splat_boxes", boxes_text(a, r.in[0].dtype())),
                    sums_of = kernel("splat_sums", kSplatSums),
                    starts_of = kernel("splat_starts", kSplatStarts),
                    entries_of = kernel("splat_entries", kSplatEntries),
                    lists_of = kernel("splat_lists", kSplatLists);
  const LineSorter by_distance(device, DType::f64, false, 1, splats, 1),
      by_tile(device, DType::i32, false, 1, entries, 1);
  size_t bytes = 0;
  const auto place = [&](size_t size) {
    bytes += backend::aligned_size(size);
    return bytes - backend::aligned_size(size);
  };
  const auto n = size_t(splats), m = size_t(entries);
  const size_t distances = place(8 * n), sorted = place(8 * n), order = place(4 * n),
               boxes = place(kBoxBytes * n), sums = place(8 * (n / kThreads + 1)),
               starts = place(8 * (n + 1)), tiles = place(4 * m), splat = place(4 * m),
               tiles_sorted = place(4 * m), places = place(4 * m),
               rest = place(std::max(by_distance.workspace(), by_tile.workspace()));
  return make_gpu_step(
      cat("splats by distance: ", by_distance.note(), "; entries by tile: ", by_tile.note()),
      [=](Stream& s, const Launch& l) {
        std::byte* const w = l.workspace;
        const Grid each = blocks_for(splats, kThreads), block{kThreads};
        (*boxes_of)(s.handle, each, block, 0, l.in[0], l.in[1], l.in[2], l.in[3], l.in[4], w + distances,
                    w + boxes);
        by_distance.run(s, w + distances, w + sorted, w + order, w + rest);
        (*sums_of)(s.handle, each, block, 0, w + order, w + boxes, w + sums);
        (*starts_of)(s.handle, each, block, 0, w + order, w + boxes, w + sums, w + starts, l.out[2]);
        (*entries_of)(s.handle, blocks_for(entries, kThreads), block, 0, w + order, w + boxes, w + starts,
                      w + tiles, w + splat);
        by_tile.run(s, w + tiles, w + tiles_sorted, w + places, w + rest);
        (*lists_of)(s.handle, blocks_for(std::max(entries, ends), kThreads), block, 0, w + tiles_sorted,
                    w + places, w + splat, l.out[0], l.out[1]);
      },
      bytes);
}

// ---- the picture ----

std::unique_ptr<Step> prepare_picture(const Request& r) {
  const auto& a = r.node.as<ops::GaussianSplatRasterize>();
  const int64_t splats = r.in[1].shape.elements(), tiles = a.tiles();
  const std::string text =
      cat(kComplexNumbers, kCasts, sizes_text(a, splats), "typedef ", memory_type(r.in[0].dtype()),
          " T;\ntypedef ", memory_type(r.in[5].dtype()),
          " Index;\nconstexpr i64 kMostSteps = ", a.max_splat_steps, ";\n#define kCutoff ",
          real(a.alpha_cutoff), "\n#define kDark ", real(a.transmittance_threshold), "\n", kSplatBlend);
  const FunctionRef kernel = device_of(r).functions().get({"splat_blend", text});
  const uint64_t wrong_range = new_fault(
                     cat("gaussian_splat_rasterize: element % of ranges is no entry of ids, which have ",
                         a.max_list_entries)),
                 wrong_id = new_fault(cat("gaussian_splat_rasterize: entry % of ids is no splat; there are ",
                                          splats, " splats"));
  return make_gpu_step("a thread for each pixel", [=](Stream& s, const Launch& l) {
    check(s.gpu.use().MemsetD8Async(device_pointer(l.out[1]), 0, sizeof(int32_t), s.handle), "a fill");
    (*kernel)(s.handle, {tiles}, {kThreads}, 0, l.in[0], l.in[1], l.in[2], l.in[3], l.in[4], l.in[5], l.in[6],
              l.in[7], l.out[0], l.out[1], s.fault, wrong_range, wrong_id);
  });
}

Support accepts_picture(const Request& r) {
  if (r.in[5].dtype() != r.in[6].dtype())
    return Support::no("ids are ", r.in[5].dtype(), " and ranges ", r.in[6].dtype());
  return row_major(r);
}

}  // namespace

void add_splat(KernelTable& table) {
  table.add<ops::GaussianSplatLists>({"splat_lists", accepts_lists, prepare_lists});
  table.add<ops::GaussianSplatRasterize>({"splat_blend", accepts_picture, prepare_picture});
}

}  // namespace rlx::cuda
