// Losses of classifiers.
#include "rlx/lang/operators.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {
namespace {

// -w[t] log p[t] over targets t [N, d..] of scores [N, C, d..]; those equal to ignore_index count nothing.
Tensor class_loss(const Call& c, const Tensor& log_p, const Tensor& given, const Tensor& weight) {
  const std::string reduction = c.text("reduction", "mean");
  const Tensor target = given.cast(DType::i64);
  const bool ignores = c.has_attr("ignore_index");
  const int64_t ignored = c.integer("ignore_index", 0);
  Tensor kept, safe = target;
  if (ignores) {
    kept = target.ne(double(ignored));
    safe = kept.where(target, 0);
  }
  const Tensor picked = rlx::take_along(log_p, safe.unsqueeze(1), {.axis = 1}).squeeze(1);
  Tensor w = weight.is_empty() ? c.full(target.shape().dims(), log_p.dtype(), 1) : rlx::gather(weight, safe);
  if (ignores) w = kept.where(w, 0.0);
  const Tensor loss = -(picked * w);
  if (reduction == "none") return loss;
  if (reduction == "sum") return loss.sum();
  if (reduction != "mean") throw c.wrong("reduction is '", reduction, "'; it must be none, sum or mean");
  if (weight.is_empty() && !ignores) return loss.mean();
  return loss.sum() / w.sum();
}

Items negative_log_likelihood(Call& c) { return {class_loss(c, c.in(0), c.in(1), c.in_or_empty(2))}; }

Items softmax_cross_entropy(Call& c) {
  const Tensor log_p = rlx::log_softmax(c.in(0), {.axis = 1});
  return {class_loss(c, log_p, c.in(1), c.in_or_empty(2)), log_p};
}

}  // namespace

std::span<const Entry> loss_entries() {
  static const std::vector<Entry> kEntries{
      {"NegativeLogLikelihoodLoss", 12, negative_log_likelihood},
      {"SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy},
  };
  return kEntries;
}

}  // namespace rlx::onnx
