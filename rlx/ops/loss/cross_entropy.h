// Cross entropy of logits against class labels.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct SoftmaxCrossEntropyWithLogits {
  static constexpr std::string_view name = "softmax_cross_entropy_with_logits",
                                    summary = "Cross entropy of each row against its label.",
                                    operands = "logits, labels";
  static constexpr std::string_view doc =
      "loss[n] = logsumexp(logits[n, :]) - logits[n, labels[n]]; logits are [N, C], labels [N] are whole "
      "numbers in 0 .. C-1";
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct SoftmaxCrossEntropyBackward {
  static constexpr std::string_view name = "softmax_cross_entropy_backward",
                                    summary = "Gradient of softmax_cross_entropy_with_logits in the logits.",
                                    operands = "logits, labels, d_loss";
  static constexpr std::string_view doc =
      "d_logits[n, c] = (softmax(logits[n, :])[c] - [c = labels[n]]) d_loss[n]";
  using Attrs = NoAttrs;
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr softmax_cross_entropy_with_logits(Expr logits, Expr labels);
Expr softmax_cross_entropy_backward(Expr logits, Expr labels, Expr d_loss);

}  // namespace rlx::ops
