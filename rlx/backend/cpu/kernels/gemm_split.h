// How the work of a matrix product is cut: rows into tiles, panels of B into chunks, both shared out over the
// threads.
//
// A tile against the panels that one pass covers is a unit of work; it takes a few microseconds. Units have
// an order in which a tile of A stays in L1 for all panels of a chunk, and a chunk of B in L2 for all tiles; a chunk of one
// panel stays in L1 itself, and a block of tiles in L2.
// Every thread has an equal share of neighbouring units, the same at each call, so that its part of B may
// still be in its cache. It takes them in runs, and one that has finished helps the others. Which rows share
// a tile depends on the rows alone, never on threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/pool.h"

namespace rlx::cpu {

/// Threads that share a product out.
inline constexpr int kMaxParts = 64;

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
  int64_t chunk_panels =
      1;                // that stay near together; 1: the tiles of a block pass over one panel, cut along k
  bool paired = false;  // panels come in twos that stay together

  /// Rows shared out evenly over the fewest tiles.
  int tile_rows(int64_t rows) const {
    const int64_t tiles = std::max<int64_t>(1, ceil_div(rows, max_tile_rows));
    return int(std::max<int64_t>(per_row, ceil_div(ceil_div(rows, tiles), per_row) * per_row));
  }
};

/// Whether so many rows that lie row_bytes apart crowd few sets of a first-level cache (64 sets of 8 lines):
/// a walk down a column would then find none of its lines again.
constexpr bool rows_share_sets(int64_t row_bytes, int rows) {
  constexpr int kSets = 64, kWays = 8;
  int lines[kSets] = {};
  for (int i = 0; i < rows; ++i) {
    if (++lines[uint64_t(i * row_bytes) / 64 % kSets] >= kWays) return true;
  }
  return false;
}

/// Rows that a tile may have if it reads A where it lies; 0: A must be packed. Rows that share sets of L1, a
/// page apart and the like, push each other out of its ways. Half as many fit, but read each panel twice as often, which
/// costs more than packing A once there are a few panels.
constexpr int rows_in_place(int64_t row_bytes, int64_t rows, int max_tile_rows, int64_t panels) {
  constexpr int64_t kPanelsOfPacking = 4;
  if (rows == 1) return max_tile_rows;
  if (row_bytes == 0) return 0;
  const auto fit = [&](int most) { return !rows_share_sets(row_bytes, int(std::min<int64_t>(rows, most))); };
  if (fit(max_tile_rows)) return max_tile_rows;
  return panels < kPanelsOfPacking && fit(max_tile_rows / 2) ? max_tile_rows / 2 : 0;
}

/// Panels of so many bytes, with `steps` of k, that a chunk may have. A panel deeper than one cut of the
/// kernels has to itself what stays in the cache.
constexpr int64_t chunk_panels(int64_t panel_bytes, int64_t steps, int64_t depth,
                               int64_t chunk_bytes = 384 << 10) {
  return steps > depth ? 1 : std::clamp<int64_t>(chunk_bytes / std::max<int64_t>(1, panel_bytes), 1, 64);
}

/// Rows of the real product from `row` on, panels [first, last), of one group.
struct BlockTask {
  int64_t group = 0, row = 0, rows = 0;
  int tile_rows = 1;
  int64_t first = 0, last = 0;
};

/// The units of one group, in the order: blocks of tiles, chunks of panels, tiles, panels. There is one block
/// unless a chunk is a single unit: then the tiles of a block pass over it together, cut by cut along k.
struct BlockCut {
  int tile_rows = 1;
  int64_t rows = 0, tiles = 0, block_tiles = 1;
  int64_t most_tiles = 1;                          // of a task: its sums have room for so many
  int64_t unit = 1;                                // panels one pass covers
  int64_t unit_columns = 0, chunk = 1, units = 0;  // of all panels, of a chunk; of the group

