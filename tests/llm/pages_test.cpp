// Pages and the prefixes that hold them, without a model.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "rlx/llm/page_pool.h"
#include "rlx/llm/prefix_cache.h"

namespace rlx::llm {
namespace {

using Ids = std::vector<TokenId>;

Ids counted(int n, int first = 0) {
  Ids out(static_cast<size_t>(n));
  std::iota(out.begin(), out.end(), first);
  return out;
}

TEST(PagePool, GivesOutEachPageOnce) {
  PagePool pool(5);
  EXPECT_EQ(pool.size(), 4);
  std::vector<bool> seen(5);
  for (int i = 0; i < 4; ++i) {
    const int32_t page = pool.take();
    EXPECT_GT(page, 0);
    EXPECT_FALSE(seen[size_t(page)]);
    seen[size_t(page)] = true;
  }
  EXPECT_EQ(pool.free(), 0);
  pool.share(3);
  pool.release(3);
  EXPECT_EQ(pool.free(), 0);
  pool.release(3);
  EXPECT_EQ(pool.free(), 1);
  EXPECT_EQ(pool.take(), 3);
}

class Prefixes : public testing::Test {
 protected:
  static constexpr int64_t kPage = 4;

  // As a text does: reads what is not held yet, keeps it as prefix, and ends.
  int64_t read(PrefixCache& cache, const Ids& text) {
    std::vector<PagePair> pages = cache.find(text, int64_t(text.size()) - 1);
    const auto found = int64_t(pages.size());
    while (int64_t(pages.size() + 1) * kPage <= int64_t(text.size())) {
      pages.push_back({.all = pool.take(), .window = window ? windows.take() : 0});
      cache.add(text, int64_t(pages.size() - 1) * kPage, pages.back());
    }
    for (const PagePair& p : pages) {
      pool.release(p.all);
      if (p.window != 0) windows.release(p.window);
    }
    return found;
  }

  PagePool pool{20}, windows{20};
  bool window = false;
};

TEST_F(Prefixes, SharesWholePagesOfTheSameText) {
  PrefixCache cache(pool, windows, kPage, 0);
  EXPECT_EQ(read(cache, counted(10)), 0);
  EXPECT_EQ(cache.pages(), 2);
  EXPECT_EQ(read(cache, counted(10)), 2);
  EXPECT_EQ(read(cache, counted(8)), 1);  // the last token is always read
  Ids other = counted(12);
  other[1] = 77;  // the second page has the same tokens, behind others
  EXPECT_EQ(read(cache, other), 0);
  EXPECT_EQ(cache.pages(), 5);
  EXPECT_EQ(pool.free(), 19 - 5);
  EXPECT_EQ(cache.unused(), 5);
  cache.clear();
  EXPECT_EQ(pool.free(), 19);
}

TEST_F(Prefixes, LetsGoTheOldestAndNothingInUse) {
  PrefixCache cache(pool, windows, kPage, 0);
  read(cache, counted(9));
  read(cache, counted(9, 100));
  const std::vector<PagePair> used = cache.find(counted(9), 8);
  ASSERT_EQ(used.size(), 2u);
  EXPECT_EQ(cache.unused(), 2);
  EXPECT_TRUE(cache.drop_one());
  EXPECT_TRUE(cache.drop_one());
  EXPECT_FALSE(cache.drop_one());
  EXPECT_EQ(cache.find(counted(9, 100), 8).size(), 0u);
  for (const PagePair& p : used) pool.release(p.all);
  EXPECT_TRUE(cache.drop_one());
  const auto left = cache.find(counted(9), 8);  // the end goes first
  EXPECT_EQ(left.size(), 1u);
  pool.release(left[0].all);
}

TEST_F(Prefixes, WindowsNeedOnlyThePagesTheyReach) {
  window = true;
  PrefixCache cache(pool, windows, kPage, 5);
  read(cache, counted(17));
  ASSERT_EQ(cache.pages(), 4);
  // Behind 16 tokens a window of 5 sees tokens 12 .. 15: page 3 alone.
  auto found = cache.find(counted(17), 16);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[2].window, 0);
  EXPECT_NE(found[3].window, 0);
  for (const PagePair& p : found) {
    pool.release(p.all);
    if (p.window != 0) windows.release(p.window);
  }
  EXPECT_EQ(cache.unused_window(), 4);
  while (cache.drop_one_window()) {
  }
  EXPECT_EQ(windows.free(), 19);
  EXPECT_EQ(cache.find(counted(17), 16).size(), 0u);  // no window has what it sees
}

}  // namespace
}  // namespace rlx::llm
