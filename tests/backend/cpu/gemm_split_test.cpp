#include "rlx/backend/cpu/kernels/gemm_split.h"

#include <gtest/gtest.h>

#include <mutex>
#include <vector>

namespace rlx::cpu {
namespace {

constexpr int kTogether[14] = {8, 7, 4, 3, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1};

// Counts how often each row meets each panel, and whether tasks keep to what the kernels expect.
void check_cover(Pool& pool, const TileShape& s, const std::vector<int64_t>& offsets) {
  const RowGroups groups{int64_t(offsets.size()) - 1, offsets.data()};
  std::vector<int> met(size_t(s.per_row * groups.rows() * s.panels));
  std::mutex mutex;
  for_each_block(Team(pool), s, groups, [&](int part, const BlockTask& t) {
    const std::lock_guard lock(mutex);
    const int64_t first = s.per_row * offsets[size_t(t.group)],
                  end = s.per_row * offsets[size_t(t.group) + 1];
    EXPECT_LT(part, pool.threads());
    EXPECT_EQ(t.tile_rows, s.tile_rows(end - first));
    EXPECT_EQ((t.row - first) % t.tile_rows, 0);
    EXPECT_TRUE(t.row >= first && t.rows > 0 && t.row + t.rows <= end);
    EXPECT_TRUE(t.first < t.last && t.last <= s.panels);
    EXPECT_TRUE(t.rows <= t.tile_rows || t.rows * (t.last - t.first) <= 2 * s.max_block_rows);
    EXPECT_TRUE(!s.paired || t.first % 2 == 0);
    for (int64_t i = t.row; i < t.row + t.rows; ++i) {
      for (int64_t p = t.first; p < t.last; ++p) ++met[size_t(i * s.panels + p)];
    }
  });
  for (const int count : met) ASSERT_EQ(count, 1);
}

TEST(GemmSplit, every_row_meets_every_panel_once) {
  Pool pools[3] = {Pool(1), Pool(2), Pool(3)};
  for (Pool& pool : pools) {
    for (int64_t rows : {1, 3, 14, 15, 60, 128, 230, 500}) {
      for (int64_t panels : {1, 2, 7, 48, 50}) {
        for (int64_t chunk : {1, 2, 8, 64}) {
          SCOPED_TRACE(testing::Message() << rows << " rows, " << panels << " panels, chunk " << chunk
                                          << ", threads " << pool.threads());
          TileShape s{.max_tile_rows = 14,
                      .max_block_rows = 224,
                      .panels_together = kTogether,
                      .panels = panels,
                      .panel_work = 384 * 32,
                      .chunk_panels = chunk};
          s.max_tile_rows = 7;
          check_cover(pool, s, {0, rows});
          s.max_tile_rows = 14;
          check_cover(pool, s, {0, rows});
          check_cover(pool, s, {0, rows, rows, rows + 1, 2 * rows + 1, 2 * rows + 1, 2 * rows + 30});
          s.paired = panels % 2 == 0;
          check_cover(pool, s, {0, rows});
          s.paired = false, s.per_row = 2;
          check_cover(pool, s, {0, rows});
        }
      }
    }
  }
}

TEST(GemmSplit, nothing_is_done_without_rows_or_panels) {
  Pool pool(2);
  const TileShape s{.max_tile_rows = 14, .max_block_rows = 224, .panels_together = kTogether, .panels = 5};
  check_cover(pool, s, {0, 0});
  check_cover(pool, s, {0, 0, 0, 0});
  check_cover(pool, {.max_tile_rows = 14, .max_block_rows = 224, .panels_together = kTogether}, {0, 20});
}

TEST(GemmSplit, rows_a_page_apart_share_sets_of_the_cache) {
  EXPECT_TRUE(rows_share_sets(4096, 14));
  EXPECT_TRUE(rows_share_sets(8192 + 4, 14));
  EXPECT_TRUE(rows_share_sets(-4096, 14));
  EXPECT_FALSE(rows_share_sets(4096, 7));
  EXPECT_FALSE(rows_share_sets(2048, 14));
  EXPECT_FALSE(rows_share_sets(1536, 14));
  EXPECT_FALSE(rows_share_sets(4096 + 64, 14));
  EXPECT_EQ(rows_in_place(1536, 60, 14, 8), 14);
  EXPECT_EQ(rows_in_place(4096, 60, 14, 2), 7);
  EXPECT_EQ(rows_in_place(4096, 60, 14, 8), 0);  // packing is worth it
  EXPECT_EQ(rows_in_place(4096, 5, 14, 8), 14);  // as many as there are
  EXPECT_EQ(rows_in_place(4096, 60, 6, 8), 6);
  EXPECT_EQ(rows_in_place(4096, 60, 16, 2), 0);
  EXPECT_EQ(rows_in_place(0, 1, 14, 2), 14);
  EXPECT_EQ(rows_in_place(0, 2, 14, 2), 0);
}

}  // namespace
}  // namespace rlx::cpu
