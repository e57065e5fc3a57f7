// Classical models on numbers: linear models, support vectors, and what prepares their inputs; trees are in tree_models.cpp.
#include <algorithm>
#include <cmath>

#include "rlx/lang/control.h"
#include "rlx/lang/functions.h"
#include "rlx/lang/operators.h"
#include "rlx/onnx/ops/ml_scores.h"
#include "rlx/onnx/ops/trees.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {
namespace {

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

// One score for each pair of classes i < j: above 0 it is i.
Tensors pair_scores(Call& c, const Tensor& x, const std::vector<int64_t>& per_class) {
  const auto vectors = c.reals("support_vectors"), coefficients = c.reals("coefficients"),
             rho = c.reals("rho");
  const int64_t k = int64_t(class_count(c));
  std::vector<int64_t> start{0};
  for (const int64_t v : per_class) start.push_back(start.back() + v);
  const int64_t count = start.back();
  if (count < 1) c.unsupported("a classifier without support vectors");
  if (int64_t(per_class.size()) != k || int64_t(coefficients.size()) != count * (k - 1))
    throw c.wrong("lists do not fit ", k, " classes of ", count, " vectors");
  const Tensor values = kernel_values(c, x, vectors, count);
  const auto part = [&](int64_t owner, int64_t row) {
    const int64_t first = start[size_t(owner)], n = per_class[size_t(owner)];
    const auto from = coefficients.begin() + row * count + first;
    return rlx::matmul(values.narrow(1, first, n),
                       constant_row(c, std::vector<float>(from, from + n), x.dtype(), {n, 1}));
  };
  Tensors scores;
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = i + 1; j < k; ++j)
      scores.push_back(part(i, j - 1) + part(j, i) + double(rho.at(scores.size())));
  }
  return scores;
}

// How many pairs each class wins.
Tensor votes_of(const Tensors& scores, int64_t k) {
  Tensors votes(static_cast<size_t>(k));
  const auto add = [&](int64_t who, const Tensor& v) {
    Tensor& sum = votes[size_t(who)];
    sum = sum.is_empty() ? v : sum + v;
  };
  size_t pair = 0;
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = i + 1; j < k; ++j, ++pair) {
      const Tensor first = (scores[pair] > 0).cast(DType::f32);
      add(i, first);
      add(j, 1.0 - first);
    }
  }
  return rlx::concat(votes, {.axis = 1});
}

// r[i][j]: how likely i is, of the two.
std::vector<Tensors> pair_probabilities(Call& c, const Tensors& scores, int64_t k) {
  const auto a = c.reals("prob_a"), b = c.reals("prob_b");
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
  return r;
}

Items svm_classifier(Call& c) {
  const Tensor x = reals_in(c, 0);
  const int64_t k = int64_t(class_count(c));
  Tensors scores = pair_scores(c, x, c.integers("vectors_per_class"));
  c.ignore("classlabels_ints"), c.ignore("classlabels_strings");
  const std::string kind = c.text("post_transform", "NONE");
  // Votes of the pairs name the class; the first wins a tie.
  const Tensor label = labels_at(c, best(votes_of(scores, k)));
  c.ignore("prob_b");  // goes with prob_a
  if (!c.reals("prob_a").empty()) {
    const Tensor p = coupled(c, pair_probabilities(c, scores, k), k, x.dim(0), x.dtype());
    return {label, transformed(c, p, kind).cast(DType::f32)};
  }
  // Two classes have one score, which stands with its negative before it.
  if (k == 2 && kind != "NONE" && kind != "LOGISTIC")
    c.unsupported(cat("two classes without probabilities and post_transform ", kind));
  if (k == 2) scores.insert(scores.begin(), -scores[0]);
  return {label, transformed(c, rlx::concat(scores, {.axis = 1}), kind).cast(DType::f32)};
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
