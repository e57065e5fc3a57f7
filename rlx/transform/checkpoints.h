// How much memory the gradient of a loop needs, and how many checkpoints fit a budget.
#pragma once

#include "rlx/transform/walk.h"

namespace rlx::transform {

struct ScanMemory {
  int64_t checkpoints = 0;  // 0: the plain form
  int64_t bytes =
      0;  // carries at checkpoints and residuals of one segment; what the gradient keeps at its peak
};

/// The memory of the gradient of a scan over `body` (its first `carries` inputs are carried) with K
/// checkpoints:
///   K carry + ceil(L / K) step, or L step without checkpoints,
/// where a step keeps its residuals and the incoming carries that the backward body reads.
ScanMemory scan_memory(const Graph& body, size_t carries, int64_t length, int64_t checkpoints);

/// The plain form when it fits `budget` bytes, else the number of checkpoints that needs the least. A budget
/// below that is an error that names the least.
ScanMemory fit_scan(const Graph& body, size_t carries, int64_t length, int64_t budget);

/// A scan whose gradient fits `budget` bytes; final carries, then stacked outputs.
Exprs scan_within(Graph& g, const Exprs& init, const Exprs& consts, const Exprs& xs, Graph body,
                  int64_t length, int64_t budget);

}  // namespace rlx::transform
