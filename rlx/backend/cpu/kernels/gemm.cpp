#include "rlx/backend/cpu/kernels/gemm.h"

#include <cstdlib>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE(GemmKernels, gemm_kernels)

namespace {

// Fewer multiply-adds than this take less time than waking another thread.
constexpr int64_t kSerialWork = 16384;

bool accumulates_f32(DType t) { return t == DType::f32 || t == DType::f16 || t == DType::bf16; }

// The shape of the work at the current level. c64 is a real product of twice the rows, see isa/gemm.cpp.
struct Plan {
  const GemmKernels* kernels;
  void (*block)(const GemmBlock&);
  int64_t rows;        // of the real product
  int tile_rows;       // rows shared out evenly over the fewest tiles
  int64_t block_rows;  // a multiple of tile_rows
  int panel_columns;   // columns of C in one panel
  int64_t panels;      // those of a paired matrix counted twice
  size_t panel_bytes, a_bytes, b_bytes;
  DType b_dtype;
  bool own_items;  // each thread takes whole products of the batch
};

Plan make_plan(const Gemm& g, int threads) {
  const GemmKernels& kn = gemm_kernels();
  Plan p{.kernels = &kn};
  const bool f64 = g.a.dtype == DType::f64, c64 = g.a.dtype == DType::c64;
  p.block = f64 ? kn.block_f64 : (c64 ? kn.block_c64 : kn.block_f32);
  p.rows = c64 ? 2 * g.m : g.m;
  const int max_rows = f64 ? kn.max_tile_rows_f64 : kn.max_tile_rows;
  p.tile_rows = int(ceil_div(p.rows, std::max<int64_t>(1, ceil_div(p.rows, max_rows))));
  if (c64 && p.tile_rows % 2) ++p.tile_rows;
  p.tile_rows = std::max(p.tile_rows, 1);
  p.block_rows = kn.max_block_rows / p.tile_rows * p.tile_rows;
  p.panel_columns = f64 ? kn.panel_f64 : (c64 ? kn.panel / 2 : kn.panel);
  const bool paired = g.packed_b != nullptr && g.packed_b->paired();
  p.panels = ceil_div(g.n, p.panel_columns) * (paired ? 2 : 1);
  p.b_dtype = g.packed_b != nullptr ? g.packed_b->dtype() : g.b.dtype;
  const size_t width = f64 ? size_t(kn.panel_f64) : size_t(kn.panel);
  p.panel_bytes = size_t(g.k) * width * (accumulates_f32(p.b_dtype) ? dtype_size(p.b_dtype) : (f64 ? 8 : 4));
  p.a_bytes = round_up(size_t(p.rows) * size_t(g.k) * (f64 ? 8 : 4));
  p.b_bytes = g.packed_b != nullptr ? 0 : round_up(size_t(p.panels) * p.panel_bytes);
  p.own_items = g.packed_b == nullptr && g.batch > 1 && g.batch >= threads && g.b_batch_stride != 0;
  return p;
}

Matrix shifted(Matrix m, int64_t elements) {
  m.data = static_cast<const std::byte*>(m.data) + elements * int64_t(dtype_size(m.dtype));
  return m;
}

GemmBlock block_for(const Gemm& g, const Plan& p, int64_t item, const void* a, const void* b) {
  return {.k = g.k,
          .a = a,
          .tile_rows = p.tile_rows,
          .rows = p.rows,
          .b = b,
          .panels = p.panels,
          .paired = g.packed_b != nullptr && g.packed_b->paired(),
          .b_dtype = p.b_dtype,
          .columns = g.n,
          .c = static_cast<std::byte*>(g.c) + item * g.c_batch_stride * int64_t(dtype_size(g.c_dtype)),
          .c_dtype = g.c_dtype,
          .c_row_stride = g.c_row_stride,
          .epilogue = &g.epilogue,
          .batch_index = item};
}

// Rows [row, row + rows) and panels [first, last) of a block, in place.
GemmBlock part_of(const GemmBlock& whole, const Plan& p, int64_t row, int64_t rows, int64_t first,
                  int64_t last, std::byte* scratch) {
  GemmBlock b = whole;
  const size_t element = p.block == p.kernels->block_f64 ? 8 : 4;
  b.a = static_cast<const std::byte*>(whole.a) + size_t(row * whole.k) * element;
  b.b = static_cast<const std::byte*>(whole.b) + size_t(first) * p.panel_bytes;
  b.row0 = row;
  b.rows = rows;
  b.panels = last - first;
  b.column0 = (whole.paired ? first / 2 : first) * p.panel_columns;
  const int64_t end = (whole.paired ? last / 2 : last) * p.panel_columns;
  b.columns = std::min(whole.columns, end) - b.column0;
  b.scratch = scratch;
  return b;
}

void run_blocks(Team team, const GemmBlock& whole, const Plan& p, std::byte* scratch) {
  const int64_t row_blocks = ceil_div(whole.rows, p.block_rows);
  // Chunks are whole groups of panels: one for each thread when the work is short, more when it is long, so
  // that a thread that lost its core can be helped.
  const double work = double(whole.rows) * double(whole.k) * double(p.panels) * p.panel_columns;
  const int64_t wanted = team.threads() * (work > 2e7 ? 6 : (work > 5e6 ? 2 : 1));
  const int64_t group = p.kernels->panels_together[p.tile_rows - 1] * (whole.paired ? 2 : 1);
  const int64_t chunk = std::min(p.panels, ceil_div(ceil_div(p.panels, group) * row_blocks, wanted) * group);
  const int64_t chunks = ceil_div(p.panels, chunk);
  const int64_t tasks = row_blocks * chunks;
  std::atomic<int64_t> next{0};
  team.run(int(std::min<int64_t>(team.threads(), tasks)), [&](int part) {
    for (int64_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) {
      const int64_t row = task / chunks * p.block_rows, first = task % chunks * chunk;
      p.block(part_of(whole, p, row, std::min(p.block_rows, whole.rows - row), first,
                      std::min(p.panels, first + chunk), scratch + size_t(part) * p.kernels->scratch_bytes));
    }
  });
}

void pack_all_a(Team team, const Gemm& g, const Plan& p, const Matrix& a, std::byte* out) {
  const int64_t per_row = g.a.dtype == DType::c64 ? 2 : 1;
  const int64_t tile = p.tile_rows / per_row;
  const int64_t element = p.block == p.kernels->block_f64 ? 8 : 4;
  const int64_t grain = std::max<int64_t>(1, kSerialWork / std::max<int64_t>(1, tile * g.k)) * tile;
  team.parallel_for(g.m, grain, [&](int64_t begin, int64_t end) {
    p.kernels->pack_a(a, begin, end - begin, g.k, p.tile_rows, out + begin * per_row * g.k * element);
  });
}

void pack_all_b(Team team, const Matrix& b, int64_t k, int64_t n, const Plan& p, std::byte* out) {
  team.parallel_for(p.panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i * p.panel_columns;
      p.kernels->pack_b(b, column, std::min<int64_t>(n - column, p.panel_columns), k, p.b_dtype,
                        out + size_t(i) * p.panel_bytes);
    }
  });
}

