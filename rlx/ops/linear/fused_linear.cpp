#include "rlx/ops/linear/fused_linear.h"

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/linalg/matmul.h"

namespace rlx::ops {

Shapes FusedMatmulBiasAct::infer(Infer& c, Attrs&) {
  c.same_dtype({0, 1, 2});
  c.require_float(0);
  c.require_rank(2, 1);
  const Shape y = product_shape(c, c.in(0), 1);
  if (decide_equal(c.in(2).dim(0), y.dim(-1)) == false)
    c.fail("bias: ", c.in(2), " must have the ", y.dim(-1), " columns of w: ", c.in(1));
  c.same(c.in(2).dim(0), y.dim(-1), "sizes");
  return {y};
}

Exprs FusedMatmulBiasAct::decompose(const Lower& c, const Attrs& a) {
  const Expr sum = matmul(c.in(0), c.in(1)) + c.in(2);
  return {a.activation ? activation(*a.activation, sum) : sum};
}

std::vector<OpSample<FusedMatmulBiasAct::Attrs>> FusedMatmulBiasAct::samples() {
  return {{{}, {"f32[2,3]", "f32[3,4]", "f32[4]"}},
          {{Activation::gelu}, {"f64[2,1,3]", "f64[3,2]", "f64[2]"}},
          {{Activation::silu}, {"f32[2,2,3]", "f32[2,3,5]", "f32[5]"}},
          {{Activation::tanh}, {"f32[0,3]", "f32[3,2]", "f32[2]"}},
          {{Activation::sigmoid}, {"bf16[1,1]", "bf16[1,1]", "bf16[1]"}}};
}

Shapes LoraMatmul::infer(Infer& c, Attrs&) {
  c.same_dtype({0, 1, 2, 3});
  c.require_float_or_complex(0);
  for (int i = 1; i < 4; ++i) c.require_rank(i, 2);
  const Shape y = product_shape(c, c.in(0), 1);
  const Shape down = product_shape(c, c.in(0), 2);
  const Shape up = product_shape(c, down, 3);
  c.same(y.dim(-1), up.dim(-1), "columns of w and b");
  return {y};
}

Exprs LoraMatmul::decompose(const Lower& c, const Attrs& a) {
  const Expr update = matmul(matmul(c.in(0), c.in(2)), c.in(3));
  return {matmul(c.in(0), c.in(1)) + a.scale * update};
}

double LoraMatmul::operations(std::span<const Shape> in, std::span<const Shape> out, const Attrs&) {
  const double rank = double(in[2].dim(-1).value());
  return product_operations(in, out) + 2 * rank * double(in[0].elements() + out[0].elements());
}

std::vector<OpSample<LoraMatmul::Attrs>> LoraMatmul::samples() {
  return {{{0.5}, {"f32[3,6]", "f32[6,5]", "f32[6,2]", "f32[2,5]"}},
          {{-2}, {"f64[2,2,3]", "f64[3,2]", "f64[3,1]", "f64[1,2]"}},
          {{1}, {"f32[0,3]", "f32[3,2]", "f32[3,1]", "f32[1,2]"}},
          {{0.25}, {"f32[2,3]", "f32[3,2]", "f32[3,0]", "f32[0,2]"}},
          {{1}, {"f16[1,1]", "f16[1,1]", "f16[1,1]", "f16[1,1]"}}};
}

Expr fused_matmul_bias_act(Expr x, Expr w, Expr bias, std::optional<Activation> activation) {
  return make<FusedMatmulBiasAct>(*x.graph, {activation}, {x, w, bias});
}

Expr lora_matmul(Expr x, Expr w, Expr a, Expr b, double scale) {
  return make<LoraMatmul>(*x.graph, {scale}, {x, w, a, b});
}

}  // namespace rlx::ops
