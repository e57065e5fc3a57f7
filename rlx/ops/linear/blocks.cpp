#include "rlx/ops/linear/blocks.h"

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/linear/fused_linear.h"
#include "rlx/ops/linear/swiglu.h"
#include "rlx/ops/shape/concat.h"

namespace rlx::ops {

Expr linear_bias(Expr x, Expr w, Expr bias) {
  const Expr y = matmul(x, w);
  return bias ? y + bias : y;
}

Expr linear_bias_act(Expr x, Expr w, Expr bias, std::optional<Activation> act) {
  const Expr y = linear_bias(x, w, bias);
  return act ? activation(*act, y) : y;
}

Expr linear_fused(Expr x, Expr w, Expr bias, std::optional<Activation> act) {
  return fused_matmul_bias_act(x, w, bias, act);
}

std::pair<Expr, Expr> shared_matmul_pair(Expr x, Expr w_first, Expr w_second) {
  return {matmul(x, w_first), matmul(x, w_second)};
}

namespace {

// Columns pair up one by one: without this a broadcast or a cut in the wrong place would go unnoticed.
void require_alike(Expr up_w, Expr gate_w) {
  for (int axis = 0; axis < std::min(up_w.rank(), gate_w.rank()); ++axis) {
    if (!decide_equal(up_w.dim(axis), gate_w.dim(axis)))
      up_w.graph->assume_equal(up_w.dim(axis), gate_w.dim(axis));
  }
  if (up_w.shape() != gate_w.shape())
    throw invalid("swiglu_ffn: up_w: ", up_w.shape(), " and gate_w: ", gate_w.shape(),
                  " differ; they must be alike");
}

}  // namespace

Expr swiglu_ffn(Expr x, Expr up_w, Expr gate_w, Expr down_w) {
  require_alike(up_w, gate_w);
  const auto [up, gate] = shared_matmul_pair(x, up_w, gate_w);
  return matmul(up * silu(gate), down_w);
}

Expr fused_swiglu_ffn(Expr x, Expr up_w, Expr gate_w, Expr down_w) {
  require_alike(up_w, gate_w);
  return matmul(fused_swiglu(matmul(x, concat({up_w, gate_w}, -1)), false), down_w);
}

}  // namespace rlx::ops
