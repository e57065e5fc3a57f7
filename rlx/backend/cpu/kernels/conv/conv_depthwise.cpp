// Plan: tasks are planes (of the weights' gradient: channels with their planes of all images), read and
// written in place; a thread needs only a row of zeros and a kernel of weights in the order of places.
#include "rlx/backend/cpu/kernels/conv/conv_depthwise.h"

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/conv/conv_geometry.h"
#include "rlx/backend/cpu/kernels/sizes.h"

namespace rlx::cpu {

RLX_ISA_TABLE(ConvPlaneKernels, conv_plane_kernels)

size_t conv_planes_workspace(const Conv& p, int) {
  return round_up(size_t(p.plan->geometry().source[2]) * sizeof(float));
}

void conv_planes(Team team, const Conv& p, std::byte* workspace) {
  const ConvGeometry& g = p.plan->geometry();
  const ConvShape& s = p.plan->shape();
  const ConvPlaneKernels& k = conv_plane_kernels();
  const std::vector<ConvTap>& taps = g.planes.taps;
  auto* zeros = reinterpret_cast<float*>(workspace);
  std::fill_n(zeros, g.source[2], 0.0f);
  ConvPlane shape{.height = g.source[1], .width = g.source[2], .zeros = zeros};
  shape.low1 = g.planes.low[1], shape.low2 = g.planes.low[2];
  shape.y_height = g.result[1], shape.y_width = g.result[2];
  const auto place = [&](const ConvTap& tap) {
    return (tap.base[1] - g.planes.low[1]) * g.plane_kernel + tap.base[2] - g.planes.low[2];
  };
  const int64_t size = volume(g.source), y_size = volume(g.result), per = g.result_channels;
  if (p.plan->pass() == ConvPass::backward_weights) {
    std::fill_n(p.out, s.out_channels * int64_t(taps.size()), 0.0f);
    team.parallel_for(s.out_channels, 1, [&](int64_t begin, int64_t end) {
      ConvPlane plane = shape;
      for (int64_t c = begin; c < end; ++c) {
        for (int64_t n = 0; n < s.batch; ++n) {
          plane.x = p.x + (n * s.groups + c / per) * size;
          k.weights(plane, g.plane_kernel, p.dy + (n * s.out_channels + c) * y_size,
                    p.out + c * int64_t(taps.size()));
        }
      }
    });
    return;
  }
  const float* source = p.plan->pass() == ConvPass::backward_data ? p.dy : p.x;
  team.parallel_for(s.batch * s.groups * per, 1, [&](int64_t begin, int64_t end) {
    ConvPlane plane = shape;
    float w[7 * 7];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t channel = i % (s.groups * per);
      const float* packed = p.weights->data() + channel * int64_t(taps.size());
      for (size_t t = 0; t < taps.size(); ++t) w[place(taps[t])] = packed[t];
      plane.x = source + i / per * size;
      k.forward(plane, g.plane_kernel, w, p.bias != nullptr ? p.bias[channel] : 0.0f, p.out + i * y_size);
    }
  });
}

}  // namespace rlx::cpu