void check(const Gemm& g) {
  const bool narrow = accumulates_f32(g.a.dtype);
  const DType b = g.packed_b != nullptr ? g.packed_b->dtype() : g.b.dtype;
  RLX_CHECK(narrow ? accumulates_f32(b) && accumulates_f32(g.c_dtype) : b == g.a.dtype && g.c_dtype == b,
            "gemm of ", g.a.dtype, " and ", b, " to ", g.c_dtype);
  RLX_CHECK(narrow || g.epilogue.count == 0, "an epilogue needs f32 accumulation, not ", g.a.dtype);
  if (g.packed_b != nullptr) {
    const GemmKernels& kn = gemm_kernels();
    RLX_CHECK(g.packed_b->k() == g.k && g.packed_b->n() == g.n, "packed ", g.packed_b->k(), "x",
              g.packed_b->n(), " used as ", g.k, "x", g.n);
    RLX_CHECK(g.packed_b->panel() == (b == DType::f64 ? kn.panel_f64 : kn.panel), "packed at another level");
  }
  bool gated = false;
  for (int i = 0; i < g.epilogue.count; ++i) gated |= g.epilogue.steps[i].kind == EpilogueKind::gate;
  RLX_CHECK(gated == (g.packed_b != nullptr && g.packed_b->paired()),
            "gate step and paired matrix go together");
}

}  // namespace

