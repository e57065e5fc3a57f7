// Normalisation of [batch, channels, places] in f32 over groups of channels, or over all channels at each
// place, and the gradients. places is the product of the extents behind the channels.
//   y = gamma[c] (x - m) r + beta[c],  m the mean, r = 1 / sqrt(variance + epsilon)
// Sums are taken in a fixed order, so results do not depend on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rlx/base/pool.h"

namespace rlx::cpu {

enum class ChannelNormKind : uint8_t {
  groups,    // m, r for each image and group, over channels / groups channels and all places
  channels,  // m, r for each image and place, over the channels: layer_norm_2d
};

struct ChannelNorm {
  ChannelNormKind kind = ChannelNormKind::groups;
  int64_t batch = 1, channels = 1, places = 1;
  int64_t groups = 1;  // divides channels; kind groups only
  float epsilon = 1e-5f;
  const float* x = nullptr;
  const float* gamma = nullptr;  // [channels], null for ones
  const float* beta = nullptr;   // [channels], null for zeros
  float* y = nullptr;
};
void channel_norm(Team, const ChannelNorm&);

struct ChannelNormBackward {
  ChannelNorm forward;  // with x and gamma; beta and y are not read
  const float* dy = nullptr;
  float* dx = nullptr;
  float* dgamma = nullptr;  // [channels], null to drop it
  float* dbeta = nullptr;   // [channels], null to drop it
};
size_t channel_norm_backward_workspace(const ChannelNormBackward&, int threads);
void channel_norm_backward(Team, const ChannelNormBackward&, std::byte* workspace);

struct ChannelNormKernels {
  /// Places that one call of `places` and `places_backward` may have.
  int64_t block;
  /// One image and group: x, y point at its channels.
  void (*group)(const ChannelNorm&, int64_t first_channel, const float* x, float* y);
  /// The same for the gradient; sums[c] and sums[channels + c], c counted from the first channel of the
  /// group, get the sums over places of dy and of dy (x - m) r.
  void (*group_backward)(const ChannelNormBackward&, int64_t first_channel, const float* x, const float* dy,
                         float* dx, float* sums);
  /// n places of one image, all channels, `places` apart.
  void (*places)(const ChannelNorm&, const float* x, float* y, int64_t n);
  /// The same for the gradient; adds to sums.
  void (*places_backward)(const ChannelNormBackward&, const float* x, const float* dy, float* dx, float* sums,
                          int64_t n);
};

}  // namespace rlx::cpu
