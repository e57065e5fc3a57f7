// How the work of a matrix product is cut: rows into tiles and blocks, panels of B into chunks, both shared
// out over the threads.
//
// A block of rows against a chunk of panels is one task. Threads take tasks in order as they become free, so
// that a thread that lost its core is helped; tasks are small against the whole and even among themselves, so
// that the threads end together. Which rows share a tile depends on the rows alone, never on threads.
#pragma once

#include <atomic>
#include <cstdint>

#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/pool.h"

namespace rlx::cpu {

/// Fewer multiply-adds than this take less time than waking another thread.
inline constexpr int64_t kSerialWork = 16384;

/// Rows that share one B: rows [offsets[g], offsets[g + 1]) of A use matrix g. A plain product is one group.
struct RowGroups {
  int64_t count = 0;
  const int64_t* offsets = nullptr;  // [count + 1], ascending from 0
  int64_t rows() const { return offsets[count]; }
};

/// What the level and the operands say about a product.
struct TileShape {
  int max_tile_rows = 1;
  int per_row = 1;  // rows of the real product for one row of A; 2 for complex numbers
  int64_t max_block_rows = 0;
  const int* panels_together = nullptr;  // [max_tile_rows]
  int64_t panels = 0;
  int64_t panel_work = 0;  // multiply-adds of one row and one panel
  bool paired = false;     // panels come in twos that stay together

  /// Rows shared out evenly over the fewest tiles.
  int tile_rows(int64_t rows) const {
    const int64_t tiles = std::max<int64_t>(1, ceil_div(rows, max_tile_rows));
    return int(std::max<int64_t>(per_row, ceil_div(ceil_div(rows, tiles), per_row) * per_row));
  }
};

/// Rows of the real product from `row` on, panels [first, last), of one group.
struct BlockTask {
  int64_t group, row, rows;
  int tile_rows;
  int64_t first, last;
};

/// How one group is cut.
struct BlockCut {
  int tile_rows = 1;
  int64_t rows = 0, block_rows = 1, chunk = 1, chunks = 0, tasks = 0;
};

/// `share`: about how many tasks are wanted of these rows.
inline BlockCut cut_rows(const TileShape& s, int64_t rows, double share) {
  BlockCut c{.tile_rows = s.tile_rows(rows), .rows = rows};
  if (rows == 0 || s.panels == 0) return c;
  const int64_t most = s.max_block_rows / c.tile_rows * c.tile_rows;
  const int64_t tiles = ceil_div(rows, c.tile_rows), row_blocks = ceil_div(rows, most);
  c.block_rows = ceil_div(tiles, row_blocks) * c.tile_rows;
  const int64_t unit = s.panels_together[c.tile_rows - 1] * (s.paired ? 2 : 1);
  const int64_t units = ceil_div(s.panels, unit);
  const int64_t wanted = std::max<int64_t>(1, std::min(units, int64_t(share) / row_blocks));
  c.chunk = ceil_div(units, wanted) * unit;
  c.chunks = ceil_div(s.panels, c.chunk);
  c.tasks = ceil_div(rows, c.block_rows) * c.chunks;
  return c;
}

/// body(part, BlockTask) for all blocks of all groups.
template <class Body>
void for_each_block(Team team, const TileShape& s, const RowGroups& groups, Body body) {
  // Reading B takes as long as a few rows of arithmetic, so fewer rows cost no less.
  constexpr int64_t kRowsOfReading = 4;
  const auto rows_of = [&](int64_t g) { return s.per_row * (groups.offsets[g + 1] - groups.offsets[g]); };
  double cost = 0;
  for (int64_t g = 0; g < groups.count; ++g) {
    if (rows_of(g) > 0) cost += double(std::max(rows_of(g), kRowsOfReading));
  }
  if (cost == 0) return;
  // A task of 2^19 multiply-adds takes 10 us, a hundred times as long as taking it.
  const double work = cost * double(s.panels) * double(s.panel_work);
  const double wanted = team.threads() * std::min(64.0, std::max(1.0, work / team.threads() / 524288));
  const auto cut = [&](int64_t g) {
    return cut_rows(s, rows_of(g), wanted * double(std::max(rows_of(g), kRowsOfReading)) / cost + 0.5);
  };
  int64_t tasks = 0;
  for (int64_t g = 0; g < groups.count; ++g) tasks += cut(g).tasks;
  std::atomic<int64_t> next{0};
  team.run(int(std::min<int64_t>(team.threads(), tasks)), [&](int part) {
    int64_t g = 0, before = 0;
    BlockCut c = cut(0);
    for (int64_t task; (task = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) {
      while (task >= before + c.tasks) {
        before += c.tasks;
        c = cut(++g);
      }
      const int64_t row = (task - before) / c.chunks * c.block_rows,
                    first = (task - before) % c.chunks * c.chunk;
      body(part, BlockTask{.group = g,
                           .row = s.per_row * groups.offsets[g] + row,
                           .rows = std::min(c.block_rows, c.rows - row),
                           .tile_rows = c.tile_rows,
                           .first = first,
                           .last = std::min(s.panels, first + c.chunk)});
    }
  });
}

/// body(row, rows, tile_rows) over whole tiles of all groups, rows in those of A; for packing.
template <class Body>
void for_each_tile_run(Team team, const TileShape& s, const RowGroups& groups, int64_t k, Body body) {
  const auto tile_of = [&](int64_t g) {
    return s.tile_rows(s.per_row * (groups.offsets[g + 1] - groups.offsets[g])) / s.per_row;
  };
  int64_t tiles = 0;
  for (int64_t g = 0; g < groups.count; ++g)
    tiles += ceil_div(groups.offsets[g + 1] - groups.offsets[g], tile_of(g));
  const int64_t grain = std::max<int64_t>(1, kSerialWork / std::max<int64_t>(1, s.max_tile_rows * k));
  team.parallel_for(tiles, grain, [&](int64_t begin, int64_t end) {
    int64_t first = 0;
    for (int64_t g = 0; g < groups.count && first < end; ++g) {
      const int64_t row0 = groups.offsets[g], rows = groups.offsets[g + 1] - row0, tile = tile_of(g);
      const int64_t count = ceil_div(rows, tile);
      const int64_t from = std::max<int64_t>(begin - first, 0), to = std::min(end - first, count);
      if (from < to) {
        body(row0 + from * tile, std::min(rows, to * tile) - from * tile, int(tile) * s.per_row);
      }
      first += count;
    }
  });
}

}  // namespace rlx::cpu
