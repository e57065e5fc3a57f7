#include "rlx/backend/cpu/kernels/gemm.h"

#include <cstdlib>
#include <cstring>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/weight_memory.h"
#include "rlx/backend/cpu/kernels/weight_order.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE(GemmKernels, gemm_kernels)

namespace {

// Rows with which a product takes little longer than the read of its weights.
constexpr int64_t kFewRows = 64;

bool accumulates_f32(DType t) { return t == DType::f32 || t == DType::f16 || t == DType::bf16; }

// The shape of the work at the current level. c64 is a real product of twice the rows, see isa/gemm.cpp.
struct Plan {
  const GemmKernels* kernels;
  void (*block)(const GemmBlock&);
  TileShape tiles;
  int panel_columns;                                 // columns of C in one panel
  int64_t element;                                   // bytes of one number of the packed A
  size_t panel_bytes, a_bytes, b_bytes, sums_bytes;  // sums_bytes: of one thread
  DType b_dtype;
  bool own_items;  // each thread takes whole products of the batch
  bool in_place;   // A is read where it lies
};

// Sums of so many rows and panels.
size_t sums_bytes(const GemmKernels& kn, int64_t rows, int64_t panels) {
  const int64_t columns = std::min(panels, kn.max_panels) * kn.panel;
  return std::min(kn.scratch_bytes, round_up(size_t(std::min(rows, kn.max_block_rows) * columns) * 4));
}

Plan make_plan(const Gemm& g, int threads) {
  const GemmKernels& kn = gemm_kernels();
  Plan p{.kernels = &kn};
  const bool f64 = g.a.dtype == DType::f64, c64 = g.a.dtype == DType::c64;
  p.block = f64 ? kn.block_f64 : (c64 ? kn.block_c64 : kn.block_f32);
  p.panel_columns = f64 ? kn.panel_f64 : (c64 ? kn.panel / 2 : kn.panel);
  p.element = f64 ? 8 : 4;
  const bool paired = g.packed_b != nullptr && g.packed_b->paired();
  p.tiles = {.max_tile_rows = f64 ? kn.max_tile_rows_f64 : kn.max_tile_rows,
             .per_row = c64 ? 2 : 1,
             .max_block_rows = kn.max_block_rows,
             .panels_together = kn.panels_together,
             .panels = ceil_div(g.n, p.panel_columns) * (paired ? 2 : 1),
             .panel_work = g.k * (f64 ? kn.panel_f64 : kn.panel),
             .paired = paired};
  const bool numbers = g.a.column_stride == 1 && (g.a.dtype == DType::f32 || f64);
  const int rows =
      numbers ? rows_in_place(g.a.row_stride * p.element, g.m, p.tiles.max_tile_rows, p.tiles.panels) : 0;
  if (rows > 0) p.in_place = true, p.tiles.max_tile_rows = rows;
  p.b_dtype = g.packed_b != nullptr ? g.packed_b->dtype() : g.b.dtype;
  const size_t width = f64 ? size_t(kn.panel_f64) : size_t(kn.panel);
  p.panel_bytes =
      size_t(g.k) * width * (accumulates_f32(p.b_dtype) ? dtype_size(p.b_dtype) : size_t(p.element));
  p.tiles.chunk_panels = chunk_panels(int64_t(p.panel_bytes), g.k, kn.depth, kn.chunk_bytes);
  p.a_bytes = p.in_place ? 0 : round_up(size_t(p.tiles.per_row * g.m * g.k * p.element));
  p.b_bytes = g.packed_b != nullptr ? 0 : round_up(size_t(p.tiles.panels) * p.panel_bytes);
  p.sums_bytes = sums_bytes(kn, p.tiles.per_row * g.m, p.tiles.panels);
  p.own_items = g.packed_b == nullptr && g.groups.count == 0 && g.batch > 1 && g.batch >= threads &&
                g.b_batch_stride != 0;
  return p;
}

Matrix shifted(Matrix m, int64_t elements) {
  m.data = static_cast<const std::byte*>(m.data) + elements * int64_t(dtype_size(m.dtype));
  return m;
}

// What all blocks of product `item` of the batch have in common.
GemmBlock block_for(const Gemm& g, const Plan& p, int64_t item, int64_t batch_index) {
  return {.k = g.k,
          .paired = p.tiles.paired,
          .b_dtype = p.b_dtype,
          .c = static_cast<std::byte*>(g.c) + item * g.c_batch_stride * int64_t(dtype_size(g.c_dtype)),
          .c_dtype = g.c_dtype,
          .c_row_stride = g.c_row_stride,
          .epilogue = &g.epilogue,
          .batch_index = batch_index};
}

// The products of all groups: a holds the packed rows, b_of(group) the panels of its matrix.
template <class Panels>
void run_blocks(Team team, const Gemm& g, const Plan& p, const RowGroups& groups, const GemmBlock& common,
                const std::byte* a, Panels b_of, std::byte* scratch) {
  for_each_block(team, p.tiles, groups, [&](int part, const BlockTask& t) {
    GemmBlock b = common;
    b.a = a + t.row * (p.in_place ? g.a.row_stride : g.k) * p.element;
    b.a_row_bytes = p.in_place && g.m > 1 ? g.a.row_stride * p.element : 0;
    b.tile_rows = t.tile_rows;
    b.row0 = t.row;
    b.rows = t.rows;
    b.b = b_of(t.group) + size_t(t.first) * p.panel_bytes;
    b.panels = t.last - t.first;
    const int64_t half = p.tiles.paired ? 2 : 1;
    b.column0 = t.first / half * p.panel_columns;
    b.columns = std::min(g.n, t.last / half * p.panel_columns) - b.column0;
    b.batch_index = common.batch_index + t.group;
    b.scratch = scratch + size_t(part) * p.sums_bytes;
    p.block(b);
  });
}

// Rows of A as the blocks read them: where they lie, or packed to `out`.
const std::byte* prepare_a(Team team, const Gemm& g, const Plan& p, const RowGroups& groups, const Matrix& a,
                           std::byte* out) {
  if (p.in_place) return static_cast<const std::byte*>(a.data);
  for_each_tile_run(team, p.tiles, groups, g.k, [&](int64_t row, int64_t rows, int tile_rows) {
    p.kernels->pack_a(a, row, rows, g.k, tile_rows, out + row * p.tiles.per_row * g.k * p.element);
  });
  return out;
}

void pack_all_b(Team team, const Matrix& b, int64_t k, int64_t n, const Plan& p, std::byte* out) {
  team.parallel_for(p.tiles.panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i * p.panel_columns;
      p.kernels->pack_b(b, column, std::min<int64_t>(n - column, p.panel_columns), k, p.b_dtype,
                        out + size_t(i) * p.panel_bytes);
    }
  });
}

