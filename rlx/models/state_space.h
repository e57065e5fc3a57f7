// The layer of Mamba 2: a state for each head that decays by one number a token. Mamba 2 is made of it, Falcon-H1 has it beside
// attention.
#pragma once

#include "rlx/models/net.h"

namespace rlx::models {

/// Weights "ssm_in", "ssm_conv", "ssm_a", "ssm_dt", "ssm_d", "ssm_norm" if Config::ssm.gated_norm, "ssm_out".
///   z, (x, B, C), dt = u W;   (x, B, C) = silu(conv(..));   d = softplus(dt + b)
///   S = e^(d A) S + d x B^T;   y = S C + D x;   out = norm(y, z) Wo
Tensor state_space_layer(Net&, const Tensor& x);

}  // namespace rlx::models
