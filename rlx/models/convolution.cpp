#include "rlx/models/convolution.h"

namespace rlx::models {

Tensor causal_convolution(Net& net, std::string_view key, const Tensor& x, int64_t taps) {
  const int64_t channels = x.dim(2).value();
  const Tensor w = net.weight(key, {channels, 1, 1, taps});
  const Dims before{net.batch, taps - 1, channels};
  Tensor left;
  if (net.cached()) {
    const std::string name = cat("layer.", net.layer, ".conv");
    left = net.state(name, Shape(DType::f32, before));
    net.set_state(name, concat({left, x}, {.axis = 1}).narrow(1, net.seq, taps - 1));
  } else {
    left = net.t.zeros(before);
  }
  const Tensor y = depthwise_conv1d_causal(x, w, left);
  const Tensor b = net.bias(key, channels);
  return net.c.activation(b.is_empty() ? y : y + b);
}

}  // namespace rlx::models