// Rows sorted by expert. Packed matrices: the blocks of all groups are one pool of tasks. Others are packed
// one after the other by all threads, those without rows not at all.
void run_groups(Team team, const Gemm& g, const Plan& p, std::byte* workspace) {
  std::byte *b = workspace + p.a_bytes, *scratch = b + p.b_bytes;
  const std::byte* a = prepare_a(team, g, p, g.groups, g.a, workspace);
  if (g.packed_b != nullptr) {
    run_blocks(
        team, g, p, g.groups, block_for(g, p, 0, 0), a,
        [&](int64_t group) { return g.packed_b[group].data(); }, scratch);
    return;
  }
  for (int64_t i = 0; i < g.groups.count; ++i) {
    if (g.groups.offsets[i] == g.groups.offsets[i + 1]) continue;
    pack_all_b(team, shifted(g.b, i * g.b_batch_stride), g.k, g.n, p, b);
    run_blocks(
        team, g, p, {1, g.groups.offsets + i}, block_for(g, p, 0, i), a, [&](int64_t) { return b; }, scratch);
  }
}

// So few multiply-adds that planning them would take longer.
bool is_small(const Gemm& g) {
  constexpr int64_t kSmallWork = 8192;
  if (g.m > kSmallWork || g.n > kSmallWork || g.k > kSmallWork || g.batch > kSmallWork) return false;
  if (g.m * g.n > kSmallWork || g.m * g.n * g.k * g.batch > kSmallWork || g.groups.count > 0) return false;
  if (g.a.dtype != DType::f32 || g.c_dtype != DType::f32) return false;
  if (g.packed_b != nullptr) return g.packed_b->dtype() == DType::f32 && !g.packed_b->paired();
  return g.b.dtype == DType::f32 && g.b.column_stride == 1;
}

