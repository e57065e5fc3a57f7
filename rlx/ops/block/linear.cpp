#include "rlx/ops/block/linear.h"

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/linear/blocks.h"
#include "rlx/ops/linear/fused_linear.h"

namespace rlx::ops {
namespace {

// Fused only with a bias: a bare product is fused by nobody but the compiler.
Exprs lower_linear(const Lower& c, const LinearAttrs& a) {
  if (c.has(2) && c.policy == FusionPolicy::direct)
    return {fused_matmul_bias_act(c.in(0), c.in(1), c.in(2), a.activation)};
  Expr y = matmul(c.in(0), c.in(1));
  if (c.has(2)) y = add(y, c.in(2));
  return {a.activation ? activation(*a.activation, y) : y};
}

std::vector<OpSample<LinearAttrs>> biased_samples() {
  return {{{}, {"f32[2,3]", "f32[3,4]", "f32[4]"}},
          {{Activation::gelu}, {"f32[2,3,5]", "f32[5,1]", "f32[1]"}},
          {{Activation::relu}, {"f64[0,3]", "f64[3,4]", "f64[4]"}},
          {{Activation::silu}, {"f32[1,1]", "f32[1,1]", "f32[1]"}},
          {{Activation::tanh}, {"f32[7,3]", "f32[3,5]", "f32[5]"}}};
}

}  // namespace

Exprs LinearBlock::decompose(const Lower& c, const Attrs& a) { return lower_linear(c, a); }
std::vector<OpSample<LinearAttrs>> LinearBlock::samples() {
  auto out = biased_samples();
  out.push_back({{Activation::gelu_approx}, {"f32[2,3]", "f32[3,4]"}});
  out.push_back({{std::nullopt}, {"f32[1,3]", "f32[3,2]"}});
  return out;
}

Exprs LinearFusedBlock::decompose(const Lower& c, const Attrs& a) { return lower_linear(c, a); }
std::vector<OpSample<LinearAttrs>> LinearFusedBlock::samples() { return biased_samples(); }

Exprs SharedLinearPair::decompose(const Lower& c, const Attrs&) {
  return {matmul(c.in(0), c.in(1)), matmul(c.in(0), c.in(2))};
}
std::vector<OpSample<NoAttrs>> SharedLinearPair::samples() {
  return {{{}, {"f32[2,3]", "f32[3,4]", "f32[3,2]"}},
          {{}, {"f64[2,3,5]", "f64[5,1]", "f64[5,7]"}},
          {{}, {"f32[0,3]", "f32[3,4]", "f32[3,4]"}},
          {{}, {"f32[1,1]", "f32[1,1]", "f32[1,1]"}},
          {{}, {"f32[7,3]", "f32[3,5]", "f32[3,5]"}}};
}

Expr gated_ffn(Expr x, Expr up_w, Expr gate_w, Expr down_w, FusionPolicy policy) {
  return policy == FusionPolicy::direct ? fused_swiglu_ffn(x, up_w, gate_w, down_w)
                                        : swiglu_ffn(x, up_w, gate_w, down_w);
}

Exprs SwigluFfn::decompose(const Lower& c, const Attrs&) {
  return {gated_ffn(c.in(0), c.in(1), c.in(2), c.in(3), c.policy)};
}
std::vector<OpSample<NoAttrs>> SwigluFfn::samples() {
  return {{{}, {"f32[2,3]", "f32[3,4]", "f32[3,4]", "f32[4,3]"}},
          {{}, {"f64[2,3,5]", "f64[5,7]", "f64[5,7]", "f64[7,5]"}},
          {{}, {"f32[0,3]", "f32[3,4]", "f32[3,4]", "f32[4,3]"}},
          {{}, {"f32[1,1]", "f32[1,1]", "f32[1,1]", "f32[1,1]"}},
          {{}, {"f32[2,1,3]", "f32[3,5]", "f32[3,5]", "f32[5,2]"}}};
}

}  // namespace rlx::ops
