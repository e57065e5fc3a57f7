#include "rlx/backend/cpu/kernels/gemm_int8.h"

#include <cstring>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE_VNNI(GemmInt8Kernels, gemm_int8_kernels)

namespace {

struct Plan {
  const GemmInt8Kernels* kernels;
  TileShape tiles;
  int64_t words;  // of one row of A
  bool row_sums;
  size_t a_bytes, sums_bytes;
  bool in_place;  // A is read where it lies
};

Plan make_plan(const GemmInt8& g) {
  const GemmInt8Kernels& kn = gemm_int8_kernels();
  Plan p{.kernels = &kn};
  p.words = ceil_div(g.k, kn.group);
  // A multiply-add of codes takes a quarter of the time of one in f32.
  p.tiles = {.max_tile_rows = kn.max_tile_rows,
             .max_block_rows = kn.max_block_rows,
             .panels_together = kn.panels_together,
             .panels = ceil_div(g.n, kn.panel),
             .panel_work = p.words * kn.panel,
             .chunk_panels = chunk_panels(p.words * kn.group * kn.panel, p.words, kn.depth)};
  for (int64_t i = 0; i < std::max<int64_t>(1, g.groups.count); ++i) p.row_sums |= g.b[i].zeros() != nullptr;
  // A word of four codes can be read from A itself: u8, neighbours, whole words.
  const bool words = kn.group == 4 && g.a.dtype == DType::u8 && g.a.column_stride == 1 && g.k % 4 == 0;
  const int rows =
      words && !p.row_sums ? rows_in_place(g.a.row_stride, g.m, p.tiles.max_tile_rows, p.tiles.panels) : 0;
  if (rows > 0) p.in_place = true, p.tiles.max_tile_rows = rows;
  p.a_bytes = round_up(size_t(g.m * p.words) * 4);
  p.sums_bytes = p.row_sums ? round_up(size_t(g.m) * 4) : 0;
  return p;
}

void check(const GemmInt8& g) {
  const GemmInt8Kernels& kn = gemm_int8_kernels();
  RLX_CHECK(g.a.dtype == DType::u8 || g.a.dtype == DType::i8, "gemm_int8 of ", g.a.dtype);
  for (int64_t i = 0; i < std::max<int64_t>(1, g.groups.count); ++i) {
    RLX_CHECK(g.b[i].k() == g.k && g.b[i].n() == g.n, "packed ", g.b[i].k(), "x", g.b[i].n(), " used as ",
              g.k, "x", g.n);
    RLX_CHECK(g.b[i].panel() == kn.panel && g.b[i].group() == kn.group, "packed at another level");
  }
  if (g.groups.count > 0) check_groups(g.groups, g.m);
  const bool real = g.c_dtype == DType::f32 || g.c_dtype == DType::f16 || g.c_dtype == DType::bf16;
  RLX_CHECK(real || g.c_dtype == DType::i32 || g.c_dtype == DType::i8 || g.c_dtype == DType::u8,
            "gemm_int8 to ", g.c_dtype);
  RLX_CHECK(real || g.epilogue.count == 0, "an epilogue needs a real result, not ", g.c_dtype);
  for (int i = 0; i < g.epilogue.count; ++i) {
    RLX_CHECK(g.epilogue.steps[i].kind != EpilogueKind::gate, "codes have no paired matrix for a gate step");
  }
}

}  // namespace

// Panels of codes, then numbers for the columns: their sums and, where there are any, their zero points.
PackedInt8 PackedInt8::sized(int64_t k, int64_t n, bool has_zeros) {
  const GemmInt8Kernels& kn = gemm_int8_kernels();
  PackedInt8 p;
  p.k_ = k;
  p.n_ = n;
  p.panel_ = kn.panel;
  p.group_ = kn.group;
  const int64_t panels = ceil_div(n, kn.panel);
  const size_t panel_bytes = size_t(ceil_div(k, kn.group) * kn.group * kn.panel);
  p.size_ = round_up(size_t(panels) * panel_bytes) +
            round_up(size_t(panels * kn.panel) * sizeof(int32_t)) * (has_zeros ? 2 : 1);
  return p;
}

