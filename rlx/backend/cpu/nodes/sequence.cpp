// Recurrences along a sequence, in f32: the selective scan, the gated delta rule, the causal convolution.
#include "rlx/backend/cpu/kernels/causal_conv.h"
#include "rlx/backend/cpu/kernels/gated_delta_net.h"
#include "rlx/backend/cpu/kernels/selective_scan.h"
#include "rlx/backend/cpu/nodes/wide.h"
#include "rlx/ops/conv/depthwise_causal.h"
#include "rlx/ops/sequence/gated_delta_net.h"
#include "rlx/ops/sequence/selective_scan.h"

namespace rlx::cpu {
namespace {

float* f32_out(const Launch& l, size_t i) { return reinterpret_cast<float*>(l.out[i]); }
int64_t size(const Arg& x, int axis) { return x.shape.dim(axis).value(); }

std::unique_ptr<Step> prepare_selective_scan(const Request& r) {
  const Arg &x = r.in[0], &a = r.in[2];
  const SelectiveScan p{
      .batch = size(x, 0), .length = size(x, 1), .channels = size(x, 2), .states = size(a, 1)};
  return make_step(
      [p](const Launch& l) {
        SelectiveScan now = p;
        now.x = f32(l, 0);
        now.delta = f32(l, 1);
        now.a = f32(l, 2);
        now.b = f32(l, 3);
        now.c = f32(l, 4);
        now.y = f32_out(l, 0);
        selective_scan(l.team, now, l.workspace);
      },
      selective_scan_workspace(p, r.threads));
}

std::unique_ptr<Step> prepare_gated_delta_net(const Request& r) {
  const Arg& q = r.in[0];
  const GatedDeltaNet p{.batch = size(q, 0), .length = size(q, 1), .heads = size(q, 2), .size = size(q, 3)};
  return make_step(
      [p, carry = r.in.size() > 5](const Launch& l) {
        GatedDeltaNet now = p;
        now.q = f32(l, 0);
        now.k = f32(l, 1);
        now.v = f32(l, 2);
        now.g = f32(l, 3);
        now.beta = f32(l, 4);
        if (carry) now.state = f32(l, 5);
        now.y = f32_out(l, 0);
        now.final_state = f32_out(l, 1);
        gated_delta_net(l.team, now, l.workspace);
      },
      gated_delta_net_workspace(p, r.threads));
}

Support accepts_causal_conv(const Request& r) {
  if (const Support s = all_of(r, DType::f32); !s) return s;
  if (r.in[0].shape.elements() == 0) return Support::no("operand 0 is empty");
  return all_row_major(r);
}

std::unique_ptr<Step> prepare_causal_conv(const Request& r) {
  const Arg &x = r.in[0], &w = r.in[1];
  const CausalConv p{.batch = size(x, 0), .length = size(x, 1), .channels = size(x, 2), .kernel = size(w, 3)};
  return make_step(
      [p](const Launch& l) {
        CausalConv now = p;
        now.x = f32(l, 0);
        now.w = f32(l, 1);
        if (p.kernel > 1) now.left = f32(l, 2);
        now.y = f32_out(l, 0);
        causal_conv(l.team, now, l.workspace);
      },
      causal_conv_workspace(p, r.threads));
}

}  // namespace

void add_sequence(KernelTable& table) {
  table.add<ops::SelectiveScan>({"selective_scan_f32", plain_f32, prepare_selective_scan});
  table.add<ops::GatedDeltaNet>({"gated_delta_net_f32", plain_f32, prepare_gated_delta_net});
  table.add<ops::GatedDeltaNetCarry>({"gated_delta_net_f32", plain_f32, prepare_gated_delta_net});
  table.add<ops::DepthwiseConv1dCausal>({"causal_conv_f32", accepts_causal_conv, prepare_causal_conv});
  table.add<ops::SelectiveScan>(wide_kernel<plain_f32, prepare_selective_scan>("selective_scan_wide"));
  table.add<ops::GatedDeltaNet>(wide_kernel<plain_f32, prepare_gated_delta_net>("gated_delta_net_wide"));
  table.add<ops::GatedDeltaNetCarry>(wide_kernel<plain_f32, prepare_gated_delta_net>("gated_delta_net_wide"));
  table.add<ops::DepthwiseConv1dCausal>(
      wide_kernel<accepts_causal_conv, prepare_causal_conv>("causal_conv_wide"));
}

}  // namespace rlx::cpu
