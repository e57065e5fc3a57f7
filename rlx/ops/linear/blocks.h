// Linear layers spelled out in ordinary operators. None of these is an operator itself.
#pragma once

#include <optional>
#include <utility>

#include "rlx/ir/value.h"
#include "rlx/ops/elementwise/activation.h"

namespace rlx::ops {

/// x w + bias; an empty bias is none.
Tensor linear_bias(Tensor x, Tensor w, Tensor bias = {});
/// act(x w + bias)
Tensor linear_bias_act(Tensor x, Tensor w, Tensor bias, std::optional<Activation> act = std::nullopt);
/// The same as one fused_matmul_bias_act.
Tensor linear_fused(Tensor x, Tensor w, Tensor bias, std::optional<Activation> act = std::nullopt);
/// (x w_first, x w_second)
std::pair<Tensor, Tensor> shared_matmul_pair(Tensor x, Tensor w_first, Tensor w_second);
/// ((x up_w) silu(x gate_w)) down_w
Tensor swiglu_ffn(Tensor x, Tensor up_w, Tensor gate_w, Tensor down_w);
/// The same with one product for up and gate: their weights joined by columns, then fused_swiglu.
Tensor fused_swiglu_ffn(Tensor x, Tensor up_w, Tensor gate_w, Tensor down_w);

}  // namespace rlx::ops
