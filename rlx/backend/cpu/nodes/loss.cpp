// Cross entropy of rows against labels and its gradient, in f32.
#include "rlx/ops/loss/cross_entropy.h"

#include "rlx/backend/cpu/kernels/rows.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/backend/cpu/nodes/whole_numbers.h"

namespace rlx::cpu {
namespace {

Support accepts(const Request& r) {
  if (r.in[0].dtype() != DType::f32) return Support::no("logits are ", r.in[0].dtype());
  if (const Support s = none_empty(r); !s) return s;
  if (const Support s = accepts_whole_numbers(r, 1); !s) return s;
  return all_row_major(r);
}

CrossEntropy rows_of(const Arg& logits) {
  return {.rows = logits.shape.dim(0).value(), .n = logits.shape.dim(1).value()};
}

std::unique_ptr<Step> prepare(const Request& r) {
  const WholeNumbers labels(r, 1);
  return make_step(
      [p = rows_of(r.in[0]), labels](const Launch& l) {
        CrossEntropy now = p;
        now.x = reinterpret_cast<const float*>(l.in[0]);
        now.target = labels.wide_below(p.n, l, l.workspace);
        now.loss = reinterpret_cast<float*>(l.out[0]);
        cross_entropy(l.team, now);
      },
      labels.wide_workspace());
}

// The losses come along and are dropped.
std::unique_ptr<Step> prepare_backward(const Request& r) {
  const WholeNumbers labels(r, 1);
  const CrossEntropy p = rows_of(r.in[0]);
  const size_t numbers = labels.wide_workspace();
  auto step = make_step(
      [p, labels, numbers](const Launch& l) {
        CrossEntropy now = p;
        now.x = reinterpret_cast<const float*>(l.in[0]);
        now.target = labels.wide_below(p.n, l, l.workspace);
        now.weight = reinterpret_cast<const float*>(l.in[2]);
        now.loss = reinterpret_cast<float*>(l.workspace + numbers);
        now.dx = reinterpret_cast<float*>(l.out[0]);
        cross_entropy(l.team, now);
      },
      numbers + round_up(size_t(p.rows) * sizeof(float)));
  step->in_place = {0};
  return step;
}

}  // namespace

void add_loss(KernelTable& table) {
  table.add<ops::SoftmaxCrossEntropyWithLogits>({"cross_entropy_rows_f32", accepts, prepare});
  table.add<ops::SoftmaxCrossEntropyBackward>({"cross_entropy_backward_rows_f32", accepts, prepare_backward});
}

}  // namespace rlx::cpu
