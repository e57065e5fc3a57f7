// A region as CUDA C++.
#pragma once

#include <vector>

#include "rlx/backend/cuda/compile/function.h"
#include "rlx/backend/cuda/region/schedule.h"

namespace rlx::cuda {

/// One or two kernels, launched in order. Parameters: the addresses of the region's inputs and results,
/// then of the workspace.
struct PrintedRegion {
  struct Kernel {
    Source source;
    Grid grid, block;
  };
  std::vector<Kernel> kernels;
  Schedule schedule;
  size_t workspace = 0;
};

PrintedRegion print_region(const region::Region&, const Schedule&);

/// The C++ type of elements in memory, as the prelude names it.
std::string_view memory_type(DType);

}  // namespace rlx::cuda
