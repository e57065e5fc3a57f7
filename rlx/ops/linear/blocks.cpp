#include "rlx/ops/linear/blocks.h"

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/linear/fused_linear.h"
#include "rlx/ops/linear/swiglu.h"
#include "rlx/ops/shape/concat.h"

namespace rlx::ops {

Tensor linear_bias(Tensor x, Tensor w, Tensor bias) {
  const Tensor y = matmul(x, w);
  return bias ? y + bias : y;
}

Tensor linear_bias_act(Tensor x, Tensor w, Tensor bias, std::optional<Activation> act) {
  const Tensor y = linear_bias(x, w, bias);
  return act ? activation(*act, y) : y;
}

Tensor linear_fused(Tensor x, Tensor w, Tensor bias, std::optional<Activation> act) {
  return fused_matmul_bias_act(x, w, bias, act);
}

std::pair<Tensor, Tensor> shared_matmul_pair(Tensor x, Tensor w_first, Tensor w_second) {
  return {matmul(x, w_first), matmul(x, w_second)};
}

namespace {

// Columns pair up one by one: without this a broadcast or a cut in the wrong place would go unnoticed.
void require_alike(Tensor up_w, Tensor gate_w) {
  if (up_w.shape() != gate_w.shape())
    throw invalid("swiglu_ffn: up_w: ", up_w.shape(), " and gate_w: ", gate_w.shape(),
                  " differ; they must be alike");
}

}  // namespace

Tensor swiglu_ffn(Tensor x, Tensor up_w, Tensor gate_w, Tensor down_w) {
  require_alike(up_w, gate_w);
  const auto [up, gate] = shared_matmul_pair(x, up_w, gate_w);
  return matmul(up * silu(gate), down_w);
}

Tensor fused_swiglu_ffn(Tensor x, Tensor up_w, Tensor gate_w, Tensor down_w) {
  require_alike(up_w, gate_w);
  return matmul(fused_swiglu(matmul(x, concat({up_w, gate_w}, -1)), false), down_w);
}

}  // namespace rlx::ops
