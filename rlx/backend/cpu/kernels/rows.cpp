#include "rlx/backend/cpu/kernels/rows.h"

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/grain.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE(RowKernels, row_kernels)

namespace {

// Sums over rows are made of this many partial sums whatever the threads, so their bits do not change.
constexpr int64_t kSlices = 16;

int64_t rows_per_part(int64_t n) { return rows_worth(kGrain, n); }

int64_t slice_count(int64_t rows, int64_t n) {
  return std::clamp<int64_t>(rows * n / (4 * kGrain), 1, kSlices);
}

bool rows_may_stream(const float* x, const float* y, int64_t y_stride, int64_t elements) {
  return x != y && y_stride % 16 == 0 && may_stream(y, 8 * elements);
}

}  // namespace

void norm(Team team, const Norm& p) {
  const auto run = row_kernels().norm;
  const auto streams = [&](const float* y) { return rows_may_stream(p.x, y, p.y_stride, p.rows * p.n); };
  const auto own = [&](const float* y) { return y == nullptr || (y != p.residual && streams(y)); };
  const bool streaming =
      streams(p.y) && (p.residual == nullptr || (p.n <= kStreamedNorm && own(p.y) && own(p.sum)));
  team.parallel_for(p.rows, rows_per_part(p.n), [&](int64_t b, int64_t e) { run(p, b, e, streaming); });
}

size_t norm_backward_workspace(const NormBackward& p, int) {
  return size_t(slice_count(p.rows, p.n) * 2 * p.n) * sizeof(float);
}

void norm_backward(Team team, const NormBackward& p, std::byte* workspace) {
  const RowKernels& k = row_kernels();
  const int slices = int(slice_count(p.rows, p.n));
  float* sums = reinterpret_cast<float*>(workspace);
  team.run(slices, [&](int slice) {
    float* dgamma = sums + slice * 2 * p.n;
    std::fill_n(dgamma, 2 * p.n, 0.0f);
    const Range r = split_range(p.rows, 1, slices, slice);
    k.norm_backward(p, r.begin, r.end, p.dgamma != nullptr ? dgamma : nullptr,
                    p.dbeta != nullptr ? dgamma + p.n : nullptr);
  });
  for (int which = 0; which < 2; ++which) {
    float* out = which == 0 ? p.dgamma : p.dbeta;
    if (out != nullptr) k.sum_rows(sums + which * p.n, 2 * p.n, slices, p.n, out);
  }
}

void softmax(Team team, const Softmax& p) {
  RLX_CHECK(p.scale > 0, "softmax with scale ", p.scale);
  const auto run = row_kernels().softmax;
  const bool streaming =
      !p.logarithm && p.n <= kStreamedSoftmax && rows_may_stream(p.x, p.y, p.y_stride, p.rows * p.n);
  team.parallel_for(p.rows, rows_per_part(p.n), [&](int64_t b, int64_t e) { run(p, b, e, streaming); });
}

void softmax_backward(Team team, const SoftmaxBackward& p) {
  const auto run = row_kernels().softmax_backward;
  team.parallel_for(p.rows, rows_per_part(p.n), [&](int64_t b, int64_t e) { run(p, b, e); });
}

void cross_entropy(Team team, const CrossEntropy& p) {
  const auto run = row_kernels().cross_entropy;
  team.parallel_for(p.rows, rows_per_part(p.n), [&](int64_t b, int64_t e) { run(p, b, e); });
}

}  // namespace rlx::cpu
