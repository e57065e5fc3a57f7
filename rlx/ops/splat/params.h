// What all splatting operators share: the settings of a picture and the layout
// of the camera.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct SplatParams {
  int64_t width = 64, height = 64, tile_size = 16;
  double radius_scale = 1.6, alpha_cutoff = 1.0 / 255;
  int64_t max_splat_steps = 32;
  double transmittance_threshold = 0.01;
  int64_t max_list_entries = 576;

  static constexpr auto fields() {
    using P = SplatParams;
    return std::tuple{
        field("width", &P::width, "columns of the picture"),
        field("height", &P::height, "rows of the picture"),
        field("tile_size", &P::tile_size, "pixels on a side of the square tiles that share a list"),
        field("radius_scale", &P::radius_scale, "factor of all radii"),
        field("alpha_cutoff", &P::alpha_cutoff, "contributions with less opacity are left out; positive"),
        field("max_splat_steps", &P::max_splat_steps, "most splats blended into a pixel"),
        field("transmittance_threshold", &P::transmittance_threshold,
              "a pixel is done when less light than this passes"),
        field("max_list_entries", &P::max_list_entries,
              "most entries of all tile lists together; the farthest splats "
              "are dropped first")};
  }

  int64_t tiles_x() const { return (width + tile_size - 1) / tile_size; }
  int64_t tiles_y() const { return (height + tile_size - 1) / tile_size; }
  int64_t tiles() const { return tiles_x() * tiles_y(); }
};

/// The camera operand, 15 numbers: position 0-2, target 3-5, up 6-8, vertical
/// field of view in degrees 9, near 10, far 11, background 12-14.
inline constexpr int64_t kSplatMeta = 15;

namespace detail {

void check_splat_params(Infer& c, const SplatParams& p);

/// Operands positions, scales, rotations, opacities at 0-3 and, where given,
/// meta. Returns the number of splats.
Dim check_splats(Infer& c, int meta);

/// Operand types of a small scene in front of a camera, for samples: n splats, k harmonics.
std::vector<std::string> splat_sample(const std::string& dtype, int n, int k);

}  // namespace detail
}  // namespace rlx::ops
