// A convolution pass as gathered products.
//
// Both forward and backward_data are, for every output channel m and position o,
//   y[m, o] = sum over channels c and taps t of weight[m, t, c] source[c, o step + base(t)],
// forward with step = stride and base = k dilation - low. For backward_data the positions i = phase + stride
// o of one phase meet only the taps with (phase + low - k dilation) divisible by the stride, at step 1; so it
// is one such product per phase and nothing is multiplied by inserted zeros. The source is first copied into
// a frame of zeros that covers every position any tap asks for.
#pragma once

#include "rlx/backend/cpu/kernels/conv/conv.h"

namespace rlx::cpu {

inline constexpr int64_t volume(const Extents& e) { return e[0] * e[1] * e[2]; }

struct ConvPhase {
  Extents first{0, 0, 0};             // position of o = 0 in the result
  Extents count{0, 0, 0};             // positions
  std::vector<int64_t> taps;          // offsets in the padded plane
  std::vector<int64_t> kernel_index;  // of the taps
  std::vector<int64_t> gathered;      // offsets of the taps in a gathered panel
  int64_t span = 0;        // flat: padded places from the first position to behind the last; else positions
  int64_t last_panel = 0;  // panels of the phases up to and with this one
  int64_t weights = 0;     // where its packed weights begin, in elements
};

struct ConvTap {
  Extents base;       // input of output 0
  int64_t index = 0;  // in the kernel
  int64_t depth = 0;  // which of the different base[0] its own is
};

/// The taps of a phase with what they have in common.
struct ConvTaps {
  std::vector<ConvTap> taps;
  std::vector<int64_t> depths;  // different base[0]
  Extents low{}, high{};        // least and greatest base
};

/// A product done by output rows (conv_rows.cpp).
struct ConvRowPlan : ConvTaps {
  /// Result channels [first, first + vectors * lanes) of a group.
  struct Panel {
    int64_t first;
    int vectors;
  };
  bool used = false;
  int lanes = 0;
  std::vector<Panel> panels;
  int64_t padded_channels = 0;  // lanes of all panels
  int64_t width = 0;            // outputs of a tile
  int64_t block = 0;            // source channels of a block, whose weights of a panel stay in L2
};

/// A gradient of weights with input channels in the lanes (conv_weights.cpp).
struct ConvTurnedPlan : ConvTaps {
  bool used = false;
  int lanes = 0;
  int64_t panels = 0;                         // of two vectors of input channels
  int64_t rows = 0;                           // output channels of a tile
  int64_t chunk_rows = 0, chunk_columns = 0;  // outputs of a chunk
  int64_t input_rows = 0, input_columns = 0;  // most inputs of a chunk
  int64_t copied_plane = 0;                   // floats from row to row of dy where it is copied, else 0
};

struct ConvGeometry {
  int rows = 0, columns = 0;               // of a tile, at the level the plan was made for
  int64_t source_channels = 0;             // of one group
  int64_t result_channels = 0;             // of one group
  Extents source{}, result{};              // extents of the planes
  Extents lowest{}, padded{};              // the frame begins at position `lowest` of the source
  bool framed = false;                     // the source has to be copied into the frame
  Extents step{1, 1, 1}, spread{1, 1, 1};  // between gathered positions; between results of a phase
  std::vector<ConvPhase> phases;
  bool winograd = false;   // products of transformed squares (conv_winograd.cpp)
  bool depthwise = false;  // one source channel for each result channel: no matrix product
  bool flat = false;       // outputs are counted by padded places, so that a tap is a shift; some are unused
  int64_t panels = 0;      // of all phases
  ConvRowPlan by_rows;
  ConvTurnedPlan turned;
  int plane_kernel = 0;  // depthwise planes with a square kernel of this size in place (conv_depthwise.cpp)
  ConvTaps planes;
  int64_t weight_elements = 0;

  int64_t padded_volume() const { return volume(padded); }
  /// Offset of output position o in the padded plane, without a tap.
  int64_t position(const Extents& o) const {
    return ((o[0] * step[0] * padded[1] + o[1] * step[1]) * padded[2]) + o[2] * step[2];
  }
  int64_t tiles() const { return (result_channels + rows - 1) / rows; }
};

}  // namespace rlx::cpu