bool takes_one_thread(const Gemm& g, const Plan& p) {
  return g.m * p.tiles.panels * std::max<int64_t>(p.tiles.panel_work, 1) < kSerialWork;
}

void check(const Gemm& g) {
  const bool narrow = accumulates_f32(g.a.dtype);
  const DType b = g.packed_b != nullptr ? g.packed_b->dtype() : g.b.dtype;
  RLX_CHECK(narrow ? accumulates_f32(b) && accumulates_f32(g.c_dtype) : b == g.a.dtype && g.c_dtype == b,
            "gemm of ", g.a.dtype, " and ", b, " to ", g.c_dtype);
  RLX_CHECK(narrow || g.epilogue.count == 0, "an epilogue needs f32 accumulation, not ", g.a.dtype);
  for (int64_t i = 0; g.packed_b != nullptr && i < std::max<int64_t>(1, g.groups.count); ++i) {
    const GemmKernels& kn = gemm_kernels();
    const PackedMatrix& m = g.packed_b[i];
    RLX_CHECK(m.k() == g.k && m.n() == g.n, "packed ", m.k(), "x", m.n(), " used as ", g.k, "x", g.n);
    RLX_CHECK(m.panel() == (b == DType::f64 ? kn.panel_f64 : kn.panel), "packed at another level");
    RLX_CHECK(m.dtype() == b && m.paired() == g.packed_b->paired(), "groups packed in different ways");
  }
  if (g.groups.count > 0) {
    RLX_CHECK(g.batch == 1, "a grouped product has no batch, got ", g.batch);
    check_groups(g.groups, g.m);
  }
  bool gated = false;
  for (int i = 0; i < g.epilogue.count; ++i) gated |= g.epilogue.steps[i].kind == EpilogueKind::gate;
  RLX_CHECK(gated == (g.packed_b != nullptr && g.packed_b->paired()),
            "gate step and paired matrix go together");
}

}  // namespace

Epilogue& Epilogue::then(const EpilogueStep& step) {
  RLX_CHECK(count < kMaxSteps, "an epilogue has at most ", kMaxSteps, " steps");
  steps[count++] = step;
  return *this;
}

PackedMatrix PackedMatrix::described(int64_t k, int64_t n, DType stored, bool paired) {
  const GemmKernels& kn = gemm_kernels();
  PackedMatrix m;
  m.k_ = k;
  m.n_ = n;
  m.dtype_ = stored;
  m.paired_ = paired;
  m.panel_ = stored == DType::f64 ? kn.panel_f64 : kn.panel;
  const int64_t columns = stored == DType::c64 ? m.panel_ / 2 : m.panel_;
  const size_t element = stored == DType::c64 ? 4 : dtype_size(stored);
  m.size_ = size_t(ceil_div(n, columns) * (paired ? 2 : 1)) * size_t(k) * size_t(m.panel_) * element;
  return m;
}

PackedMatrix PackedMatrix::allocate(int64_t k, int64_t n, DType stored, bool paired) {
  PackedMatrix m = described(k, n, stored, paired);
  m.bytes_ = allocate_weights(m.size_);
  return m;
}

