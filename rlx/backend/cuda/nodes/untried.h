// Kernels that were compiled for GPUs and run on the host but not on a GPU yet are chosen on request alone.
#pragma once

#include <string_view>

namespace rlx::cuda {

/// RLX_CUDA_UNTRIED=1.
bool takes_untried();
inline constexpr std::string_view kUntried = "no GPU has run this kernel yet (RLX_CUDA_UNTRIED=1 takes it)";

}  // namespace rlx::cuda
