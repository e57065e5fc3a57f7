#include "rlx/ops/loss/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/index/indices.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/reduce/softmax.h"
#include "rlx/ops/shape/iota.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {
namespace {

void check_operands(Infer& c) {
  c.require_float(0);
  c.require_rank(0, 2);
  c.require_index(1);
  c.require_rank(1, 1);
  c.same(c.in(0).dim(0), c.in(1).dim(0), "numbers of rows and labels");
}

// [n, c] true where c is the label of row n.
Expr hits(Expr logits, Expr labels) {
  const Expr classes = iota(*logits.graph, Shape(DType::i64, {1, logits.dim(1)}), 1);
  return equal(unsqueeze(cast(labels, DType::i64), 1), classes);
}

Expr split_rows(const Vmap& c, Expr y) {
  Dims dims = y.shape().dims();
  dims[0] = c.in(1).dim(-1);
  dims.insert(dims.begin(), c.size);
  return reshape(y, dims);
}

}  // namespace

Shapes SoftmaxCrossEntropyWithLogits::infer(Infer& c, Attrs&) {
  check_operands(c);
  return {c.in(0).with_dims({c.in(0).dim(0)})};
}

Literals SoftmaxCrossEntropyWithLogits::reference(const Eval& c, const Attrs&) {
  const std::vector<double> x = c.in(0).to_reals();
  const int64_t classes = c.in(0).shape().dim(1).value();
  const auto labels = index_values(c.in(1), name, "labels");
  std::vector<double> loss;
  for (size_t n = 0; n < labels.size(); ++n) {
    if (labels[n] < 0 || labels[n] >= classes) {
      throw invalid(name, ": element ", n, " of labels is ", labels[n], "; it must be at least 0 and below ",
                    classes);
    }
    const double* row = x.data() + int64_t(n) * classes;
    const double top = *std::max_element(row, row + classes);
    double sum = 0;
    for (int64_t k = 0; k < classes; ++k) sum += std::exp(row[k] - top);
    loss.push_back(top + std::log(sum) - row[labels[n]]);
  }
  return {Literal::reals(c.out(), loss)};
}

Exprs SoftmaxCrossEntropyWithLogits::decompose(const Lower& c, const Attrs&) {
  const Expr logits = c.in(0);
  const Expr picked = where(hits(logits, c.in(1)), logits, scalar_like(logits, 0));
  return {logsumexp(logits, {1}) - reduce_sum(picked, {1})};
}

Exprs SoftmaxCrossEntropyWithLogits::vjp(const Vjp& c, const Attrs&) {
  return {softmax_cross_entropy_backward(c.in(0), c.in(1), c.dy()), Expr{}};
}

Exprs SoftmaxCrossEntropyWithLogits::vmap(const Vmap& c, const Attrs&) {
  return {split_rows(c, softmax_cross_entropy_with_logits(joined(c, 0), joined(c, 1)))};
}

std::vector<OpSample<NoAttrs>> SoftmaxCrossEntropyWithLogits::samples() {
  return {{{}, {"f32[4,5]", "i32[4] <5"}},
          {{}, {"f64[3,2]", "i64[3] <2"}},
          {{}, {"f32[0,3]", "i32[0] <3"}},
          {{}, {"f32[1,1]", "u32[1] <1"}},
          {{}, {"f16[2,7]", "i32[2] <7"}}};
}

Shapes SoftmaxCrossEntropyBackward::infer(Infer& c, Attrs&) {
  check_operands(c);
  c.same_dtype({0, 2});
  c.require_rank(2, 1);
  c.same(c.in(0).dim(0), c.in(2).dim(0), "numbers of rows and losses");
  return {c.in(0)};
}

Exprs SoftmaxCrossEntropyBackward::decompose(const Lower& c, const Attrs&) {
  const Expr logits = c.in(0);
  const Expr one_hot = cast(hits(logits, c.in(1)), logits.dtype());
  return {(softmax(logits, 1) - one_hot) * unsqueeze(c.in(2), 1)};
}

Exprs SoftmaxCrossEntropyBackward::vmap(const Vmap& c, const Attrs&) {
  return {split_rows(c, softmax_cross_entropy_backward(joined(c, 0), joined(c, 1), joined(c, 2)))};
}

std::vector<OpSample<NoAttrs>> SoftmaxCrossEntropyBackward::samples() {
  return {{{}, {"f32[4,5]", "i32[4] <5", "f32[4]"}},
          {{}, {"f64[3,2]", "i64[3] <2", "f64[3]"}},
          {{}, {"f32[0,3]", "i32[0] <3", "f32[0]"}},
          {{}, {"f32[1,1]", "u32[1] <1", "f32[1]"}},
          {{}, {"bf16[2,7]", "i32[2] <7", "bf16[2]"}}};
}

Expr softmax_cross_entropy_with_logits(Expr logits, Expr labels) {
  return make<SoftmaxCrossEntropyWithLogits>(*logits.graph, {}, {logits, labels});
}
Expr softmax_cross_entropy_backward(Expr logits, Expr labels, Expr d_loss) {
  return make<SoftmaxCrossEntropyBackward>(*logits.graph, {}, {logits, labels, d_loss});
}

}  // namespace rlx::ops
