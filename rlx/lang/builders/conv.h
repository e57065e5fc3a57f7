// Convolutions, pooling, resizing. Channels come before the spatial axes; an empty list means ones (padding:
// zeros).
#pragma once

#include "rlx/lang/builders/builder.h"
#include "rlx/ops/conv/resize.h"
#include "rlx/ops/reduce/reduce.h"

namespace rlx {

/// Convolutions, pooling, resizing.
class ConvBuilder : public BuilderTheme<ConvBuilder> {
 public:
  Value conv1d(Value input, Value weight, std::vector<int64_t> kernel_size, std::vector<int64_t> stride = {},
               std::vector<int64_t> padding = {}, std::vector<int64_t> dilation = {}, int64_t groups = 1,
               const Declared& shape = {}, const Loc& loc = Loc::current());
  Value conv2d(Value input, Value weight, std::vector<int64_t> kernel_size, std::vector<int64_t> stride = {},
               std::vector<int64_t> padding = {}, std::vector<int64_t> dilation = {}, int64_t groups = 1,
               const Declared& shape = {}, const Loc& loc = Loc::current());
  Value conv3d(Value input, Value weight, std::vector<int64_t> kernel_size, std::vector<int64_t> stride = {},
               std::vector<int64_t> padding = {}, std::vector<int64_t> dilation = {}, int64_t groups = 1,
               const Declared& shape = {}, const Loc& loc = Loc::current());
  Value conv_transpose1d(Value input, Value weight, std::vector<int64_t> kernel_size,
                         std::vector<int64_t> stride = {}, std::vector<int64_t> padding = {},
                         std::vector<int64_t> dilation = {}, std::vector<int64_t> output_padding = {},
                         int64_t groups = 1, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value conv_transpose2d(Value input, Value weight, std::vector<int64_t> kernel_size,
                         std::vector<int64_t> stride = {}, std::vector<int64_t> padding = {},
                         std::vector<int64_t> dilation = {}, std::vector<int64_t> output_padding = {},
                         int64_t groups = 1, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value conv_transpose3d(Value input, Value weight, std::vector<int64_t> kernel_size,
                         std::vector<int64_t> stride = {}, std::vector<int64_t> padding = {},
                         std::vector<int64_t> dilation = {}, std::vector<int64_t> output_padding = {},
                         int64_t groups = 1, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value depthwise_conv1d_causal(Value input, Value weight, Value left_pad, const Declared& shape = {},
                                const Loc& loc = Loc::current());
  Value pool(Value x, ops::ReduceOp kind, std::vector<int64_t> kernel_size, std::vector<int64_t> stride = {},
             std::vector<int64_t> padding = {}, bool count_include_pad = false, const Declared& shape = {},
             const Loc& loc = Loc::current());
  Value resize(Value x, ops::ResizeMode mode, Dims size, bool align_corners = false,
               const Declared& shape = {}, const Loc& loc = Loc::current());
  Value resize_nearest2x(Value x, const Declared& shape = {}, const Loc& loc = Loc::current());
};

}  // namespace rlx
