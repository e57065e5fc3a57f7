#include "rlx/transform/checkpoints.h"

#include <algorithm>

#include "rlx/ops/control/scan.h"

namespace rlx::transform {
namespace {

struct StepBytes {
  int64_t carry = 0, step = 0;
};

StepBytes measure(const Graph& body, size_t carries) {
  std::vector<bool> wanted, seeded;
  for (const NodeId id : body.leaves()) wanted.push_back(is_differentiable(body.node(id).shapes[0].dtype()));
  for (const Value v : body.outputs()) seeded.push_back(is_differentiable(body.shape(v).dtype()));
  const auto split = body_transforms().split_vjp(body, wanted, seeded, false);
  StepBytes bytes;
  const auto leaves = split.backward->leaves();
  for (size_t i = 0; i < carries; ++i) {
    const int64_t size = split.backward->node(leaves[i]).shapes[0].size_bytes();
    bytes.carry += size;
    if (split.backward->use_count(leaves[i]) > 0) bytes.step += size;
  }
  for (const Shape& s : split.residuals) bytes.step += s.size_bytes();
  return bytes;
}

ScanMemory memory(const StepBytes& b, int64_t length, int64_t k) {
  if (k <= 0 || k >= length) return {0, length * b.step};
  return {k, k * b.carry + (length + k - 1) / k * b.step};
}

}  // namespace

ScanMemory scan_memory(const Graph& body, size_t carries, int64_t length, int64_t checkpoints) {
  return memory(measure(body, carries), length, checkpoints);
}

ScanMemory fit_scan(const Graph& body, size_t carries, int64_t length, int64_t budget) {
  const StepBytes bytes = measure(body, carries);
  ScanMemory best = memory(bytes, length, 0);
  if (best.bytes <= budget) return best;
  // K carry + L step / K is least near K = sqrt(L step / carry); the rounding makes a scan of all K the
  // simple truth.
  for (int64_t k = 1; k < length; ++k) {
    const ScanMemory m = memory(bytes, length, k);
    if (m.bytes < best.bytes) best = m;
  }
  if (best.bytes > budget) {
    throw invalid("scan: the gradient of ", length, " steps needs at least ", best.bytes, " bytes (",
                  best.checkpoints, " checkpoints); the budget is ", budget);
  }
  return best;
}

Exprs scan_within(Graph& g, const Exprs& init, const Exprs& consts, const Exprs& xs, Graph body,
                  int64_t length, int64_t budget) {
  const ScanMemory m = fit_scan(body, init.size(), length, budget);
  if (m.checkpoints == 0) return ops::scan_all(g, init, consts, xs, std::move(body), length);
  return ops::scan_all_checkpointed(g, init, consts, xs, std::move(body), length, m.checkpoints);
}

}  // namespace rlx::transform
