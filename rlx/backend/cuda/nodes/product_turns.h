// Products of many rows with the elements behind them, by groups of warps that take turns at the matrix units (kernels/product_turns.h).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "rlx/backend/cuda/nodes/head_maps.h"

namespace rlx::cuda {

/// Operands of fp8 and their scales, which Params have as of_x and of_w[sides]; steps in elements, 0 where one holds for all.
struct TurnsFp8 {
  DType a = DType::f8e4m3, b = DType::f8e4m3;
  bool scaled_rows = false, scaled_columns = false;
  int64_t group = 0;  // neighbours along k that share scales; 0: all do
  int64_t row_step = 0, row_group = 0, column_step = 0, column_group = 0, column_block = 1;
  bool operator==(const TurnsFp8&) const = default;
};

/// y [m, n] of a [m, k] and b [k, n] of each side, with strides in elements; rows of a and of y are runs.
struct TurnsProduct {
  DType dtype = DType::bf16;  // of sums that are rounded, and of a and b but for fp8
  int64_t m = 0, n = 0, k = 0;
  int64_t a_row = 0, b_row = 0, b_column = 0;
  int sides = 1;
  int vector = 8;  // elements that are finished together
  bool b_is_fixed =
      false;  // no kernel of the program makes it: it may be read before those in front have ended
  std::optional<TurnsFp8> fp8 = {};

  /// Rows of b are runs; columns are otherwise.
  bool is_turned() const { return b_column == 1 && b_row != 1; }
  /// Of a slice along k, 128 bytes.
  int64_t lanes() const { return fp8 ? 128 : 64; }
  /// Groups of warps that have a tile together.
  int64_t groups() const { return fp8 ? 2 : 1; }
};

/// How such a product is cut; see the kernel. `halves` of 64 rows are those of a group.
struct TurnsTiles {
  int64_t halves = 2, wide = 128, item = 1, cluster = 1, stages = 0, groups = 1;
  bool resident = false, rows_first = false;
  size_t shared = 0;
  int64_t blocks = 1;
  double cycles = 0;  // as the model expects

  std::string text() const;
};

/// Why the kernel cannot take it, or nothing.
std::string turns_problem(const TurnsProduct&);
/// The product cut so (halves, wide, item, cluster and resident of `wanted`), or nothing where shared memory is too small.
std::optional<TurnsTiles> turns_cut(const TurnsProduct&, TurnsTiles wanted, int64_t processors,
                                    int64_t shared_memory);
/// Ways to cut it for so many processors, the best by the model first; of each height, width and cluster one.
std::vector<TurnsTiles> turns_tiles(const TurnsProduct&, int64_t processors, int64_t shared_memory);

class ProductTurns {
 public:
  /// `hooks`: the text of Params and finish.
  ProductTurns(const Device&, const TurnsProduct&, const TurnsTiles&, const std::string& hooks);

  /// `params`: the bytes of Params. All addresses are multiples of 16.
  const Source& source() const { return function_->source(); }
  void run(const Gpu&, Stream_*, void* params, const std::byte* a, std::span<const std::byte* const> b) const;

 private:
  TurnsProduct p_;
  TurnsTiles tiles_;
  FunctionRef function_;
};

}  // namespace rlx::cuda
