#include "rlx/backend/cuda/nodes/untried.h"

#include "rlx/base/options.h"

namespace rlx::cuda {

bool takes_untried() { return option("RLX_CUDA_UNTRIED").value_or("0") == "1"; }

}  // namespace rlx::cuda
