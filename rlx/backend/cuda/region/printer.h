// A region as CUDA C++.
#pragma once

#include <vector>

#include "rlx/backend/cuda/compile/function.h"
#include "rlx/backend/cuda/region/schedule.h"
#include "rlx/backend/cuda/region/words.h"

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

/// The rows of a region as a function for other kernels: name(arguments.., row), called by all threads of each block, of which the schedule
/// says how many. Results in `once` are written by the first block of the grid alone.
std::string print_row_function(const region::Region&, const Schedule&, const std::string& name,
                               const std::vector<bool>& once);
/// One element of a region without reductions: name(e, arguments..), e counting the elements of its box. Arguments in `values` are
/// numbers as memory would hold them, or references to such, not addresses.
std::string print_element_function(const region::Region&, const std::string& name,
                                   const std::vector<bool>& values);
/// The same for as many neighbours, from e on, as the schedule has in a vector; arguments in `values` are packs of so many numbers,
/// and where there are such no result takes the place of an operand.
std::string print_vector_function(const region::Region&, const Schedule&, const std::string& name,
                                  const std::vector<bool>& values = {});

/// A kernel whose warps go over all rows of a region in turn (warp_schedule), `blocks` to the grid. Arguments in `summed` are f32 results that are not parameters but summed over all rows: the
/// workspace gets f32 [summed arguments, blocks, columns], what each block found.
Source print_rows_with_sums(const region::Region&, const Schedule&, const std::vector<bool>& summed,
                            int64_t blocks);

}  // namespace rlx::cuda