void FreeAligned::operator()(std::byte* p) const { std::free(p); }

AlignedBytes allocate_aligned(size_t bytes) {
  void* p = std::aligned_alloc(64, std::max<size_t>(64, round_up(bytes)));
  if (p == nullptr) throw environment_error("cpu: out of memory, asked for ", bytes, " bytes");
  return AlignedBytes(static_cast<std::byte*>(p));
}

Epilogue& Epilogue::then(const EpilogueStep& step) {
  RLX_CHECK(count < kMaxSteps, "an epilogue has at most ", kMaxSteps, " steps");
  steps[count++] = step;
  return *this;
}

PackedMatrix PackedMatrix::allocate(int64_t k, int64_t n, DType stored, bool paired) {
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
  m.bytes_ = allocate_aligned(m.size_);
  return m;
}

PackedMatrix PackedMatrix::pack(Team team, const Matrix& b, int64_t k, int64_t n, DType stored) {
  RLX_CHECK(accumulates_f32(b.dtype) ? accumulates_f32(stored) : stored == b.dtype, "cannot pack ", b.dtype,
            " as ", stored);
  PackedMatrix m = allocate(k, n, stored, false);
  const Gemm g{.n = n, .k = k, .a = {.dtype = b.dtype}, .packed_b = &m};
  pack_all_b(team, b, k, n, make_plan(g, 1), m.bytes_.get());
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

size_t gemm_workspace(const Gemm& g, int threads) {
  const Plan p = make_plan(g, threads);
  const size_t shared = p.a_bytes + p.b_bytes;
  return (p.own_items ? shared * size_t(threads) : shared) + p.kernels->scratch_bytes * size_t(threads);
}

void gemm(Team team, const Gemm& g, std::byte* workspace) {
  if (g.m == 0 || g.n == 0 || g.batch == 0) return;
  check(g);
  const Plan p = make_plan(g, team.threads());
  const size_t shared = p.a_bytes + p.b_bytes;
  if (p.own_items) {
    std::byte* scratch = workspace + shared * size_t(team.threads());
    std::atomic<int64_t> next{0};
    team.run(int(std::min<int64_t>(team.threads(), g.batch)), [&](int part) {
      const Team alone = team.limited(1);
      std::byte* a = workspace + shared * size_t(part);
      std::byte* b = a + p.a_bytes;
      for (int64_t item; (item = next.fetch_add(1, std::memory_order_relaxed)) < g.batch;) {
        pack_all_a(alone, g, p, shifted(g.a, item * g.a_batch_stride), a);
        pack_all_b(alone, shifted(g.b, item * g.b_batch_stride), g.k, g.n, p, b);
        run_blocks(alone, block_for(g, p, item, a, b), p, scratch + size_t(part) * p.kernels->scratch_bytes);
      }
    });
    return;
  }
  if (p.rows * g.n * std::max<int64_t>(g.k, 1) < kSerialWork) team = team.limited(1);
  std::byte* a = workspace;
  std::byte* scratch = workspace + shared;
  const std::byte* b = g.packed_b != nullptr ? g.packed_b->data() : workspace + p.a_bytes;
  for (int64_t item = 0; item < g.batch; ++item) {
    if (g.packed_b == nullptr && (item == 0 || g.b_batch_stride != 0)) {
      pack_all_b(team, shifted(g.b, item * g.b_batch_stride), g.k, g.n, p, workspace + p.a_bytes);
    }
    if (item == 0 || g.a_batch_stride != 0) {
      pack_all_a(team, g, p, shifted(g.a, item * g.a_batch_stride), a);
    }
    run_blocks(team, block_for(g, p, item, a, b), p, scratch);
  }
}

}  // namespace rlx::cpu