void PackedInt8::allocate(bool has_zeros, std::byte* lent) {
  bytes_ = PackedMemory(size_, lent);
  const size_t column_bytes = round_up(size_t(ceil_div(n_, panel_) * panel_) * sizeof(int32_t));
  const size_t columns = column_bytes * (has_zeros ? 2 : 1), codes = size_ - columns;
  std::byte* end = bytes_.get() + size_;
  // What lies between the parts is kept in files with the rest.
  const size_t gap = std::min<size_t>(codes, 64);
  std::memset(end - columns - gap, 0, columns + gap);
  if (has_zeros) zeros_ = reinterpret_cast<int32_t*>(end -= column_bytes);
  centred_ = reinterpret_cast<int32_t*>(end - column_bytes);
}

PackedInt8 PackedInt8::from_bytes(int64_t k, int64_t n, bool has_zeros, std::span<const std::byte> bytes) {
  PackedInt8 p = sized(k, n, has_zeros);
  RLX_CHECK(bytes.size() == p.size_, "packed codes have ", p.size_, " bytes, these are ", bytes.size());
  p.allocate(has_zeros);
  std::memcpy(p.bytes_.get(), bytes.data(), bytes.size());
  return p;
}

PackedInt8 PackedInt8::pack(Team team, const Matrix& b, int64_t k, int64_t n, int32_t zero,
                            const int32_t* zeros, std::byte* lent) {
  RLX_CHECK(b.dtype == DType::i8, "cannot pack ", b.dtype, " as codes; i8");
  const GemmInt8Kernels& kn = gemm_int8_kernels();
  bool any = zero != 0;
  for (int64_t j = 0; zeros != nullptr && j < n; ++j) any |= zeros[j] != 0;
  const int64_t panels = ceil_div(n, kn.panel);
  const size_t panel_bytes = size_t(ceil_div(k, kn.group) * kn.group * kn.panel);
  PackedInt8 p = sized(k, n, any);
  p.allocate(any, lent);
  team.parallel_for(panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i * kn.panel;
      kn.pack_b(b, column, std::min<int64_t>(n - column, kn.panel), k,
                p.bytes_.get() + size_t(i) * panel_bytes, p.centred_ + column);
      if (!any) continue;
      for (int64_t j = column; j < column + kn.panel; ++j) {
        p.zeros_[j] = j >= n ? 0 : (zeros != nullptr ? zeros[j] : zero);
        p.centred_[j] = int32_t(p.centred_[j] - k * p.zeros_[j]);
      }
    }
  });
  return p;
}

size_t gemm_int8_workspace(const GemmInt8& g, int threads) {
  const Plan p = make_plan(g);
  return p.a_bytes + p.sums_bytes + p.kernels->scratch_bytes * size_t(threads);
}

void gemm_int8(Team team, const GemmInt8& g, std::byte* workspace) {
  if (g.m == 0 || g.n == 0) return;
  check(g);
  const Plan p = make_plan(g);
  const int64_t offsets[2] = {0, g.m};
  const RowGroups groups = g.groups.count > 0 ? g.groups : RowGroups{1, offsets};
  int32_t* row_sums = p.row_sums ? reinterpret_cast<int32_t*>(workspace + p.a_bytes) : nullptr;
  std::byte* scratch = workspace + p.a_bytes + p.sums_bytes;
  if (g.m * p.tiles.panels * std::max<int64_t>(p.tiles.panel_work, 1) < kSerialWork) team = team.limited(1);
  if (!p.in_place) {
    for_each_tile_run(team, p.tiles, groups, p.words, [&](int64_t row, int64_t rows, int tile_rows) {
      p.kernels->pack_a(g.a, row, rows, g.k, tile_rows, workspace + row * p.words * 4,
                        row_sums != nullptr ? row_sums + row : nullptr);
    });
  }
  const std::byte* a = p.in_place ? static_cast<const std::byte*>(g.a.data) : workspace;
  const int64_t row_bytes = p.in_place ? g.a.row_stride : p.words * 4;
  for_each_block(team, p.tiles, groups, [&](int part, const BlockTask& t) {
    p.kernels->block({.product = &g,
                      .b = g.b + t.group,
                      .group = t.group,
                      .a = a + t.row * row_bytes,
                      .a_row_bytes = p.in_place && g.m > 1 ? row_bytes : 0,
                      .row_sums = row_sums != nullptr ? row_sums + t.row : nullptr,
                      .row0 = t.row,
                      .rows = t.rows,
                      .tile_rows = t.tile_rows,
                      .first = t.first,
                      .last = t.last,
                      .scratch = scratch + size_t(part) * p.kernels->scratch_bytes});
  });
}

}  // namespace rlx::cpu
