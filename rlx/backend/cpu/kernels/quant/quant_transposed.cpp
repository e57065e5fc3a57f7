#include "rlx/backend/cpu/kernels/quant/quant_transposed.h"

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE_VNNI(QuantProductKernels, quant_product_kernels)

namespace {

// Rows of w that are decoded together, whole groups at every level and in equal parts: at most four megabytes of numbers, which the last
// cache holds until gemm has packed them, and no more rows than gemm multiplies without a cut of its own. Each further part is one more
// pass over y.
int64_t rows_together(int64_t n, int64_t k) {
  constexpr int64_t kNumbers = 1 << 20, kLeastRows = 64, kMostRows = 1024, kGroup = 16;
  const int64_t most = std::clamp(kNumbers / std::max<int64_t>(k, 1), kLeastRows, kMostRows);
  const int64_t parts = ceil_div(n, most);
  return std::min(n, ceil_div(ceil_div(n, std::max<int64_t>(parts, 1)), kGroup) * kGroup);
}

Gemm part_of(const QuantTransposed& p, int64_t first, int64_t rows, const float* decoded) {
  Gemm g{.m = p.m, .n = p.k, .k = rows};
  g.a = {p.x == nullptr ? nullptr : p.x + first, DType::f32, p.x_stride, 1};
  g.b = {decoded, DType::f32, p.k, 1};
  g.c = p.y;
  g.c_row_stride = p.y_stride;
  if (first > 0) g.epilogue.then({.kind = EpilogueKind::add, .data = p.y, .row_stride = p.y_stride});
  return g;
}

size_t decoded_bytes(const QuantTransposed& p) {
  return round_up(size_t(rows_together(p.n, p.k) * p.k) * sizeof(float));
}

// Rows [first, n) as a matrix of their own.
QuantView rows_from(QuantView v, int64_t first, int lanes) {
  v.data += first / lanes * v.blocks * v.block_bytes;
  v.n -= first;
  if (v.factors != nullptr) v.factors += first;
  return v;
}

}  // namespace

size_t quant_transposed_workspace(const QuantTransposed& p, int threads) {
  const int64_t rows = rows_together(p.n, p.k);
  return decoded_bytes(p) + gemm_workspace(part_of(p, 0, rows, nullptr), threads);
}

void quant_transposed(Team team, const QuantTransposed& p, std::byte* workspace) {
  const QuantProductKernels& kernels = quant_product_kernels();
  const QuantView& w = p.w->view();
  RLX_CHECK(p.w->lanes() == kernels.lanes, "quant_transposed: packed at another level");
  RLX_CHECK(w.n == p.n && w.k == p.k, "quant_transposed: weights ", w.n, "x", w.k, " used as ", p.n, "x",
            p.k);
  auto* decoded = reinterpret_cast<float*>(workspace);
  const int64_t together = rows_together(p.n, p.k);
  for (int64_t first = 0; first < p.n; first += together) {
    const int64_t rows = std::min(together, p.n - first);
    QuantView part = rows_from(w, first, kernels.lanes);
    part.n = rows;
    team.parallel_for(ceil_div(rows, kernels.lanes), 4,
                      [&](int64_t begin, int64_t end) { kernels.decode(part, begin, end, decoded, p.k); });
    gemm(team, part_of(p, first, rows, decoded), workspace + decoded_bytes(p));
  }
}

}  // namespace rlx::cpu
