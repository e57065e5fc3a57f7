// Classical models on numbers: trees, linear models, support vectors, and what prepares their inputs.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "rlx/lang/control.h"
#include "rlx/lang/functions.h"
#include "rlx/lang/operators.h"
#include "rlx/onnx/ops/trees.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {
namespace {

Tensor reals_in(const Call& c, int i) {
  const Tensor x = c.in(i);
  return x.dtype() == DType::f64 || x.dtype() == DType::f32 ? x : x.cast(DType::f32);
}

Tensor constant_row(const Call& c, const std::vector<float>& v, DType type, Dims dims) {
  return c.constant(Literal::reals(Shape(type, std::move(dims)), std::vector<double>(v.begin(), v.end())));
}

// Scores as the model wants them; PROBIT is the inverse of the normal distribution, which nobody exports.
Tensor transformed(const Call& c, const Tensor& scores, const std::string& kind) {
  if (kind == "NONE") return scores;
  if (kind == "LOGISTIC") return rlx::sigmoid(scores);
  if (kind == "SOFTMAX") return rlx::softmax(scores, {.axis = -1});
  if (kind == "SOFTMAX_ZERO") {
    // Scores that are 0 stay 0 and take no part.
    const Tensor zero = scores.eq(0);
    const Tensor p = rlx::softmax(
        rlx::where(zero, c.scalar(scores.dtype(), -std::numeric_limits<double>::infinity()), scores),
        {.axis = -1});
    return zero.where(0.0, p);
  }
  c.unsupported(cat("post_transform ", kind));
}

// Labels of classes by number; strings have no tensor here.
Tensor labels_at(const Call& c, const Tensor& index) {
  if (!c.texts("classlabels_strings").empty() || !c.texts("classlabels_string").empty())
    c.unsupported("labels that are strings");
  std::vector<int64_t> labels = c.integers("classlabels_int64s");
  if (labels.empty()) labels = c.integers("classlabels_ints");
  const bool plain = labels.empty() || [&] {
    for (size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] != int64_t(i)) return false;
    }
    return true;
  }();
  if (plain) return index;
  return rlx::gather(c.constant(Literal::of<int64_t>({int64_t(labels.size())}, labels)), index);
}

size_t class_count(const Call& c) {
  return std::max({c.integers("classlabels_int64s").size(), c.integers("classlabels_ints").size(),
                   c.texts("classlabels_strings").size(), c.texts("classlabels_string").size()});
}

Tensor best(const Tensor& scores) {
  return rlx::argmax(scores, {.axis = 1, .keep_dim = false, .dtype = DType::i64});
}

Tensor pair_of(const Tensor& first, const Tensor& second) {
  return rlx::concat({first, second}, {.axis = 1});
}

// ---- Trees

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
    t.feature.push_back(leaf ? 0 : features[i]);
    t.mode.push_back(leaf ? 0 : kind->second);
    t.split.push_back(leaf ? 0 : splits[i]);
    t.missing_is_true.push_back(missing[i]);
    t.when_true.push_back(leaf ? int64_t(i) : find(trees[i], yes[i]));
    t.when_false.push_back(leaf ? int64_t(i) : find(trees[i], no[i]));
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

// Two classes told apart by one score. Which border divides them depends on whether scores can be negative.
Items two_classes(const Call& c, const Tensor& score, bool positive_weights, const std::string& kind) {
  const Tensor s = score.reshape({score.dim(0), 1});
  const Tensor label = (positive_weights ? s > 0.5 : s > 0).cast(DType::i64).reshape({score.dim(0)});
  Tensor p;
  if (positive_weights && kind == "NONE") {
    p = pair_of(1.0 - s, s);
  } else if (kind == "LOGISTIC") {
    p = pair_of(rlx::sigmoid(-s), rlx::sigmoid(s));
  } else if (kind == "NONE") {
    p = pair_of(-s, s);
  } else {
    p = transformed(c, positive_weights ? pair_of(1.0 - s, s) : pair_of(-s, s), kind);
  }
  return {labels_at(c, label), p.cast(DType::f32)};
}

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

