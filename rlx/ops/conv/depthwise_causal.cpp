#include "rlx/ops/conv/depthwise_causal.h"

#include "rlx/ops/conv/conv.h"
#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::ops {

Shapes DepthwiseConv1dCausal::infer(Infer& c, Attrs&) {
  c.same_dtype({0, 1, 2});
  c.require_float(0);
  c.require_rank(0, 3);
  c.require_rank(1, 4);
  c.require_rank(2, 3);
  const Shape &x = c.in(0), &w = c.in(1), &pad = c.in(2);
  c.same(x.dim(2), w.dim(0), "channels of input and weight");
  c.same(w.dim(1), 1, "axis 1 of weight and 1");
  c.same(w.dim(2), 1, "axis 2 of weight and 1");
  c.same(x.dim(0), pad.dim(0), "batches of input and left_pad");
  c.same(w.dim(3), pad.dim(1) + Dim(1), "kernel size and length of left_pad + 1");
  c.same(x.dim(2), pad.dim(2), "channels of input and left_pad");
  return {x};
}

Exprs DepthwiseConv1dCausal::decompose(const Lower& c, const Attrs&) {
  const Expr x = c.in(0), w = c.in(1);
  const Expr padded = transpose(concat({c.in(2), x}, 1), {0, 2, 1});  // [B, C, K-1+S]
  Conv::Attrs a;
  a.groups = x.dim(2);
  a.size = {x.dim(1)};
  return {transpose(conv(padded, reshape(w, {w.dim(0), 1, w.dim(3)}), a), {0, 2, 1})};
}

double DepthwiseConv1dCausal::operations(std::span<const Shape> in, std::span<const Shape> out,
                                         const Attrs&) {
  return 2.0 * double(out[0].elements()) * double(in[1].dim(-1).value());
}

std::vector<OpSample<DepthwiseConv1dCausal::Attrs>> DepthwiseConv1dCausal::samples() {
  return {{{}, {"f32[2,5,3]", "f32[3,1,1,4]", "f32[2,3,3]"}},
          {{}, {"f64[1,1,2]", "f64[2,1,1,3]", "f64[1,2,2]"}},
          {{}, {"f32[1,3,1]", "f32[1,1,1,1]", "f32[1,0,1]"}},
          {{}, {"f32[1,0,2]", "f32[2,1,1,2]", "f32[1,1,2]"}},
          {{}, {"bf16[1,4,2]", "bf16[2,1,1,2]", "bf16[1,1,2]"}}};
}

Expr depthwise_conv1d_causal(Expr input, Expr weight, Expr left_pad) {
  return make<DepthwiseConv1dCausal>(*input.graph, {}, {input, weight, left_pad});
}

}  // namespace rlx::ops
