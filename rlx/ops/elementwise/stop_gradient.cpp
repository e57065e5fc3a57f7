#include "rlx/ops/elementwise/stop_gradient.h"

namespace rlx::ops {

Shapes StopGradient::infer(Infer& c, Attrs&) { return {c.in(0)}; }
Literals StopGradient::reference(const Eval& c, const Attrs&) { return {c.in(0)}; }
Exprs StopGradient::vjp(const Vjp&, const Attrs&) { return {Expr{}}; }
Exprs StopGradient::jvp(const Jvp&, const Attrs&) { return {Expr{}}; }

std::optional<Layout> StopGradient::view(const View& c, const Attrs&) { return c.layout; }

std::vector<OpSample<NoAttrs>> StopGradient::samples() {
  return {{{}, {"f32[2,3]"}}, {{}, {"f64[]"}}, {{}, {"i32[4]"}}, {{}, {"bool[0]"}}, {{}, {"c64[1]"}}};
}

Expr stop_gradient(Expr x) { return make<StopGradient>(*x.graph, {}, {x}); }

}  // namespace rlx::ops
