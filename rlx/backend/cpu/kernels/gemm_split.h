// How the work of a matrix product is cut: rows into tiles and blocks, panels of B into chunks, both shared
// out over the threads.
//
// A block of rows against a chunk of panels is one task. Every thread has a share of neighbouring tasks, the
// same at each call, so that its part of B may still be in its cache; one that has finished helps the others.
// Tasks are small, so that the threads end together. Which rows share a tile depends on the rows alone,
// never on threads.
#pragma once

#include <algorithm>
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
  int64_t group = 0, row = 0, rows = 0;
  int tile_rows = 1;
  int64_t first = 0, last = 0;
};

/// How one group is cut: blocks of rows, their panels into chunks, and where that is not enough the tiles of
/// a block into pieces. Tasks in order go through the pieces of a chunk first, so that its panels stay in
/// cache.
struct BlockCut {
  int tile_rows = 1;
  int64_t rows = 0, block_rows = 1, chunk = 1, chunks = 0, pieces = 1, tasks = 0;

  /// Row and panels of task i, the row counted from the first of the group; `last` may lie beyond the panels.
  BlockTask task(int64_t i) const {
    const int64_t chunk_index = i / pieces % chunks, row = i / pieces / chunks * block_rows;
    const Range r = split_range(std::min(block_rows, rows - row), tile_rows, int(pieces), int(i % pieces));
    return {.row = row + r.begin,
            .rows = r.end - r.begin,
            .tile_rows = tile_rows,
            .first = chunk_index * chunk,
            .last = (chunk_index + 1) * chunk};
  }
};

/// `wanted`: about how many tasks to make of these rows.
inline BlockCut cut_rows(const TileShape& s, int64_t rows, int64_t wanted) {
  BlockCut c{.tile_rows = s.tile_rows(rows), .rows = rows};
  if (rows == 0 || s.panels == 0) return c;
  const int64_t tiles = ceil_div(rows, c.tile_rows);
  const int64_t row_blocks = ceil_div(tiles, s.max_block_rows / c.tile_rows);
  const int64_t block_tiles = ceil_div(tiles, row_blocks);
  c.block_rows = block_tiles * c.tile_rows;
  const int64_t unit = s.panels_together[c.tile_rows - 1] * (s.paired ? 2 : 1);
  const int64_t units = ceil_div(s.panels, unit);
  c.chunk = ceil_div(units, std::clamp<int64_t>(wanted / row_blocks, 1, units)) * unit;
  c.chunks = ceil_div(s.panels, c.chunk);
  c.pieces = std::clamp<int64_t>(wanted / (row_blocks * c.chunks), 1, block_tiles);
  c.tasks = ceil_div(tiles, block_tiles) * c.chunks * c.pieces;
  return c;
}

/// body(part, BlockTask) for all blocks of all groups.
template <class Body>
void for_each_block(Team team, const TileShape& s, const RowGroups& groups, Body body) {
  // Reading B takes as long as a few rows of arithmetic, so fewer rows cost no less.
  constexpr int64_t kRowsOfReading = 4;
  // 2^17 multiply-adds take 1 us, and taking a task 10 ns.
  constexpr double kTaskWork = 131072, kMostTasks = 64;
  const auto rows_of = [&](int64_t g) { return s.per_row * (groups.offsets[g + 1] - groups.offsets[g]); };
  const auto cost_of = [&](int64_t g) {
    return rows_of(g) == 0 ? 0.0 : double(std::max(rows_of(g), kRowsOfReading));
  };
  double cost = 0;
  for (int64_t g = 0; g < groups.count; ++g) cost += cost_of(g);
  if (cost == 0) return;
  const double share = cost * double(s.panels) * double(s.panel_work) / team.threads() / kTaskWork;
  const double wanted = team.threads() * std::clamp(share, 1.0, kMostTasks);
  const auto cut = [&](int64_t g) {
    return cut_rows(s, rows_of(g), std::max<int64_t>(1, int64_t(wanted * cost_of(g) / cost + 0.5)));
  };
  int64_t tasks = 0;
  for (int64_t g = 0; g < groups.count; ++g) tasks += cut(g).tasks;

  constexpr int kMaxParts = 64;
  struct alignas(64) Share {
    std::atomic<int64_t> next;
    int64_t end;
  } shares[kMaxParts];
  const int parts = int(std::min<int64_t>(std::min(team.threads(), kMaxParts), tasks));
  for (int i = 0; i < parts; ++i) {
    const Range r = split_range(tasks, 1, parts, i);
    shares[i].next.store(r.begin, std::memory_order_relaxed);
    shares[i].end = r.end;
  }
  team.run(parts, [&](int part) {
    int64_t g = 0, before = 0;
    BlockCut c = cut(0);
    for (int from = 0; from < parts; ++from) {
      Share& mine = shares[(part + from) % parts];
      for (int64_t i; (i = mine.next.fetch_add(1, std::memory_order_relaxed)) < mine.end;) {
        if (i < before) g = before = 0, c = cut(0);
        while (i >= before + c.tasks) {
          before += c.tasks;
          c = cut(++g);
        }
        BlockTask t = c.task(i - before);
        if (t.rows == 0) continue;
        t.group = g;
        t.row += s.per_row * groups.offsets[g];
        t.last = std::min(s.panels, t.last);
        body(part, t);
      }
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
