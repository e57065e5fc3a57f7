// Ensembles of trees as files have them: before version 5 a classifier and a regressor, since then one operator.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "rlx/lang/functions.h"
#include "rlx/lang/operators.h"
#include "rlx/onnx/ops/ml_scores.h"
#include "rlx/onnx/ops/trees.h"

namespace rlx::onnx {
namespace {

// The tables of versions before 5: nodes by (tree, node) number.
struct OldTrees {
  TreeTables tables;
  std::map<std::pair<int64_t, int64_t>, int64_t> number;
};

OldTrees read_old_trees(const Call& c, int64_t targets) {
  OldTrees out;
  TreeTables& t = out.tables;
  const auto ids = c.integers("nodes_nodeids"), trees = c.integers("nodes_treeids"),
             features = c.integers("nodes_featureids");
  const auto yes = c.integers("nodes_truenodeids"), no = c.integers("nodes_falsenodeids");
  auto missing = c.integers("nodes_missing_value_tracks_true");
  const auto modes = c.texts("nodes_modes");
  std::vector<double> splits;
  if (const auto l = c.tensor("nodes_values_as_tensor")) splits = l->to_reals();
  for (const float v : c.reals("nodes_values")) splits.push_back(v);
  c.ignore("nodes_hitrates"), c.ignore("nodes_hitrates_as_tensor");
  const size_t n = ids.size();
  if (n == 0) throw c.wrong("it has no nodes");
  if (trees.size() != n || features.size() != n || yes.size() != n || no.size() != n || modes.size() != n ||
      splits.size() != n)
    throw c.wrong("the lists of nodes have different lengths");
  missing.resize(n, 0);
  for (size_t i = 0; i < n; ++i) {
    if (!out.number.emplace(std::pair(trees[i], ids[i]), int64_t(i)).second)
      throw c.wrong("node ", ids[i], " of tree ", trees[i], " is given twice");
    if (i == 0 || trees[i] != trees[i - 1]) t.roots.push_back(int64_t(i));
  }
  const auto find = [&](int64_t tree, int64_t node) {
    const auto at = out.number.find({tree, node});
    if (at == out.number.end()) throw c.wrong("tree ", tree, " has no node ", node);
    return at->second;
  };
  const std::map<std::string, int64_t> kinds{{"BRANCH_LEQ", 0}, {"BRANCH_LT", 1}, {"BRANCH_GTE", 2},
                                             {"BRANCH_GT", 3},  {"BRANCH_EQ", 4}, {"BRANCH_NEQ", 5}};
  for (size_t i = 0; i < n; ++i) {
    const bool leaf = modes[i] == "LEAF";
    const auto kind = kinds.find(modes[i]);
    if (!leaf && kind == kinds.end()) c.unsupported(cat("the comparison ", modes[i]));
    if (leaf) {
      t.add(0, 0, 0, int64_t(i), int64_t(i), missing[i]);
    } else {
      t.add(features[i], kind->second, splits[i], find(trees[i], yes[i]), find(trees[i], no[i]), missing[i]);
    }
  }
  // A comparison of one kind serves leaves too.
  const auto inner =
      std::find_if(modes.begin(), modes.end(), [](const std::string& m) { return m != "LEAF"; });
  if (inner != modes.end()) {
    for (size_t i = 0; i < n; ++i) {
      if (modes[i] == "LEAF") t.mode[i] = kinds.at(*inner);
    }
  }
  t.targets = targets;
  t.leaf.assign(n * size_t(targets), 0.0);
  return out;
}

void add_leaves(const Call& c, OldTrees& t, const std::string& prefix) {
  const auto nodes = c.integers(prefix + "_nodeids"), trees = c.integers(prefix + "_treeids"),
             ids = c.integers(prefix + "_ids");
  std::vector<double> weights;
  if (const auto l = c.tensor(prefix + "_weights_as_tensor")) weights = l->to_reals();
  for (const float v : c.reals(prefix + "_weights")) weights.push_back(v);
  if (nodes.size() != ids.size() || trees.size() != ids.size() || weights.size() != ids.size())
    throw c.wrong("the lists of leaves have different lengths");
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto at = t.number.find({trees[i], nodes[i]});
    if (at == t.number.end() || ids[i] < 0 || ids[i] >= t.tables.targets)
      throw c.wrong("leaf ", nodes[i], " of tree ", trees[i], " for target ", ids[i]);
    t.tables.leaf[size_t(at->second * t.tables.targets + ids[i])] += weights[i];
  }
}

std::vector<float> base_values(const Call& c) {
  std::vector<float> out = c.reals("base_values");
  if (const auto l = c.tensor("base_values_as_tensor")) {
    for (const double v : l->to_reals()) out.push_back(float(v));
  }
  return out;
}

Tensor plus_base(const Call& c, const Tensor& scores, const std::vector<float>& base) {
  if (base.empty()) return scores;
  return scores + constant_row(c, base, scores.dtype(), {1, int64_t(base.size())});
}

Tensor aggregated(const Call& c, const Tensor& scores, const std::string& how) {
  using ops::ReduceOp;
  const ReduceOp kind = how == "SUM"       ? ReduceOp::sum
                        : how == "AVERAGE" ? ReduceOp::mean
                        : how == "MIN"     ? ReduceOp::min
                                           : ReduceOp::max;
  if (kind == ReduceOp::max && how != "MAX") throw c.wrong("aggregate_function is '", how, "'");
  return scores.reduce(kind, {1});
}

// ---- Version 5: one operator, comparisons by number, leaves in lists of their own

// A membership names the next of these sets; in the attribute a NaN ends each.
std::vector<std::vector<double>> member_sets(const Call& c) {
  std::vector<std::vector<double>> out;
  const auto l = c.tensor("membership_values");
  if (!l) return out;
  out.emplace_back();
  for (const double v : l->to_reals()) {
    if (std::isnan(v)) {
      out.emplace_back();
    } else {
      out.back().push_back(v);
    }
  }
  return out;
}

Literal needed(const Call& c, const char* name) {
  const auto l = c.tensor(name);
  if (!l) throw c.wrong("attribute '", name, "' is missing");
  return *l;
}

// Numbers of nodes: the inner ones, behind them the leaves, behind those the further links of memberships, each of which is a chain of
// comparisons with every member.
TreeTables read_trees(const Call& c) {
  constexpr int64_t kEqual = 4, kMember = 6;
  const auto modes = needed(c, "nodes_modes").to_integers();
  const auto splits = needed(c, "nodes_splits").to_reals(), weights = needed(c, "leaf_weights").to_reals();
  const auto features = c.integers("nodes_featureids"), yes = c.integers("nodes_truenodeids"),
             no = c.integers("nodes_falsenodeids"), yes_leaf = c.integers("nodes_trueleafs"),
             no_leaf = c.integers("nodes_falseleafs"), targets = c.integers("leaf_targetids");
  auto missing = c.integers("nodes_missing_value_tracks_true");
  c.ignore("nodes_hitrates"), c.ignore("membership_values");
  const size_t n = modes.size(), leaves = weights.size();
  if (splits.size() != n || features.size() != n || yes.size() != n || no.size() != n ||
      yes_leaf.size() != n || no_leaf.size() != n || targets.size() != leaves)
    throw c.wrong("the lists of nodes or leaves have different lengths");
  missing.resize(n, 0);
  TreeTables t, links;
  t.targets = c.integer("n_targets", 1);
  t.roots = c.integers("tree_roots");
  const std::vector<std::vector<double>> members = member_sets(c);
  const auto child = [&](int64_t at, int64_t leaf) { return leaf != 0 ? at + int64_t(n) : at; };
  size_t set = 0;
  for (size_t i = 0; i < n; ++i) {
    const int64_t a = child(yes[i], yes_leaf[i]), b = child(no[i], no_leaf[i]);
    if (modes[i] != kMember) {
      t.add(features[i], modes[i], splits[i], a, b, missing[i]);
      continue;
    }
    std::vector<double> values = set < members.size() ? members[set] : std::vector<double>{};
    ++set;
    if (values.empty()) values = {std::numeric_limits<double>::quiet_NaN()};  // equals nothing
    for (size_t k = 0; k < values.size(); ++k) {
      const int64_t behind = int64_t(n + leaves) + links.nodes() + (k == 0 ? 0 : 1);
      const int64_t next = k + 1 == values.size() ? b : behind;
      (k == 0 ? t : links).add(features[i], kEqual, values[k], a, next, k == 0 ? missing[i] : 0);
    }
  }
  const int64_t kind = modes.empty() ? 0 : t.mode[0];
  for (size_t i = 0; i < leaves; ++i) t.add(0, kind, 0, int64_t(n + i), int64_t(n + i), 0);
  t.append(links);
  t.leaf.assign(size_t(t.nodes() * t.targets), 0.0);
  for (size_t i = 0; i < leaves; ++i) {
    if (targets[i] < 0 || targets[i] >= t.targets)
      throw c.wrong("leaf ", i, " is for target ", targets[i], " of ", t.targets);
    t.leaf[(n + i) * size_t(t.targets) + size_t(targets[i])] = weights[i];
  }
  return t;
}

}  // namespace

