// Elementwise operators inside of kernels that run all steps of a loop: h = f(h w, x_t, ..), one element of the state a call.
#pragma once

#include <set>
#include <utility>

#include "rlx/backend/cuda/nodes/families.h"
#include "rlx/ops/control/scan.h"
#include "rlx/region/region.h"

namespace rlx::cuda {

/// The region of node `n` of the body of a loop if the kernel can run it element by element of a state of this type; else why not. Values in `made`,
/// which the kernel holds in registers, and results must lie as the state does.
struct LoopRegion {
  std::optional<region::Region> region;
  std::string problem;
};
LoopRegion loop_region(const ir::Graph& body, const ir::Node& n, const Shape& state,
                       const std::vector<ir::Value>& made);

/// What the steps read of sequences, asked for a step ahead: members of `struct Slices` and what loads them.
struct LoopSlices {
  std::string fields, loads;
  std::set<size_t> operands;
};

/// The text of a function, and the arguments of its call behind the element: values of the step as `made` calls them, operands of the loop, then results.
struct LoopCall {
  std::string function, arguments;
};
LoopCall loop_call(const Request& r, const ir::Node& n, const region::Region& region, const std::string& name,
                   const std::vector<std::pair<ir::Value, std::string>>& made,
                   const std::vector<std::string>& results, LoopSlices& slices);

/// Members of `struct Params`: operands of the loop as x0, x1 .., then its results as y0, y1 ..
std::string loop_params(const Request& r);

/// Launches a kernel of `struct Params` with two blocks of 512 threads for each row of the state.
std::unique_ptr<Step> loop_step(const Request& r, std::string note, FunctionRef f);

}  // namespace rlx::cuda
