// How a convolution of codes lies in memory: the frame of widened inputs and the runs of neighbours in it.
#pragma once

#include "rlx/backend/cpu/kernels/conv/conv_codes.h"
#include "rlx/backend/cpu/kernels/conv/conv_squares.h"

namespace rlx::cpu {

struct CodeLayout {
  CodeConvShape given;
  CodeConvShape s;             // a kernel of one place has stride 1 here: the frame leaves out the rest
  CodeConvShape::Pair padded;  // of the frame
  CodeConvShape::Pair step;    // of the frame in x
  bool depthwise = false;
  bool squares = false;  // 3 x 3 by transformed squares (conv_code_squares.cpp)
  // Outputs are done by lines: rows of an image, or parts of all positions where each has one place of its own.
  bool flat = false;
  int64_t lines = 0, length = 0, positions = 0;
  int64_t channels = 0, filters = 0;  // of a group
  bool quads = false;                 // or pairs
  int64_t run_count = 0, steps = 0;   // words of a run
  int64_t panels = 0;                 // of a group
  std::vector<int64_t> runs;          // bytes

  int64_t value_bytes() const { return quads ? 1 : 2; }
  /// Sums of columns, where quads want them, and words.
  int64_t panel_bytes(int panel) const { return (run_count * steps + (quads ? 1 : 0)) * 4 * panel; }
  int64_t line_values() const { return padded[1] * s.in_channels; }
  int64_t image_values() const { return padded[0] * line_values(); }
  /// A last word and a last vector of channels reach beyond the frame.
  int64_t tail_bytes(int panel) const { return (panel + 2) * 2; }
  size_t frame_bytes(int panel) const {
    return round_up(size_t(s.batch * image_values() * value_bytes() + tail_bytes(panel)));
  }
};

// ---- squares: the same exact sums with 16 products instead of 36 ----

/// Whether squares save time and their sums fit 32 bits. All transforms are of whole numbers: kernels are
/// multiplied by four, sums are divided again with the scale of a channel.
bool code_squares_pay(const CodeConvShape&);
size_t code_squares_weight_bytes(const CodeLayout&);
/// [element][panel][pair of channels][column of the panel][2]
void pack_code_squares(Team, const CodeLayout&, const PackedCodeWeights::Source&, int16_t* out);
size_t code_squares_workspace(const CodeLayout&, int threads);
void conv_code_squares(Team, const CodeConv&, const CodeLayout&, const int16_t* frame, std::byte* workspace);

}  // namespace rlx::cpu
