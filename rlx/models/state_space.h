// The layer of Mamba 2: a state for each head that decays by one number a token. Mamba 2 is made of it, Falcon-H1 has it beside
// attention.
#pragma once

#include "rlx/models/config_source.h"
#include "rlx/models/net.h"

namespace rlx::models {

/// Parts of a token that are normed by themselves: the rows of GGUF's norm weight; 1 in folders and where there is none.
int64_t gguf_norm_groups(const ConfigSource&);
/// Heads that groups do not divide, or channels that heads do not, are user errors.
void check_state_space(const ConfigSource&, const Config&);

/// Weights "ssm_in", "ssm_conv", "ssm_a", "ssm_dt", "ssm_d", "ssm_norm" if Config::ssm.gated_norm, "ssm_out".
///   z, (x, B, C), dt = u W;   (x, B, C) = silu(conv(..));   d = softplus(dt + b)
///   S = e^(d A) S + d x B^T;   y = S C + D x;   out = norm(y, z) Wo
Tensor state_space_layer(Net&, const Tensor& x);

}  // namespace rlx::models
