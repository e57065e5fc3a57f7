// Normalisation over groups of channels and its gradients, in f32.
#include "rlx/backend/cpu/kernels/group_norm.h"

#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/backend/cpu/nodes/wide.h"
#include "rlx/ops/norm/group_norm.h"

namespace rlx::cpu {
namespace {

template <class Attrs>
ChannelNorm describe(const Arg& x, const Attrs& a) {
  ChannelNorm p{.batch = x.shape.dim(0).value(), .channels = x.shape.dim(1).value()};
  p.places = x.shape.elements() / (p.batch * p.channels);
  p.groups = a.num_groups;
  p.epsilon = float(a.eps);
  return p;
}

std::unique_ptr<Step> prepare(const Request& r) {
  const ChannelNorm p = describe(r.in[0], r.node.as<ops::GroupNorm>());
  return make_step([p, count = r.in.size()](const Launch& l) {
    ChannelNorm now = p;
    now.x = f32(l, 0);
    if (count > 1) now.gamma = f32(l, 1);
    if (count > 2) now.beta = f32(l, 2);
    now.y = reinterpret_cast<float*>(l.out[0]);
    channel_norm(l.team, now);
  });
}

std::unique_ptr<Step> prepare_input_gradient(const Request& r) {
  const ChannelNormBackward p{.forward = describe(r.in[0], r.node.as<ops::GroupNormBackwardInput>())};
  return make_step(
      [p](const Launch& l) {
        ChannelNormBackward now = p;
        now.forward.x = f32(l, 0);
        now.forward.gamma = f32(l, 1);
        now.dy = f32(l, 3);
        now.dx = reinterpret_cast<float*>(l.out[0]);
        channel_norm_backward(l.team, now, l.workspace);
      },
      channel_norm_backward_workspace(p, r.threads));
}

// The kernel makes the gradient of x as well; it is dropped.
template <class Op, bool Gamma>
std::unique_ptr<Step> prepare_parameter_gradient(const Request& r) {
  float parameter = 0;  // an address stands for the one that is asked for
  ChannelNormBackward p{.forward = describe(r.in[0], r.node.as<Op>())};
  (Gamma ? p.dgamma : p.dbeta) = &parameter;
  const size_t dropped = round_up(size_t(r.in[0].shape.size_bytes()));
  return make_step(
      [p, dropped](const Launch& l) {
        ChannelNormBackward now = p;
        now.forward.x = f32(l, 0);
        now.dy = f32(l, 1);
        now.dx = reinterpret_cast<float*>(l.workspace);
        (Gamma ? now.dgamma : now.dbeta) = reinterpret_cast<float*>(l.out[0]);
        channel_norm_backward(l.team, now, l.workspace + dropped);
      },
      dropped + channel_norm_backward_workspace(p, r.threads));
}

}  // namespace

void add_group_norm(KernelTable& table) {
  table.add<ops::GroupNorm>({"group_norm_f32", plain_f32, prepare});
  table.add<ops::GroupNorm>(wide_kernel<plain_f32, prepare>("group_norm_wide"));
  table.add<ops::GroupNormBackwardInput>({"group_norm_backward_f32", plain_f32, prepare_input_gradient});
  table.add<ops::GroupNormBackwardGamma>(
      {"group_norm_backward_f32", plain_f32, prepare_parameter_gradient<ops::GroupNormBackwardGamma, true>});
  table.add<ops::GroupNormBackwardBeta>(
      {"group_norm_backward_f32", plain_f32, prepare_parameter_gradient<ops::GroupNormBackwardBeta, false>});
}

}  // namespace rlx::cpu
