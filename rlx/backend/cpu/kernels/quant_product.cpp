#include "rlx/backend/cpu/kernels/quant_product.h"

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/backend/cpu/kernels/weight_order.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE_VNNI(QuantProductKernels, quant_product_kernels)

int quant_lanes() { return quant_product_kernels().lanes; }

namespace {

// Rows of x that a tile of work covers: their records stay in L2 while the groups pass by.
constexpr int64_t kBlockRows = 256;
// Rows that are multiplied together at every level: rows are cut at multiples of it only, so that the form
// a row is multiplied in does not depend on the cut.
constexpr int64_t kTileRows = 8;
// Groups that are multiplied together at some levels: a tile has whole pairs of them, but for the last.
constexpr int64_t kGroupsTogether = 2;
// Bytes of w worth handing to a thread.
constexpr int64_t kGrainBytes = 64 << 10;

bool is_exact(const QuantProduct& p) { return p.exact || !quant_layout(p.w->kind()).is_integer(); }

const QuantProductKernels& checked_kernels(const QuantMatrix& w) {
  const QuantProductKernels& k = quant_product_kernels();
  RLX_CHECK(w.lanes() == k.lanes, "quant_product: packed at another level");
  return k;
}

}  // namespace

size_t quant_product_workspace(const QuantProduct& p) {
  if (is_exact(p)) return 0;
  return rounded_rows_workspace(p.m, 32 * p.w->view().strips());
}

size_t rounded_rows_workspace(int64_t m, int64_t k) {
  return round_up(size_t(m * (k / 32)) * quant_product_kernels().record_bytes);
}

void quant_product(Team team, const QuantProduct& p, std::byte* workspace) {
  const QuantProductKernels& kernels = checked_kernels(*p.w);
  const QuantView& w = p.w->view();
  if (p.m == 0 || w.n == 0) return;
  const QuantRows rows{&w, p.x, p.x_stride, p.m, workspace};
  const bool exact = is_exact(p);
  if (!exact) {
    const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, w.k));
    team.parallel_for(p.m, grain, [&](int64_t begin, int64_t end) { kernels.round_rows(rows, begin, end); });
  }
  // Rows of x are cut only when the groups of w alone are too few for the threads.
  const int64_t groups = ceil_div(w.n, kernels.lanes), wanted = 8 * team.threads();
  const int64_t cuts = std::max<int64_t>(1, team.threads() > 1 ? ceil_div(wanted, groups) : 1);
  const int64_t rows_together = std::min(kBlockRows, ceil_div(ceil_div(p.m, cuts), kTileRows) * kTileRows);
  const int64_t group_bytes = std::max<int64_t>(1, w.blocks * w.block_bytes);
  const int64_t least_groups = ceil_div(kGrainBytes, group_bytes * rows_together);
  const int64_t groups_together =
      ceil_div(std::max(least_groups, ceil_div(groups, wanted)), kGroupsTogether) * kGroupsTogether;
  const auto multiply = exact ? kernels.multiply_exact : kernels.multiply;
  // The last tile is about to be multiplied when the first thread has nothing left to do.
  const auto next = WeightOrder::here().reads({w.data, size_t(groups * w.blocks * w.block_bytes)});
  team.parallel_tiles(p.m, groups, rows_together, groups_together,
                      [&](int64_t r0, int64_t r1, int64_t g0, int64_t g1) {
                        if (g1 == groups && r1 == p.m) announce(next);
                        multiply(rows, {r0, r1, g0, g1}, p.y, p.y_stride);
                      });
}

void quant_decode(Team team, const QuantMatrix& w, float* out, int64_t stride) {
  const QuantProductKernels& kernels = checked_kernels(w);
  team.parallel_for(ceil_div(w.n(), kernels.lanes), 1,
                    [&](int64_t begin, int64_t end) { kernels.decode(w.view(), begin, end, out, stride); });
}

}  // namespace rlx::cpu
