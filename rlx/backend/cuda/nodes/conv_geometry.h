// Convolutions as the kernels take them: no gaps in the input, three spatial axes, any strides in memory.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "rlx/backend/cuda/nodes/families.h"

namespace rlx::cuda {

using Axes = std::array<int64_t, 3>;

inline int64_t product_of(const Axes& a) { return a[0] * a[1] * a[2]; }

/// How x lies in the workspace: not at all, or with channels or images as neighbours (kernels/conv_turn.h).
enum class Turned : uint8_t { no, channels, images };

/// y[n, g, co, o] = sum over ci, k of x[n, g, ci, o stride + k dilation + start] w[g, co, ci, k]; terms outside x are
/// absent. Axes that a convolution does not have come first, with extent 1.
struct ConvPart {
  DType dtype = DType::f32;
  int64_t batch = 1, groups = 1, inputs = 1, outputs = 1;  // channels are those of one group
  Axes x{1, 1, 1}, y{1, 1, 1}, w{1, 1, 1};                 // extents
  Axes stride{1, 1, 1}, dilation{1, 1, 1}, start{0, 0, 0};

  /// In elements.
  struct Strides {
    int64_t outer = 0, channel = 0;  // of w: output channel, input channel
    Axes axis{0, 0, 0};
    int64_t offset = 0;
  };
  Strides xs, ws, ys;
  Turned turned = Turned::no;  // by a part before

  int64_t taps() const { return product_of(w); }
  int64_t positions() const { return batch * product_of(y); }
  double operations() const {
    return 2.0 * double(groups * outputs) * double(positions()) * double(inputs * taps());
  }
};

/// The parts of a Conv node, each of which writes results of its own. Without gaps in the input there is one. With them
/// (input_dilation: a transposed convolution, the gradient in the input of one with strides) results whose positions leave the
/// same rest meet the same terms of the kernel: each such class is a convolution of a part of the kernel, and no product with a zero
/// between the inputs is made. A part without taps is a part of y that is 0.
std::vector<ConvPart> conv_parts(const Request&);

/// The constants that the texts in kernels/conv_*.h begin with.
std::string constants_of(const ConvPart&);

}  // namespace rlx::cuda