PackedMatrix PackedMatrix::pack(Team team, const Matrix& b, int64_t k, int64_t n, DType stored) {
  RLX_CHECK(accumulates_f32(b.dtype) ? accumulates_f32(stored) : stored == b.dtype, "cannot pack ", b.dtype,
            " as ", stored);
  PackedMatrix m = allocate(k, n, stored, false);
  m.fill(team, b);
  return m;
}

void PackedMatrix::fill(Team team, const Matrix& b) {
  const Gemm g{.n = n_, .k = k_, .a = {.dtype = b.dtype}, .packed_b = this};
  pack_all_b(team, b, k_, n_, make_plan(g, 1), bytes_.get());
}

size_t PackedMatrix::bytes_in_a_row(int64_t count, int64_t k, int64_t n, DType stored) {
  return size_t(count) * round_up(described(k, n, stored).size_);
}

std::vector<PackedMatrix> PackedMatrix::in_a_row(int64_t count, int64_t k, int64_t n, DType stored) {
  const std::shared_ptr<std::byte> memory = allocate_weights(bytes_in_a_row(count, k, n, stored));
  const PackedMatrix one = described(k, n, stored);
  const size_t apart = round_up(one.size_);
  std::vector<PackedMatrix> out(size_t(count), one);
  for (size_t i = 0; i < out.size(); ++i) {
    std::byte* at = memory.get() + i * apart;
    std::memset(at + one.size_, 0, apart - one.size_);
    out[i].bytes_ = {memory, at};
  }
  return out;
}

std::span<std::byte> PackedMatrix::contents(std::span<const PackedMatrix> row) {
  if (row.empty()) return {};
  return {row[0].bytes_.get(), row.size() * round_up(row[0].size_)};
}

PackedMatrix PackedMatrix::from_bytes(Team team, int64_t k, int64_t n, DType stored,
                                      std::span<const std::byte> bytes) {
  PackedMatrix m = allocate(k, n, stored, false);
  RLX_CHECK(bytes.size() == m.size_, "a packed matrix has ", m.size_, " bytes, these are ", bytes.size());
  team.parallel_for(int64_t(m.size_), 1 << 20, [&](int64_t begin, int64_t end) {
    std::memcpy(m.bytes_.get() + begin, bytes.data() + begin, size_t(end - begin));
  });
  return m;
}

PackedMatrix PackedMatrix::pack_pair(Team team, const Matrix& b, const Matrix& second, int64_t k, int64_t n,
                                     DType stored) {
  RLX_CHECK(accumulates_f32(b.dtype) && b.dtype == second.dtype && accumulates_f32(stored), "cannot pair ",
            b.dtype, " and ", second.dtype, " as ", stored);
  PackedMatrix m = allocate(k, n, stored, true);
  const GemmKernels& kn = gemm_kernels();
  const size_t panel_bytes = size_t(k) * size_t(m.panel_) * dtype_size(stored);
  team.parallel_for(ceil_div(n, m.panel_), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i * m.panel_, columns = std::min<int64_t>(n - column, m.panel_);
      std::byte* out = m.bytes_.get() + size_t(2 * i) * panel_bytes;
      kn.pack_b(b, column, columns, k, stored, out);
      kn.pack_b(second, column, columns, k, stored, out + panel_bytes);
    }
  });
  return m;
}

// Products of fewer rows, columns or steps never need more: some who ask for this multiply in parts.
size_t gemm_workspace(const Gemm& g, int threads) {
  if (is_small(g)) return sums_bytes(gemm_kernels(), g.m, 1);
  const Plan p = make_plan(g, threads);
  const size_t shared = p.a_bytes + p.b_bytes;
  if (p.own_items) return (shared + p.sums_bytes) * size_t(threads);
  return shared + p.sums_bytes * size_t(takes_one_thread(g, p) ? 1 : std::min(threads, kMaxParts));
}

