// Kernels that were compiled for GPUs and run on the host, but not measured on a GPU yet, are chosen on request alone.
#pragma once

#include <string_view>

#include "rlx/base/options.h"

namespace rlx::cuda {

/// RLX_CUDA_UNTRIED lists names, separated by commas; `all` stands for every name.
inline bool takes_untried(std::string_view name) {
  const std::string wanted = "," + option("RLX_CUDA_UNTRIED").value_or("") + ",";
  return wanted == ",all," || wanted.find("," + std::string(name) + ",") != std::string::npos;
}
inline constexpr std::string_view kUntried = "no GPU has run this kernel yet (RLX_CUDA_UNTRIED=all takes it)";

}  // namespace rlx::cuda
