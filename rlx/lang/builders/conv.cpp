#include "rlx/lang/builders/conv.h"

#include "rlx/lang/graph.h"
#include "rlx/ops/conv/conv_nd.h"
#include "rlx/ops/conv/depthwise_causal.h"
#include "rlx/ops/conv/pool.h"

namespace rlx {

Value ConvBuilder::conv1d(Value input, Value weight, std::vector<int64_t> kernel_size,
                          std::vector<int64_t> stride, std::vector<int64_t> padding,
                          std::vector<int64_t> dilation, int64_t groups, const Declared& shape,
                          const Loc& loc) {
  return one(shape, loc, [&] {
    return ops::conv1d(t(input), t(weight), std::move(kernel_size), std::move(stride), std::move(padding),
                       std::move(dilation), groups);
  });
}

Value ConvBuilder::conv2d(Value input, Value weight, std::vector<int64_t> kernel_size,
                          std::vector<int64_t> stride, std::vector<int64_t> padding,
                          std::vector<int64_t> dilation, int64_t groups, const Declared& shape,
                          const Loc& loc) {
  return one(shape, loc, [&] {
    return ops::conv2d(t(input), t(weight), std::move(kernel_size), std::move(stride), std::move(padding),
                       std::move(dilation), groups);
  });
}

Value ConvBuilder::conv3d(Value input, Value weight, std::vector<int64_t> kernel_size,
                          std::vector<int64_t> stride, std::vector<int64_t> padding,
                          std::vector<int64_t> dilation, int64_t groups, const Declared& shape,
                          const Loc& loc) {
  return one(shape, loc, [&] {
    return ops::conv3d(t(input), t(weight), std::move(kernel_size), std::move(stride), std::move(padding),
                       std::move(dilation), groups);
  });
}

Value ConvBuilder::conv_transpose1d(Value input, Value weight, std::vector<int64_t> kernel_size,
                                    std::vector<int64_t> stride, std::vector<int64_t> padding,
                                    std::vector<int64_t> dilation, std::vector<int64_t> output_padding,
                                    int64_t groups, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] {
    return ops::conv_transpose1d(t(input), t(weight), std::move(kernel_size), std::move(stride),
                                 std::move(padding), std::move(dilation), std::move(output_padding), groups);
  });
}

Value ConvBuilder::conv_transpose2d(Value input, Value weight, std::vector<int64_t> kernel_size,
                                    std::vector<int64_t> stride, std::vector<int64_t> padding,
                                    std::vector<int64_t> dilation, std::vector<int64_t> output_padding,
                                    int64_t groups, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] {
    return ops::conv_transpose2d(t(input), t(weight), std::move(kernel_size), std::move(stride),
                                 std::move(padding), std::move(dilation), std::move(output_padding), groups);
  });
}

Value ConvBuilder::conv_transpose3d(Value input, Value weight, std::vector<int64_t> kernel_size,
                                    std::vector<int64_t> stride, std::vector<int64_t> padding,
                                    std::vector<int64_t> dilation, std::vector<int64_t> output_padding,
                                    int64_t groups, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] {
    return ops::conv_transpose3d(t(input), t(weight), std::move(kernel_size), std::move(stride),
                                 std::move(padding), std::move(dilation), std::move(output_padding), groups);
  });
}

Value ConvBuilder::depthwise_conv1d_causal(Value input, Value weight, Value left_pad, const Declared& shape,
                                           const Loc& loc) {
  return one(shape, loc, [&] { return ops::depthwise_conv1d_causal(t(input), t(weight), t(left_pad)); });
}

Value ConvBuilder::pool(Value x, ops::ReduceOp kind, std::vector<int64_t> kernel_size,
                        std::vector<int64_t> stride, std::vector<int64_t> padding, bool count_include_pad,
                        const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] {
    return ops::pool(t(x), kind, std::move(kernel_size), std::move(stride), std::move(padding),
                     count_include_pad);
  });
}

Value ConvBuilder::resize(Value x, ops::ResizeMode mode, Dims size, bool align_corners, const Declared& shape,
                          const Loc& loc) {
  return one(shape, loc, [&] { return ops::resize(t(x), mode, std::move(size), align_corners); });
}

Value ConvBuilder::resize_nearest2x(Value x, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::resize_nearest2x(t(x)); });
}

}  // namespace rlx
