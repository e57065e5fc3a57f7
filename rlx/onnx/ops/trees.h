// Ensembles of decision trees as tables that all trees walk together.
#pragma once

#include "rlx/onnx/call.h"

namespace rlx::onnx {

/// Nodes by number; a leaf points to itself. Comparisons as BRANCH_LEQ 0, LT 1, GTE 2, GT 3, EQ 4, NEQ 5; a leaf has 0.
struct TreeTables {
  std::vector<int64_t> feature, mode, when_true, when_false, missing_is_true;
  std::vector<double> split;
  std::vector<int64_t> roots;
  std::vector<double> leaf;  // [nodes, targets], what a leaf adds
  int64_t targets = 1;

  int64_t nodes() const { return int64_t(feature.size()); }
  void add(int64_t feature_of, int64_t mode_of, double split_at, int64_t if_true, int64_t if_false,
           int64_t missing_goes_true);
  /// The nodes of another table behind these.
  void append(const TreeTables&);
};

/// Steps from a root to the farthest leaf; trees that are none are a user error.
int64_t depth_of(const Call&, const TreeTables&);

/// What each tree says for each row of x [rows, features]: [rows, trees, targets].
Tensor tree_scores(const Call&, const TreeTables&, const Tensor& x);

// The operators (tree_models.cpp).
Items tree_classifier(Call&);
Items tree_regressor(Call&);
Items tree_ensemble(Call&);

}  // namespace rlx::onnx