Tensor aggregated(const Call& c, const Tensor& scores, const std::string& how) {
  using ops::ReduceOp;
  const ReduceOp kind = how == "SUM"       ? ReduceOp::sum
                        : how == "AVERAGE" ? ReduceOp::mean
                        : how == "MIN"     ? ReduceOp::min
                                           : ReduceOp::max;
  if (kind == ReduceOp::max && how != "MAX") throw c.wrong("aggregate_function is '", how, "'");
  return scores.reduce(kind, {1});
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
  const auto need = [&](const char* name) {
    const auto l = c.tensor(name);
    if (!l) throw c.wrong("attribute '", name, "' is missing");
    return *l;
  };
  const auto modes = need("nodes_modes").to_integers();
  const auto splits = need("nodes_splits").to_reals(), weights = need("leaf_weights").to_reals();
  const auto features = c.integers("nodes_featureids"), yes = c.integers("nodes_truenodeids"),
             no = c.integers("nodes_falsenodeids");
  const auto yes_leaf = c.integers("nodes_trueleafs"), no_leaf = c.integers("nodes_falseleafs"),
             targets = c.integers("leaf_targetids");
  auto missing = c.integers("nodes_missing_value_tracks_true");
  c.ignore("nodes_hitrates"), c.ignore("membership_values");
  const size_t n = modes.size(), leaves = weights.size();
  if (splits.size() != n || features.size() != n || yes.size() != n || no.size() != n ||
      yes_leaf.size() != n || no_leaf.size() != n || targets.size() != leaves)
    throw c.wrong("the lists of nodes or leaves have different lengths");
  missing.resize(n, 0);
  TreeTables t;
  t.targets = c.integer("n_targets", 1);
  t.roots = c.integers("tree_roots");
  // Leaves get numbers behind the inner nodes. Membership is a chain of comparisons with each member.
  std::vector<std::vector<double>> members;
  if (const auto l = c.tensor("membership_values")) {
    members.emplace_back();
    for (const double v : l->to_reals()) {
      if (std::isnan(v)) {
        members.emplace_back();
      } else {
        members.back().push_back(v);
      }
    }
  }
  const auto child = [&](int64_t at, int64_t leaf) { return leaf != 0 ? at + int64_t(n) : at; };
  const auto add = [&](int64_t feature, int64_t mode, double split, int64_t when_true, int64_t when_false,
                       int64_t nan) {
    t.feature.push_back(feature), t.mode.push_back(mode), t.split.push_back(split);
    t.when_true.push_back(when_true), t.when_false.push_back(when_false), t.missing_is_true.push_back(nan);
  };
  const int64_t first_extra = int64_t(n + leaves);
  struct Extra {
    int64_t feature;
    double split;
    int64_t when_true, when_false;
  };
  std::vector<Extra> extra;
  size_t set = 0;
  for (size_t i = 0; i < n; ++i) {
    const int64_t a = child(yes[i], yes_leaf[i]), b = child(no[i], no_leaf[i]);
    if (modes[i] != 6) {
      add(features[i], modes[i], splits[i], a, b, missing[i]);
      continue;
    }
    const std::vector<double> values = set < members.size() ? members[set] : std::vector<double>{};
    ++set;
    if (values.empty()) {
      add(features[i], 4, std::numeric_limits<double>::quiet_NaN(), a, b, missing[i]);
      continue;
    }
    for (size_t k = 0; k < values.size(); ++k) {
      const bool last = k + 1 == values.size();
      const int64_t next = last ? b : first_extra + int64_t(extra.size()) + (k == 0 ? 0 : 1);
      if (k == 0) {
        add(features[i], 4, values[k], a, next, missing[i]);
      } else {
        extra.push_back({features[i], values[k], a, next});
      }
    }
  }
  const int64_t kind = modes.empty() ? 0 : t.mode[0];
  for (size_t i = 0; i < leaves; ++i) add(0, kind, 0, int64_t(n + i), int64_t(n + i), 0);
  for (const Extra& e : extra) add(e.feature, 4, e.split, e.when_true, e.when_false, 0);
  t.leaf.assign(size_t(t.nodes() * t.targets), 0.0);
  for (size_t i = 0; i < leaves; ++i) {
    if (targets[i] < 0 || targets[i] >= t.targets)
      throw c.wrong("leaf ", i, " is for target ", targets[i], " of ", t.targets);
    t.leaf[(n + i) * size_t(t.targets) + size_t(targets[i])] = weights[i];
  }
  const char* const kHow[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  const char* const kPost[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  const int64_t how = c.integer("aggregate_function", 1), post = c.integer("post_transform", 0);
  if (how < 0 || how > 3 || post < 0 || post > 4)
    throw c.wrong("aggregate_function ", how, " and post_transform ", post);
  return {transformed(c, aggregated(c, tree_scores(c, t, x), kHow[how]), kPost[post])};
}

// ---- Linear models

Tensor linear_scores(const Call& c, const Tensor& x, int64_t rows, const std::vector<float>& coefficients,
                     const std::vector<float>& intercepts) {
  if (rows < 1 || coefficients.size() % size_t(rows) != 0)
    throw c.wrong(coefficients.size(), " coefficients for ", rows, " targets");
  const Tensor w = constant_row(c, coefficients, x.dtype(), {rows, int64_t(coefficients.size()) / rows});
  const Tensor y = rlx::matmul(x, w.t());
  if (intercepts.empty()) return y;
  return y + constant_row(c, intercepts, x.dtype(), {1, int64_t(intercepts.size())});
}

Items linear_regressor(Call& c) {
  const Tensor x = reals_in(c, 0);
  const Tensor y =
      linear_scores(c, x, c.integer("targets", 1), c.reals("coefficients"), c.reals("intercepts"));
  return {transformed(c, y, c.text("post_transform", "NONE"))};
}

Items linear_classifier(Call& c) {
  const Tensor x = reals_in(c, 0);
  const auto coefficients = c.reals("coefficients");
  const int64_t features = x.dim(1).value(),
                rows = features > 0 ? int64_t(coefficients.size()) / features : 0;
  c.ignore("multi_class");
  const Tensor scores = linear_scores(c, x, rows, coefficients, c.reals("intercepts"));
  const std::string kind = c.text("post_transform", "NONE");
  if (rows == 1 && class_count(c) == 2) return two_classes(c, scores, false, kind);
  return {labels_at(c, best(scores)), transformed(c, scores, kind).cast(DType::f32)};
}

// ---- Support vectors

// k(x, s) for all rows and support vectors.
Tensor kernel_values(const Call& c, const Tensor& x, const std::vector<float>& vectors, int64_t count) {
  const std::string kind = c.text("kernel_type", "LINEAR");
  std::vector<float> p = c.reals("kernel_params");
  p.resize(3, 0);
  const double gamma = p[0], coef0 = p[1], degree = p[2];
  const int64_t features = int64_t(vectors.size()) / count;
  const Tensor s = constant_row(c, vectors, x.dtype(), {count, features});
  const Tensor dot = rlx::matmul(x, s.t());
  if (kind == "LINEAR") return dot;
  if (kind == "POLY") return (gamma * dot + coef0).pow(degree);
  if (kind == "SIGMOID") return rlx::tanh(gamma * dot + coef0);
  if (kind != "RBF") throw c.wrong("kernel_type is '", kind, "'");
  const Tensor difference = x.unsqueeze(1) - s.unsqueeze(0);
  return rlx::exp(-gamma * (difference * difference).sum({2}));
}

// Probabilities of classes from those of pairs: the fixed point of Wu, Lin and Weng, by the sweeps of libsvm, which
// stop for a row once it is near enough.
Tensor coupled(const Call& c, const std::vector<Tensors>& r, int64_t k, Dim rows, DType type) {
  std::vector<Tensors> q(static_cast<size_t>(k), Tensors(static_cast<size_t>(k)));
  for (size_t t = 0; t < size_t(k); ++t) {
    for (size_t j = 0; j < size_t(k); ++j) {
      if (j == t) continue;
      q[t][t] = q[t][t].is_empty() ? r[j][t] * r[j][t] : q[t][t] + r[j][t] * r[j][t];
      q[t][j] = -(r[j][t] * r[t][j]);
    }
  }
  const double limit = 0.005 / double(k);
  const int64_t sweeps = std::max<int64_t>(100, k);
  return rlx::scan(c.full({rows, k}, type, 1.0 / double(k)), {.length = Dim(sweeps)}, [&](Tensor all) {
    Tensors p, qp(static_cast<size_t>(k));
    for (int64_t t = 0; t < k; ++t) p.push_back(all.narrow(1, t, 1));
    Tensor pqp, error;
    for (size_t t = 0; t < size_t(k); ++t) {
      for (size_t j = 0; j < size_t(k); ++j)
        qp[t] = qp[t].is_empty() ? q[t][j] * p[j] : qp[t] + q[t][j] * p[j];
      pqp = pqp.is_empty() ? p[t] * qp[t] : pqp + p[t] * qp[t];
    }
    for (size_t t = 0; t < size_t(k); ++t) {
      const Tensor e = rlx::abs(qp[t] - pqp);
      error = error.is_empty() ? e : error.max(e);
    }
    for (size_t t = 0; t < size_t(k); ++t) {
      const Tensor d = (pqp - qp[t]) / q[t][t], scale = 1.0 + d;
      p[t] = p[t] + d;
      pqp = (pqp + d * (d * q[t][t] + 2.0 * qp[t])) / scale / scale;
      for (size_t j = 0; j < size_t(k); ++j) {
        qp[j] = (qp[j] + d * q[t][j]) / scale;
        p[j] = p[j] / scale;
      }
    }
    return rlx::where(error < limit, all, rlx::concat(p, {.axis = 1}));
  });
}

Items svm_classifier(Call& c) {
  const Tensor x = reals_in(c, 0);
  const auto vectors = c.reals("support_vectors"), coefficients = c.reals("coefficients"),
             rho = c.reals("rho");
  const auto a = c.reals("prob_a"), b = c.reals("prob_b");
  const auto per_class = c.integers("vectors_per_class");
  const int64_t k = int64_t(class_count(c));
  int64_t count = 0;
  for (const int64_t v : per_class) count += v;
  if (count < 1) c.unsupported("a classifier without support vectors");
  if (int64_t(per_class.size()) != k || int64_t(coefficients.size()) != count * (k - 1))
    throw c.wrong("lists do not fit ", k, " classes of ", count, " vectors");
  const Tensor values = kernel_values(c, x, vectors, count);
  const DType type = x.dtype();
  const auto weights = [&](int64_t row, int64_t first, int64_t n) {
    const std::vector<float> part(coefficients.begin() + row * count + first,
                                  coefficients.begin() + row * count + first + n);
    return constant_row(c, part, type, {n, 1});
  };
  std::vector<int64_t> start{0};
  for (const int64_t v : per_class) start.push_back(start.back() + v);
  Tensors scores;
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = i + 1; j < k; ++j) {
      const auto part = [&](int64_t owner, int64_t row) {
        const int64_t first = start[size_t(owner)], n = per_class[size_t(owner)];
        return rlx::matmul(values.narrow(1, first, n), weights(row, first, n));
      };
      scores.push_back(part(i, j - 1) + part(j, i) + double(rho.at(scores.size())));
    }
  }
  c.ignore("classlabels_ints"), c.ignore("classlabels_strings");
  const std::string kind = c.text("post_transform", "NONE");
  // Votes of the pairs name the class; the first wins a tie.
  Tensors votes(static_cast<size_t>(k));
  size_t vote = 0;
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = i + 1; j < k; ++j, ++vote) {
      const Tensor first = (scores[vote] > 0).cast(DType::f32);
      const auto add = [&](int64_t who, const Tensor& v) {
        Tensor& sum = votes[size_t(who)];
        sum = sum.is_empty() ? v : sum + v;
      };
      add(i, first);
      add(j, 1.0 - first);
    }
  }
  const Tensor label = labels_at(c, best(rlx::concat(votes, {.axis = 1})));
  if (a.empty()) {
    // Two classes have one score, which stands with its negative before it.
    if (k == 2 && kind != "NONE" && kind != "LOGISTIC")
      c.unsupported(cat("two classes without probabilities and post_transform ", kind));
    if (k == 2) scores.insert(scores.begin(), -scores[0]);
    return {label, transformed(c, rlx::concat(scores, {.axis = 1}), kind).cast(DType::f32)};
  }
  std::vector<Tensors> r(static_cast<size_t>(k), Tensors(static_cast<size_t>(k)));
  size_t pair = 0;
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = i + 1; j < k; ++j, ++pair) {
      const Tensor p =
          (1.0 - rlx::sigmoid(scores[pair] * double(a.at(pair)) + double(b.at(pair)))).clamp(1e-7, 1 - 1e-7);
      r[size_t(i)][size_t(j)] = p;
      r[size_t(j)][size_t(i)] = 1.0 - p;
    }
  }
  const Tensor p = coupled(c, r, k, x.dim(0), type);
  return {label, transformed(c, p, kind).cast(DType::f32)};
}

