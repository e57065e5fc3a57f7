// Gaussian splatting: splats as a camera sees them, lists of splats for square tiles of the picture, blending
// front to back, and the exact gradients of all of it. f32 in and out.
//
// A splat is a Gaussian with axes R, radii e^scale radius_scale. `transform` M = diag(1 / radii) R^T maps to
// the space in which it is a unit Gaussian, `origin` o = M (camera - position) is the camera there. A ray d =
// M ray passes it at the squared distance D = |o|^2 - (o.d)^2 / |d|^2 and meets opacity a = opacity e^(-D/2).
// Gradients are summed over tiles in the order of the lists: nothing depends on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/base/pool.h"

namespace rlx::cpu {

struct SplatPicture {
  int64_t width = 64, height = 64, tile_size = 16;
  double radius_scale = 1.6, alpha_cutoff = 1.0 / 255;
  int64_t max_splat_steps = 32;
  double transmittance_threshold = 0.01;
  int64_t max_list_entries = 576;

  int64_t tiles_x() const { return (width + tile_size - 1) / tile_size; }
  int64_t tiles_y() const { return (height + tile_size - 1) / tile_size; }
  int64_t tiles() const { return tiles_x() * tiles_y(); }
};

/// The cloud and the camera. meta: position 0-2, target 3-5, up 6-8, vertical field of view in degrees 9,
/// near 10, far 11, background 12-14.
struct SplatCloud {
  int64_t count = 0, harmonics = 0;  // 0, 1, 4, 9 or 16 harmonics
  const float* positions = nullptr;  // [count, 3]
  const float* scales = nullptr;     // [count, 3], logarithms
  const float* rotations = nullptr;  // [count, 4], wxyz
  const float* opacities = nullptr;  // [count], logits
  const float* colors = nullptr;     // [count, 3], used without harmonics
  const float* sh = nullptr;         // [count, harmonics, 3]
  const float* meta = nullptr;       // [15]
};

/// What a pixel needs of each splat, and the lists of the tiles.
struct SplatPrepared {
  float* color = nullptr;    // [count, 3]: 1/2 + harmonics of the unit vector from splat to camera, or colors
  float* opacity = nullptr;  // [count]
  float* origin = nullptr;   // [count, 3]
  float* transform = nullptr;  // [count, 3, 3]
  float* rays = nullptr;       // [height, width, 3], through pixel centres
  int32_t* ids = nullptr;      // [max_list_entries], nearest first in each list; unused: count
  int32_t* ranges = nullptr;   // [tiles, 2], begin and end in ids
  int32_t* dropped = nullptr;  // entries that found no room
};
size_t splat_prepare_workspace(const SplatPicture&, const SplatCloud&, int threads);
void splat_prepare(Team, const SplatPicture&, const SplatCloud&, const SplatPrepared&, std::byte* workspace);

/// For each pixel and each splat of its tile's list in order, left out when a < alpha_cutoff or o.d >= 0:
/// C += T a color, T *= 1 - a, until T < transmittance_threshold or max_splat_steps are blended.
/// rgba [height, width, 4] = (max(C + T background, 0), 1 - T).
struct SplatBlend {
  int64_t count = 0;
  SplatPrepared in;                   // all but dropped is read
  const float* background = nullptr;  // [3]
  float* rgba = nullptr;
  int32_t* stopped = nullptr;  // pixels cut short by max_splat_steps
  // For the gradient, null to drop them: how far into its list a pixel blended, and T before that last splat.
  int32_t* last = nullptr;  // [height, width]
  float* before = nullptr;  // [height, width]
};
size_t splat_blend_workspace(const SplatPicture&, const SplatBlend&, int threads);
void splat_blend(Team, const SplatPicture&, const SplatBlend&, std::byte* workspace);

/// Gradients of the prepared quantities; `forward` with its results, last and before included. With a
/// transmittance_threshold of 0 or less, what lies behind a splat of opacity exactly 1 does not enter the
/// gradient of that splat.
struct SplatBlendGradient {
  SplatBlend forward;
  const float* drgba = nullptr;  // [height, width, 4]
  float* dcolor = nullptr;
  float* dopacity = nullptr;
  float* dorigin = nullptr;
  float* dtransform = nullptr;
  float* drays = nullptr;
  float* dbackground = nullptr;
};
size_t splat_blend_backward_workspace(const SplatPicture&, const SplatBlendGradient&, int threads);
void splat_blend_backward(Team, const SplatPicture&, const SplatBlendGradient&, std::byte* workspace);

/// From the gradients of the prepared quantities to those of the cloud and the camera (dmeta 0-9; the rest is
/// 0).
struct SplatPrepareGradient {
  SplatCloud cloud;
  const float* dcolor = nullptr;
  const float* dopacity = nullptr;
  const float* dorigin = nullptr;
  const float* dtransform = nullptr;
  const float* drays = nullptr;
  float* dpositions = nullptr;
  float* dscales = nullptr;
  float* drotations = nullptr;
  float* dopacities = nullptr;
  float* dcolors = nullptr;
  float* dsh = nullptr;
  float* dmeta = nullptr;
};
size_t splat_prepare_backward_workspace(const SplatPicture&, const SplatPrepareGradient&, int threads);
void splat_prepare_backward(Team, const SplatPicture&, const SplatPrepareGradient&, std::byte* workspace);

/// A splat for the inner loops. With K = [o]x M, D = |K ray|^2 / |M ray|^2: unlike |o|^2 - (o.d)^2 / |d|^2 it
/// does not take the small difference of two large squares.
struct SplatTerms {
  float m[9], k[9], q[3];  // q = M^T o, so that o.d = q.ray
  float o[3], color[3];
  float opacity;
  float reach;  // D beyond which a < alpha_cutoff, with some slack
};

inline constexpr int kSplatGradients = 16;  // color 3, opacity, origin 3, transform 9

/// One tile, its pixels one after the other, padded to whole vectors (padding is never active).
struct SplatTile {
  const SplatTerms* terms = nullptr;
  const int32_t* ids = nullptr;  // of the tile's list
  int64_t length = 0, pixels = 0;
  float cutoff = 0, threshold = 0;
  int32_t max_steps = 0;
  const float* ray[3] = {};
  // Forward: light is T; active is 0 or -1.
  float* light = nullptr;
  float* sum[3] = {};
  int32_t* steps = nullptr;
  int32_t* active = nullptr;
  int32_t* last = nullptr;
  float* before = nullptr;
  // Backward: gradients of the colour and of T at the end; behind is the part of the loss behind the splat.
  const float* gradient[3] = {};
  const float* dlight = nullptr;
  float* behind = nullptr;
  float* dray[3] = {};
  float* entries = nullptr;  // [length, kSplatGradients]
};

struct SplatKernels {
  int64_t (*blend)(const SplatTile&);  // returns the number of pixels cut short
  void (*blend_backward)(const SplatTile&);
};

}  // namespace rlx::cpu
