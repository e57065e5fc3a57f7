#include "rlx/base/pool_watch.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "rlx/base/pool.h"

namespace rlx {
namespace {

struct Seen final : PoolWatch {
  void job(std::span<const Part> parts) override { jobs.emplace_back(parts.begin(), parts.end()); }
  std::vector<std::vector<Part>> jobs;
};

// The second part waits for the first, so that a worker has to take it.
void run_on_two_threads(const Team& team) {
  std::atomic<int> begun{0};
  team.run(2, [&](int) {
    ++begun;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (begun.load() < 2 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  });
}

TEST(PoolWatch, is_told_who_ran_each_part_and_when) {
  Pool pool(2);
  Seen seen;
  const auto begin = PoolWatch::Clock::now();
  {
    const WatchedPool watched(&seen);
    run_on_two_threads(Team(pool));
  }
  const auto end = PoolWatch::Clock::now();
  ASSERT_EQ(seen.jobs.size(), 1u);
  ASSERT_EQ(seen.jobs[0].size(), 2u);
  EXPECT_NE(seen.jobs[0][0].thread, seen.jobs[0][1].thread);
  for (const PoolWatch::Part& p : seen.jobs[0]) {
    EXPECT_LE(begin, p.begin);
    EXPECT_LE(p.begin, p.end);
    EXPECT_LE(p.end, end);
  }
}

TEST(PoolWatch, hears_of_jobs_of_its_own_thread_while_it_lives) {
  Pool pool(2);
  Seen seen;
  Team(pool).run(2, [](int) {});
  {
    const WatchedPool watched(&seen);
    std::thread([&] { Team(pool).run(2, [](int) {}); }).join();
    Team(pool).run(2, [&](int) { Team(pool).run(2, [](int) {}); });  // what is inside of a part belongs to it
    {
      const WatchedPool not_now(nullptr);
      Team(pool).run(2, [](int) {});
    }
  }
  Team(pool).run(2, [](int) {});
  EXPECT_EQ(seen.jobs.size(), 1u);
}

TEST(PoolWatch, lets_the_error_of_a_part_through) {
  Pool pool(2);
  Seen seen;
  const WatchedPool watched(&seen);
  EXPECT_THROW(Team(pool).run(2,
                              [](int i) {
                                if (i == 1) throw std::runtime_error("part");
                              }),
               std::runtime_error);
  run_on_two_threads(Team(pool));
  EXPECT_EQ(seen.jobs.size(), 1u);
}

}  // namespace
}  // namespace rlx