Items tree_classifier(Call& c) {
  const Tensor x = reals_in(c, 0);
  const int64_t classes = int64_t(class_count(c));
  if (classes == 0) throw c.wrong("it has no class labels");
  OldTrees t = read_old_trees(c, classes);
  add_leaves(c, t, "class");
  const std::string kind = c.text("post_transform", "NONE");
  const auto ids = c.integers("class_ids");
  const auto base = base_values(c);
  const Tensor sums = tree_scores(c, t.tables, x).sum({1});
  const bool one_id = std::all_of(ids.begin(), ids.end(), [&](int64_t v) { return v == ids[0]; });
  if (classes == 2 && one_id && !ids.empty()) {
    const bool positive =
        std::all_of(t.tables.leaf.begin(), t.tables.leaf.end(), [](double w) { return w >= 0; });
    Tensor s = sums.narrow(1, ids[0], 1);
    if (!base.empty()) s = s + double(base.back());
    return two_classes(c, s, positive, kind);
  }
  const Tensor scores = plus_base(c, sums, base);
  return {labels_at(c, best(scores)), transformed(c, scores, kind).cast(DType::f32)};
}

Items tree_regressor(Call& c) {
  const Tensor x = reals_in(c, 0);
  OldTrees t = read_old_trees(c, c.integer("n_targets", 1));
  add_leaves(c, t, "target");
  const std::string how = c.text("aggregate_function", "SUM"), kind = c.text("post_transform", "NONE");
  const Tensor scores = plus_base(c, aggregated(c, tree_scores(c, t.tables, x), how), base_values(c));
  return {transformed(c, scores, kind)};
}

Items tree_ensemble(Call& c) {
  const Tensor x = reals_in(c, 0);
  const TreeTables t = read_trees(c);
  const char* const kHow[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  const char* const kPost[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  const int64_t how = c.integer("aggregate_function", 1), post = c.integer("post_transform", 0);
  if (how < 0 || how > 3 || post < 0 || post > 4)
    throw c.wrong("aggregate_function ", how, " and post_transform ", post);
  return {transformed(c, aggregated(c, tree_scores(c, t, x), kHow[how]), kPost[post])};
}

}  // namespace rlx::onnx
