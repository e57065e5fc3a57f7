// Linear layers spelled out in ordinary operators. None of these is an operator itself.
#pragma once

#include <optional>
#include <utility>

#include "rlx/ops/elementwise/activation.h"
#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

/// x w + bias; an empty bias is none.
Expr linear_bias(Expr x, Expr w, Expr bias = {});
/// act(x w + bias)
Expr linear_bias_act(Expr x, Expr w, Expr bias, std::optional<Activation> act = std::nullopt);
/// The same as one fused_matmul_bias_act.
Expr linear_fused(Expr x, Expr w, Expr bias, std::optional<Activation> act = std::nullopt);
/// (x w_first, x w_second)
std::pair<Expr, Expr> shared_matmul_pair(Expr x, Expr w_first, Expr w_second);
/// ((x up_w) silu(x gate_w)) down_w
Expr swiglu_ffn(Expr x, Expr up_w, Expr gate_w, Expr down_w);
/// The same with one product for up and gate: their weights joined by columns, then fused_swiglu.
Expr fused_swiglu_ffn(Expr x, Expr up_w, Expr gate_w, Expr down_w);

}  // namespace rlx::ops
