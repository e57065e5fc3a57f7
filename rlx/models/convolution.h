// The short causal convolution before a recurrence.
#pragma once

#include "rlx/models/net.h"

namespace rlx::models {

/// Each channel of x [batch, seq, channels] with its own `taps` taps, weight [channels, 1, taps], and the bias where the file has
/// one, then the activation of the model. With states the last taps - 1 rows are kept.
Tensor causal_convolution(Net&, std::string_view key, const Tensor& x, int64_t taps);

}  // namespace rlx::models
