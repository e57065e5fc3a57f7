// The gradients of layer norm and RMS norm over the last axis, in f32.
#include "rlx/backend/cpu/kernels/rows.h"
#include "rlx/backend/cpu/nodes/families.h"
#include "rlx/ops/norm/axis_norm_backward.h"

namespace rlx::cpu {
namespace {

float* f32_out(const Launch& l, size_t i) { return reinterpret_cast<float*>(l.out[i]); }

template <class Op>
Support accepts_gradient(const Request& r) {
  if (r.node.as<Op>().axis != r.in[0].shape.rank() - 1)
    return Support::no("axis ", r.node.as<Op>().axis, " is not the last");
  return plain_f32(r);
}

template <class Op, NormKind Kind>
NormBackward describe(const Request& r) {
  NormBackward p{.kind = Kind, .n = r.in[0].shape.dim(-1).value(), .epsilon = float(r.node.as<Op>().eps)};
  p.rows = r.in[0].shape.elements() / p.n;
  return p;
}

// dy is the last operand, gamma the second.
template <class Op, NormKind Kind>
std::unique_ptr<Step> prepare_input_gradient(const Request& r) {
  const NormBackward p = describe<Op, Kind>(r);
  auto step = make_step(
      [p, dy = r.in.size() - 1](const Launch& l) {
        NormBackward now = p;
        now.x = f32(l, 0);
        now.gamma = f32(l, 1);
        now.dy = f32(l, dy);
        now.dx = f32_out(l, 0);
        norm_backward(l.team, now, l.workspace);
      },
      norm_backward_workspace(p, r.threads));
  return step;
}

template <class Op, NormKind Kind>
std::unique_ptr<Step> prepare_gamma_gradient(const Request& r) {
  const NormBackward p = describe<Op, Kind>(r);
  return make_step(
      [p, dy = r.in.size() - 1](const Launch& l) {
        NormBackward now = p;
        now.x = f32(l, 0);
        now.dy = f32(l, dy);
        now.dgamma = f32_out(l, 0);
        norm_backward(l.team, now, l.workspace);
      },
      norm_backward_workspace(p, r.threads));
}

template <class Op, NormKind Kind>
void add_input_gradient(KernelTable& table) {
  table.add<Op>({"norm_backward_rows_f32", accepts_gradient<Op>, prepare_input_gradient<Op, Kind>});
}
template <class Op, NormKind Kind>
void add_gamma_gradient(KernelTable& table) {
  table.add<Op>({"norm_backward_gamma_rows_f32", accepts_gradient<Op>, prepare_gamma_gradient<Op, Kind>});
}

}  // namespace

void add_norm_gradients(KernelTable& table) {
  add_input_gradient<ops::LayerNormBackwardInput, NormKind::layer>(table);
  add_input_gradient<ops::RmsNormBackwardInput, NormKind::rms>(table);
  add_gamma_gradient<ops::LayerNormBackwardGamma, NormKind::layer>(table);
  add_gamma_gradient<ops::RmsNormBackwardGamma, NormKind::rms>(table);
}

}  // namespace rlx::cpu
