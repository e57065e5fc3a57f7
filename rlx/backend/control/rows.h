// Bodies whose rows do not know of each other: the same computation on some of the rows.
#pragma once

#include <optional>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx::backend {

/// A leaf or output that is the same for all rows.
inline constexpr int kNoRows = -1;

struct RowCut {
  /// The body on `part` rows; nothing where rows meet each other, or where an operator is not known not to mix them.
  std::optional<ir::Graph> body;
  std::vector<int> output_axes;  // along which rows lie, or kNoRows
  /// A leaf that would have to be cut along axis 0 and was given as the same for all; -1: none.
  int uncut_leaf = -1;
};

/// `leaf_axes`: for each leaf of the body the axis of `rows` rows, or kNoRows. Every row of an output then depends on the
/// same row of these leaves alone. Products form each element in one order of their inner axis whatever the number of rows,
/// so parts give the bits of the whole.
RowCut cut_rows(const ir::Graph& body, const std::vector<int>& leaf_axes, int64_t rows, int64_t part);

}  // namespace rlx::backend