Items svm_regressor(Call& c) {
  const Tensor x = reals_in(c, 0);
  const auto coefficients = c.reals("coefficients"), rho = c.reals("rho"),
             vectors = c.reals("support_vectors");
  const int64_t count = c.integer("n_supports", 0);
  const std::string kind = c.text("post_transform", "NONE");
  const bool one_class = c.flag("one_class");
  if (count < 1) c.unsupported("a regressor without support vectors");
  Tensor y =
      rlx::matmul(kernel_values(c, x, vectors, count), constant_row(c, coefficients, x.dtype(), {count, 1})) +
      double(rho.at(0));
  if (one_class) y = (y > 0).where(1.0, y * 0.0 - 1.0);
  return {transformed(c, y, kind)};
}

// ---- Preparation

Items scaler(Call& c) {
  const Tensor x = reals_in(c, 0);
  Tensor y = x;
  if (const auto offset = c.reals("offset"); !offset.empty())
    y = y - constant_row(c, offset, x.dtype(), {int64_t(offset.size())});
  if (const auto scale = c.reals("scale"); !scale.empty())
    y = y * constant_row(c, scale, x.dtype(), {int64_t(scale.size())});
  return {y};
}

Items normalizer(Call& c) {
  const Tensor x = reals_in(c, 0);
  const std::string kind = c.text("norm", "MAX");
  const Tensor norm = kind == "MAX"  ? x.reduce(ops::ReduceOp::max, {-1}, true)
                      : kind == "L1" ? rlx::abs(x).sum({-1}, true)
                                     : rlx::sqrt((x * x).sum({-1}, true));
  return {x / norm.eq(0).where(1.0, norm)};
}

