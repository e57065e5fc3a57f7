#include "rlx/ops/elementwise/stop_gradient.h"

namespace rlx::ops {

Shapes StopGradient::infer(Infer& c, Attrs&) { return {c.in(0)}; }
Literals StopGradient::reference(const Eval& c, const Attrs&) { return {c.in(0)}; }
Tensors StopGradient::vjp(const Vjp&, const Attrs&) { return {Tensor{}}; }
Tensors StopGradient::jvp(const Jvp&, const Attrs&) { return {Tensor{}}; }

std::vector<OpSample<NoAttrs>> StopGradient::samples() {
  return {{{}, {"f32[2,3]"}}, {{}, {"f64[]"}}, {{}, {"i32[4]"}}, {{}, {"bool[0]"}}, {{}, {"c64[1]"}}};
}

Tensor stop_gradient(Tensor x) { return make<StopGradient>(*x.graph, {}, {x}); }

}  // namespace rlx::ops
