// Convolutions in f16 and bf16 on the matrix units of Hopper, with slices brought ahead: how the operands must lie, and tiles.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>

#include "rlx/backend/cuda/nodes/conv_steps.h"

namespace rlx::cuda {

/// How the product of a convolution reads its operands (kernels/conv_rings.h).
struct ConvForm {
  ConvPart part;          // with the strides of x as the kernel meets it
  bool sideways = false;  // neighbours in memory are columns, not terms
  bool along = false;     // terms are (input channel, tap), not (tap, input channel)
  bool across = false;    // columns are (o, n), not (n, o)
  bool chunked = false;   // terms are (64 input channels, tap, one of them)
  Turned x = Turned::no;  // x is copied first, with other neighbours
  bool direct = false;    // w is read as it lies
  int64_t run = 8, run_w = 8;

  int64_t terms() const;
  int64_t columns() const;
};

/// Nothing where x can neither be read nor turned so that some of its elements are copied at once, or another kernel is as fast.
std::optional<ConvForm> form_of(const ConvPart&);

struct RingTiling {
  int64_t m = 64, n = 128;  // channels and columns of a tile
  int64_t stages = 4, blocks = 1, splits = 1;
  int64_t slices = 1, rows = 64;

  int64_t place_bytes() const { return (m + n) * 128; }
  /// Places begin at multiples of 1024; results lie there behind them.
  int64_t shared() const { return std::max(stages * place_bytes() + 1024, m * (n + 8) * 2); }
  int64_t writers() const { return 2 * m; }
  int64_t threads() const { return writers() + 128; }
  int64_t tiles(const ConvForm& f) const { return rows / m * ((f.columns() + n - 1) / n); }
};

/// Tilings for so many processors by the time of the model, the least first; for each count of channels and of blocks one.
std::vector<RingTiling> ring_tilings_of(const ConvForm&, int64_t processors);

ConvPlan plan_conv_rings(const Device&, const ConvPart&, const ConvResults&, const ConvForm&,
                         const RingTiling&);

/// A way to run a part, and those with rings, the first one being the best by the model; none where `form_of` gives nothing or the units are not there.
using ConvWay = std::function<ConvPlan(const Device&, const ConvPart&, const ConvResults&)>;
std::vector<ConvWay> ring_ways(const Device&, const ConvPart&);

}  // namespace rlx::cuda