Items binarizer(Call& c) {
  const Tensor x = c.in(0);
  return {(x > c.real("threshold", 0)).cast(x.dtype())};
}

Items imputer(Call& c) {
  const Tensor x = c.in(0);
  const bool real = is_float(x.dtype());
  std::vector<double> with;
  for (const float v : c.reals("imputed_value_floats")) with.push_back(v);
  for (const int64_t v : c.integers("imputed_value_int64s")) with.push_back(double(v));
  const double what = real ? c.real("replaced_value_float", 0) : double(c.integer("replaced_value_int64", 0));
  const Tensor values = c.constant(Literal::reals(Shape(x.dtype(), {int64_t(with.size())}), with));
  return {rlx::where(std::isnan(what) ? rlx::is_nan(x) : x.eq(what), values, x)};
}

Items feature_extractor(Call& c) {
  const Tensor x = c.in(0), at = c.in(1);
  const Tensor y = rlx::gather(x, at.reshape({at.shape().num_elements()}), {.axis = x.rank() - 1});
  return {x.rank() == 1 ? y.unsqueeze(0) : y};
}

Items feature_vectorizer(Call& c) {
  c.ignore("inputdimensions");
  Tensors parts;
  for (int i = 0; i < c.count(); ++i) parts.push_back(c.in(i).cast(DType::f32));
  return {parts.size() == 1 ? parts[0] : rlx::concat(parts, {.axis = -1})};
}