  /// The longest task that begins with unit i and ends before unit `end`; i moves behind it.
  BlockTask task(int64_t& i, int64_t end) const {
    const int64_t block = i / (block_tiles * unit_columns), tile0 = block * block_tiles;
    const int64_t height = std::min(block_tiles, tiles - tile0);
    const int64_t inside = i - tile0 * unit_columns, column0 = inside / (height * chunk) * chunk;
    const int64_t width = std::min(chunk, unit_columns - column0), at = inside - column0 * height;
    const int64_t tile = at / width, column = at % width;
    const int64_t down = width == 1 ? std::min({height - tile, end - i, most_tiles}) : 1;
    const int64_t across = width == 1 ? 1 : std::min(width - column, end - i);
    i += down * across;
    const int64_t row = (tile0 + tile) * tile_rows;
    return {.row = row,
            .rows = std::min(rows - row, down * tile_rows),
            .tile_rows = tile_rows,
            .first = (column0 + column) * unit,
            .last = (column0 + column + across) * unit};
  }
};

inline BlockCut cut_rows(const TileShape& s, int64_t rows) {
  BlockCut c{.tile_rows = s.tile_rows(rows), .rows = rows};
  if (rows == 0 || s.panels == 0) return c;
  c.tiles = ceil_div(rows, c.tile_rows);
  c.unit = s.panels_together[c.tile_rows - 1] * (s.paired ? 2 : 1);
  c.unit_columns = ceil_div(s.panels, c.unit);
  const int64_t chunks = ceil_div(c.unit_columns, std::max<int64_t>(1, s.chunk_panels / c.unit));
  c.chunk = c.tiles == 1 ? c.unit_columns : ceil_div(c.unit_columns, chunks);  // a single tile reads B once
  c.most_tiles = std::max<int64_t>(1, s.max_block_rows / c.tile_rows);
  c.block_tiles = c.chunk > 1 ? c.tiles : ceil_div(c.tiles, ceil_div(c.tiles, c.most_tiles));
  c.units = c.tiles * c.unit_columns;
  return c;
}

/// body(part, BlockTask) for all units of all groups.
template <class Body>
void for_each_block(Team team, const TileShape& s, const RowGroups& groups, Body body) {
  // Reading B takes as long as a few rows of arithmetic, so fewer rows cost no less.
  constexpr int64_t kRowsOfReading = 4;
  // A run of 2^21 multiply-adds takes 20 us, and taking it 0.1 us; a share has at least eight.
  constexpr double kRunWork = 2097152;
  const auto cut = [&](int64_t g) {
    return cut_rows(s, s.per_row * (groups.offsets[g + 1] - groups.offsets[g]));
  };
  int64_t units = 0, column = 1;  // column: units that pass over one panel together
  double work = 0;
  for (int64_t g = 0; g < groups.count; ++g) {
    const BlockCut c = cut(g);
    units += c.units;
    column = std::max(column, c.block_tiles);
    if (c.rows > 0)
      work += double(std::max(c.rows, kRowsOfReading)) * double(s.panels) * double(s.panel_work);
  }
  if (units == 0) return;

  struct alignas(64) Share {
    std::atomic<int64_t> next;
    int64_t end;
  } shares[kMaxParts];
  const int parts = int(std::min<int64_t>(std::min(team.threads(), kMaxParts), units));
  for (int i = 0; i < parts; ++i) {
    const Range r = split_range(units, 1, parts, i);
    shares[i].next.store(r.begin, std::memory_order_relaxed);
    shares[i].end = r.end;
  }
  int64_t run = int64_t(kRunWork * double(units) / std::max(work, 1.0));
  if (s.chunk_panels == 1) run = std::max(run, column);
  run = std::clamp<int64_t>(run, 1, std::max<int64_t>(1, units / parts / 8));
  team.run(parts, [&](int part) {
    int64_t g = 0, before = 0;
    BlockCut c = cut(0);
    for (int from = 0; from < parts; ++from) {
      Share& share = shares[(part + from) % parts];
      const int64_t take = from == 0 ? run : 1;
      for (int64_t i; (i = share.next.fetch_add(take, std::memory_order_relaxed)) < share.end;) {
        const int64_t end = std::min(share.end, i + take);
        if (i < before) g = before = 0, c = cut(0);
        while (i < end) {
          while (i >= before + c.units) {
            before += c.units;
            c = cut(++g);
          }
          int64_t at = i - before;
          BlockTask t = c.task(at, end - before < c.units ? end - before : c.units);
          i = before + at;
          t.group = g;
          t.row += s.per_row * groups.offsets[g];
          t.last = std::min(s.panels, t.last);
          body(part, t);
        }
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
