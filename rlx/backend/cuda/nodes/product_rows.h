// Products of many rows whose whole rows end in a region of rows, by clusters of blocks (kernels/product_rows.h).
#pragma once

#include "rlx/backend/cuda/nodes/product_turns.h"

namespace rlx::cuda {

/// How such a product is cut; see the kernel.
struct RowsCut {
  int64_t halves = 1, across = 1, parts = 1, stages = 0;
  bool shared = false, one_tile = false;
  size_t bytes = 0;  // of shared memory
  int64_t blocks = 1;
  double cycles = 0;  // as the model expects

  int64_t cluster() const { return across * parts; }
  std::string text() const;
};

/// Elements from one row of products to the next, where they are finished.
int64_t rows_line(const TurnsProduct&);
/// Why the kernel cannot take it, or nothing.
std::string rows_problem(const TurnsProduct&);
/// The product cut so (halves, across, parts and shared of `wanted`) for at most so many blocks at a time, or nothing where it does not fit.
std::optional<RowsCut> rows_cut(const TurnsProduct&, RowsCut wanted, int64_t processors,
                                int64_t shared_memory);
/// Ways to cut it, the best by the model first, then some that share columns and k in other ways.
std::vector<RowsCut> rows_cuts(const TurnsProduct&, int64_t processors, int64_t shared_memory);

class ProductRows {
 public:
  /// `hooks`: the text of Params and finish_row, for `lanes` lanes of a warp.
  ProductRows(const Device&, const TurnsProduct&, const RowsCut&, int lanes, const std::string& hooks);

  const Source& source() const { return function_->source(); }
  /// `params`: the bytes of Params. All addresses are multiples of 16.
  void run(const Gpu&, Stream_*, void* params, const std::byte* a, const std::byte* b) const;

 private:
  TurnsProduct p_;
  RowsCut cut_;
  FunctionRef function_;
};

}  // namespace rlx::cuda
