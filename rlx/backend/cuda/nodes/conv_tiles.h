// How a convolution is cut into tiles and its sums into parts: the model and its figures.
#pragma once

#include "rlx/backend/cuda/nodes/conv_geometry.h"

namespace rlx::cuda {

struct ConvTiling {
  bool matrix_units = false, groups = false;  // groups: those of Hopper, for groups of warps
  bool along = false;      // neighbouring lanes take neighbouring terms (kernels/conv_places.h)
  bool sideways = false;   // columns are (o, n) of an x that is turned (kernels/conv_fma.h)
  int64_t sub = 1;         // terms with one tap
  int64_t slice = 16;      // terms in shared memory together
  int64_t m = 64, n = 64;  // channels and positions of a tile
  int64_t warp_m = 0;      // channels of a warp on matrix units
  int64_t blocks = 1;      // of a processor, on matrix units
  int64_t numbers = 16;    // of x that a thread has on their way at once, on matrix units
  int64_t threads = 64, stages = 2, shared = 0;
  int64_t splits = 1;  // parts of the terms, which a second kernel adds in order
  int64_t slices = 1;  // of all terms
  int64_t rows = 64;   // output channels of a group in whole tiles

  /// Columns of the product: positions, where they are (o, n) with n in eights.
  int64_t columns(const ConvPart& p) const {
    return sideways ? product_of(p.y) * ((p.batch + 7) / 8 * 8) : p.positions();
  }
  int64_t tiles(const ConvPart& p) const { return rows / m * ((columns(p) + n - 1) / n); }
  /// Elements of the weights in the order of the tiles.
  int64_t packed(const ConvPart& p) const { return p.groups * rows * slices * slice; }
};

/// Kernels larger than the image of results are walked along their terms: those are the runs, and the many.
bool is_along(const ConvPart&);

/// Of the GPU, or of an H200 where programs are only compiled.
struct Processors {
  int64_t count = 132;
  bool hopper = false;
};
Processors conv_processors(const Device&);

/// The tiling with the least time by the model.
ConvTiling tiling_of(const ConvPart&, const Processors&);

}  // namespace rlx::cuda
