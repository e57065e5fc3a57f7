#include "rlx/onnx/ops/ml_scores.h"

#include <algorithm>
#include <limits>

#include "rlx/lang/functions.h"
#include "rlx/lang/operators.h"

namespace rlx::onnx {

Tensor reals_in(const Call& c, int i) {
  const Tensor x = c.in(i);
  return x.dtype() == DType::f64 || x.dtype() == DType::f32 ? x : x.cast(DType::f32);
}

Tensor constant_row(const Call& c, const std::vector<float>& v, DType type, Dims dims) {
  return c.constant(Literal::reals(Shape(type, std::move(dims)), std::vector<double>(v.begin(), v.end())));
}

// PROBIT, the inverse of the normal distribution, is refused: nobody exports it.
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

namespace {

Tensor pair_of(const Tensor& first, const Tensor& second) {
  return rlx::concat({first, second}, {.axis = 1});
}

}  // namespace

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

}  // namespace rlx::onnx
