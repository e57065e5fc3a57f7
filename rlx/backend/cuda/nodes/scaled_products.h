// Products of fp8 with fp8, as their kernels see them.
#pragma once

#include <vector>

#include "rlx/backend/cuda/nodes/product_turns.h"

namespace rlx::cuda {

/// Steps in elements along the last two axes and from one matrix to the next; of scales 0 where one holds for all.
struct MatrixSteps {
  int64_t row = 0, column = 0, batch = 0;
};

/// Operands of a launch: those of the node, and its result.
enum ScaledMember { kScaledX, kScaledW, kScaledOfX, kScaledOfW, kScaledY, kScaledMembers };

/// y [m, n] = x [m, k] w [k, n], `batch` times, at `outer` places.
struct ScaledProduct {
  DType x = DType::f8e4m3, w = DType::f8e4m3, y = DType::bf16;
  int64_t m = 0, n = 0, k = 0, batch = 1;
  MatrixSteps steps[kScaledMembers];
  bool scaled[2] = {};       // x, w
  int64_t group = 0;         // neighbours along k that share scales; 0: all do
  int64_t column_block = 1;  // columns of w that share a scale
  bool w_is_fixed = false;
  struct Axis {
    int64_t size, steps[kScaledMembers];
  };
  std::vector<Axis> outer;

  int64_t places() const;
  /// Where the member of place i begins, in elements.
  int64_t offset(ScaledMember, int64_t i) const;
  bool w_runs_along_k() const { return k == 1 || steps[kScaledW].row == 1; }
};

ScaledProduct read_scaled_product(const Request&);

/// What kernels of groups of warps are told of it, with x and w as they lie.
TurnsProduct turns_of(const ScaledProduct&, int vector);

/// The same on the matrix units of groups of warps (kernels/product_turns.h), or `plain`, whichever was measured to be faster; `plain` itself where those cannot take it.
std::unique_ptr<Step> on_groups_of_warps(const Request&, const ScaledProduct&, std::unique_ptr<Step> plain);

}  // namespace rlx::cuda