Items one_hot_encoder(Call& c) {
  if (c.has_attr("cats_strings")) c.unsupported("categories that are strings");
  const auto categories = c.integers("cats_int64s");
  c.ignore("zeros");
  const Tensor x = c.in(0).cast(DType::i64);
  const Tensor all = c.constant(Literal::of<int64_t>({int64_t(categories.size())}, categories));
  return {rlx::compare(x.unsqueeze(x.rank()), all, {.kind = ops::CompareOp::eq}).cast(DType::f32)};
}

// Each key is compared with the element; what no key equals becomes the default.
Items label_encoder(Call& c) {
  for (const char* name : {"keys_strings", "values_strings", "default_string"}) {
    if (c.has_attr(name) && std::string_view(name) != "default_string")
      c.unsupported("labels that are strings");
  }
  const auto read = [&](const std::string& prefix) -> Literal {
    if (const auto l = c.tensor(prefix + "tensor")) return *l;
    const auto reals = c.reals(prefix + "floats");
    if (!reals.empty()) return Literal::of<float>({int64_t(reals.size())}, reals);
    const auto whole = c.integers(prefix + "int64s");
    return Literal::of<int64_t>({int64_t(whole.size())}, whole);
  };
  const Literal keys = read("keys_"), values = read("values_");
  if (keys.elements() != values.elements() || keys.elements() == 0)
    throw c.wrong(keys.elements(), " keys and ", values.elements(), " values");
  Literal missing = is_float(values.dtype())
                        ? Literal::scalar(values.dtype(), c.real("default_float", -0.0))
                        : Literal::of<int64_t>({}, {c.integer("default_int64", -1)}).cast(values.dtype());
  if (const auto l = c.tensor("default_tensor")) missing = l->reshaped({});
  const Tensor x = c.in(0), k = c.constant(keys).cast(x.dtype());
  Tensor hit = rlx::compare(x.unsqueeze(x.rank()), k, {.kind = ops::CompareOp::eq});
  if (is_float(x.dtype()))
    hit = rlx::logical_or(hit, rlx::logical_and(rlx::is_nan(x).unsqueeze(x.rank()), rlx::is_nan(k)));
  const Tensor at = rlx::argmax(hit.cast(DType::i32), {.axis = -1, .keep_dim = false, .dtype = DType::i64});
  const Tensor found = rlx::any(hit, {.axes = {x.rank()}, .keep_dim = false});
  return {rlx::where(found, rlx::gather(c.constant(values), at), c.constant(missing))};
}

}  // namespace

std::span<const Entry> ml_entries() {
  static const std::vector<Entry> kEntries{
      {"ArrayFeatureExtractor", 1, feature_extractor},
      {"Binarizer", 1, binarizer},
      {"FeatureVectorizer", 1, feature_vectorizer},
      {"Imputer", 1, imputer},
      {"LabelEncoder", 2, label_encoder},
      {"LinearClassifier", 1, linear_classifier},
      {"LinearRegressor", 1, linear_regressor},
      {"Normalizer", 1, normalizer},
      {"OneHotEncoder", 1, one_hot_encoder},
      {"SVMClassifier", 1, svm_classifier},
      {"SVMRegressor", 1, svm_regressor},
      {"Scaler", 1, scaler},
      {"TreeEnsemble", 5, tree_ensemble},
      {"TreeEnsembleClassifier", 1, tree_classifier},
      {"TreeEnsembleRegressor", 1, tree_regressor},
  };
  return kEntries;
}

}  // namespace rlx::onnx