void gemm(Team team, const Gemm& g, std::byte* workspace) {
  if (g.m == 0 || g.n == 0 || g.batch == 0) return;
  check(g);
  if (is_small(g)) return gemm_kernels().small_f32(g, workspace);
  const Plan p = make_plan(g, team.threads());
  const size_t shared = p.a_bytes + p.b_bytes;
  const int64_t offsets[2] = {0, g.m};
  const RowGroups all{1, offsets};
  if (p.own_items) {
    std::byte* scratch = workspace + shared * size_t(team.threads());
    std::atomic<int64_t> next{0};
    team.run(int(std::min<int64_t>(team.threads(), g.batch)), [&](int part) {
      const Team alone = team.limited(1);
      std::byte* own = workspace + shared * size_t(part);
      std::byte* b = own + p.a_bytes;
      for (int64_t item; (item = next.fetch_add(1, std::memory_order_relaxed)) < g.batch;) {
        const std::byte* a = prepare_a(alone, g, p, all, shifted(g.a, item * g.a_batch_stride), own);
        pack_all_b(alone, shifted(g.b, item * g.b_batch_stride), g.k, g.n, p, b);
        run_blocks(
            alone, g, p, all, block_for(g, p, item, item), a, [&](int64_t) { return b; },
            scratch + size_t(part) * p.sums_bytes);
      }
    });
    return;
  }
  if (takes_one_thread(g, p)) team = team.limited(1);
  if (g.groups.count > 0) return run_groups(team, g, p, workspace);
  const std::byte* a = nullptr;
  std::byte* scratch = workspace + shared;
  const std::byte* b = g.packed_b != nullptr ? g.packed_b->data() : workspace + p.a_bytes;
  WeightOrder::Weights next;  // of products that are bound by the read of their weights
  if (g.packed_b != nullptr && g.batch * g.m <= kFewRows)
    next = WeightOrder::here().reads({b, g.packed_b->bytes()});
  for (int64_t item = 0; item < g.batch; ++item) {
    if (g.packed_b == nullptr && (item == 0 || g.b_batch_stride != 0)) {
      pack_all_b(team, shifted(g.b, item * g.b_batch_stride), g.k, g.n, p, workspace + p.a_bytes);
    }
    if (item == 0 || g.a_batch_stride != 0) {
      a = prepare_a(team, g, p, all, shifted(g.a, item * g.a_batch_stride), workspace);
    }
    run_blocks(team, g, p, all, block_for(g, p, item, item), a, [&](int64_t) { return b; }, scratch);
  }
  if (next.data != nullptr) announce(next);
}

void check_groups(const RowGroups& groups, int64_t rows) {
  RLX_CHECK(groups.offsets[0] == 0 && groups.rows() == rows, "groups cover rows ", groups.offsets[0], " to ",
            groups.rows(), " of ", rows);
  for (int64_t i = 0; i < groups.count; ++i) {
    RLX_CHECK(groups.offsets[i] <= groups.offsets[i + 1], "group ", i, " begins at row ", groups.offsets[i],
              " and ends at ", groups.offsets[i + 1]);
  }
}

void group_rows(const int64_t* ids, int64_t rows, int64_t groups, int64_t* offsets, int64_t* order) {
  for (int64_t g = 0; g <= groups; ++g) offsets[g] = 0;
  for (int64_t i = 0; i < rows; ++i) {
    if (ids[i] < 0 || ids[i] >= groups) {
      throw invalid("group_rows: row ", i, " chooses group ", ids[i], "; it must be at least 0 and below ",
                    groups);
    }
    ++offsets[ids[i]];
  }
  int64_t end = 0;  // offsets[g]: the first row of g, then moved on to the next as rows come
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t count = offsets[g];
    offsets[g] = end;
    end += count;
  }
  for (int64_t i = 0; i < rows; ++i) order[offsets[ids[i]]++] = i;
  for (int64_t g = groups; g > 0; --g) offsets[g] = offsets[g - 1];
  offsets[0] = 0;
}

}  // namespace rlx::cpu
