#include "rlx/backend/cpu/kernels/quant/quant_product.h"

#include <algorithm>

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

size_t quant_product_workspace(const QuantProduct& p, int) {
  if (is_exact(p)) return 0;
  return rounded_rows_bytes(p.m, 32 * p.w->view().strips());
}

size_t rounded_rows_bytes(int64_t m, int64_t k) {
  return round_up(size_t(m * (k / 32)) * quant_product_kernels().record_bytes);
}

void quant_product(Team team, const QuantProduct& p, std::byte* workspace) {
  quant_products(team, {&p, 1}, workspace);
}

namespace {

using Multiply = void (*)(const QuantRows&, const QuantTile&, float* y, int64_t y_stride);

/// One of several products as its tiles: [0, tiles) in rows of `across`.
struct Cut {
  const QuantProduct* product = nullptr;
  QuantRows rows{};
  Multiply multiply = nullptr;
  int64_t groups = 0, groups_together = 1, rows_together = 1, across = 0, tiles = 0;

  void run(int64_t tile) const {
    const int64_t r = tile / across * rows_together, g = tile % across * groups_together;
    multiply(rows, {r, std::min(product->m, r + rows_together), g, std::min(groups, g + groups_together)},
             product->y, product->y_stride);
  }
};

/// The products of a call, and the forms of rounded rows that they need.
class Work {
 public:
  Work(std::span<const QuantProduct> products, std::byte* workspace) {
    RLX_CHECK(products.size() <= kMostQuantProducts, "quant_products: ", products.size(), " products");
    for (const QuantProduct& p : products) {
      const QuantProductKernels& kernels = checked_kernels(*p.w);
      RLX_CHECK(p.x == products[0].x && p.m == products[0].m && p.x_stride == products[0].x_stride,
                "quant_products: rows of x differ");
      if (p.m == 0 || p.w->n() == 0) continue;
      Cut& c = cuts_[size_++];
      c.product = &p;
      c.rows = {&p.w->view(), p.x, p.x_stride, p.m, nullptr};
      c.groups = ceil_div(p.w->n(), kernels.lanes);
      const bool exact = is_exact(p);
      c.multiply = exact ? kernels.multiply_exact : kernels.multiply;
      if (!exact) c.rows.records = records_like(c, workspace);
    }
  }

  std::span<Cut> cuts() { return {cuts_, size_}; }
  std::span<const QuantRows* const> forms() const { return {forms_, rounded_}; }

 private:
  // Those of an earlier product of the same kind, or the next of the workspace.
  std::byte* records_like(const Cut& c, std::byte*& workspace) {
    for (const QuantRows* f : forms()) {
      if (f->w->kind == c.rows.w->kind && f->w->k == c.rows.w->k) return f->records;
    }
    forms_[rounded_++] = &c.rows;
    std::byte* const own = workspace;
    workspace += rounded_rows_bytes(c.product->m, 32 * c.rows.w->strips());
    return own;
  }

  Cut cuts_[kMostQuantProducts];
  const QuantRows* forms_[kMostQuantProducts];
  size_t size_ = 0, rounded_ = 0;
};

void round_rows(Team team, std::span<const QuantRows* const> forms) {
  if (forms.empty()) return;
  const auto round = quant_product_kernels().round_rows;
  const int64_t m = forms[0]->m, grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, forms[0]->w->k));
  team.parallel_for(m * int64_t(forms.size()), grain, [&](int64_t begin, int64_t end) {
    for (int64_t f = begin / m; f * m < end; ++f)
      round(*forms[size_t(f)], std::max(begin - f * m, int64_t(0)), std::min(end - f * m, m));
  });
}

/// Cuts all products into tiles of about one size; how many there are.
int64_t cut_tiles(std::span<Cut> cuts, int threads) {
  // Rows of x are cut only when the groups of w alone are too few for the threads.
  int64_t groups = 0, tiles = 0;
  for (const Cut& c : cuts) groups += c.groups;
  const int64_t wanted = 8 * threads, row_cuts = threads > 1 ? ceil_div(wanted, groups) : 1;
  for (Cut& c : cuts) {
    const QuantView& w = *c.rows.w;
    const int64_t m = c.product->m;
    c.rows_together = std::min(kBlockRows, ceil_div(ceil_div(m, row_cuts), kTileRows) * kTileRows);
    const int64_t group_bytes = std::max<int64_t>(1, w.blocks * w.block_bytes);
    const int64_t least_groups = ceil_div(kGrainBytes, group_bytes * c.rows_together);
    c.groups_together =
        ceil_div(std::max(least_groups, ceil_div(groups, wanted)), kGroupsTogether) * kGroupsTogether;
    c.across = ceil_div(c.groups, c.groups_together);
    c.tiles = c.across * ceil_div(m, c.rows_together);
    tiles += c.tiles;
  }
  return tiles;
}

}  // namespace

void quant_products(Team team, std::span<const QuantProduct> products, std::byte* workspace) {
  Work work(products, workspace);
  const std::span<Cut> cuts = work.cuts();
  if (cuts.empty()) return;
  round_rows(team, work.forms());
  const int64_t tiles = cut_tiles(cuts, team.threads());
  // The last tile is about to be multiplied when the first thread has nothing left to do.
  const QuantView& first = *cuts[0].rows.w;
  const auto next =
      WeightOrder::here().reads({first.data, size_t(cuts[0].groups * first.blocks * first.block_bytes)});
  team.parallel_chunks(tiles, 1, [&](int64_t tile, int64_t) {
    if (tile == tiles - 1) announce(next);
    const Cut* c = cuts.data();
    for (; tile >= c->tiles; ++c) tile -= c->tiles;
    c->run(tile);
  });
}

void quant_decode(Team team, const QuantMatrix& w, float* out, int64_t stride) {
  const QuantProductKernels& kernels = checked_kernels(w);
  team.parallel_for(ceil_div(w.n(), kernels.lanes), 1,
                    [&](int64_t begin, int64_t end) { kernels.decode(w.view(), begin, end, out, stride); });
}

}  // namespace rlx::cpu
