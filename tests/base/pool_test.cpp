#include "rlx/base/pool.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "rlx/base/error.h"

namespace rlx {
namespace {

TEST(Pool, runs_every_part_exactly_once) {
  for (int threads : {1, 2, 3, 5}) {
    Pool pool(threads);
    for (int parts : {0, 1, 2, 3, 7, 100}) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(parts));
      Team(pool).run(parts, [&](int i) { seen[size_t(i)]++; });
      for (auto& s : seen) EXPECT_EQ(s, 1);
    }
  }
}

TEST(Pool, static_split_covers_the_range_with_borders_on_the_grain) {
  for (int64_t count : {0, 1, 5, 16, 17, 1000}) {
    for (int64_t grain : {1, 4, 16}) {
      for (int parts : {1, 2, 3, 8}) {
        int64_t at = 0;
        for (int p = 0; p < parts; ++p) {
          const Range r = split_range(count, grain, parts, p);
          EXPECT_EQ(r.begin, at);
          EXPECT_TRUE(r.end % grain == 0 || r.end == count);
          at = r.end;
        }
        EXPECT_EQ(at, count);
      }
    }
  }
}

TEST(Pool, every_way_of_splitting_covers_each_item_once) {
  Pool pool(3);
  std::vector<std::atomic<int>> seen(37 * 53);
  const auto expect_all = [&](int times) {
    for (auto& s : seen) ASSERT_EQ(s, times);
  };
  Team team(pool);
  team.parallel_for(int64_t(seen.size()), 8, [&](int64_t b, int64_t e) {
    for (; b < e; ++b) seen[size_t(b)]++;
  });
  expect_all(1);
  team.parallel_chunks(int64_t(seen.size()), 10, [&](int64_t b, int64_t e) {
    for (; b < e; ++b) seen[size_t(b)]++;
  });
  expect_all(2);
  team.parallel_tiles(37, 53, 5, 7, [&](int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
    for (int64_t r = r0; r < r1; ++r) {
      for (int64_t c = c0; c < c1; ++c) seen[size_t(r * 53 + c)]++;
    }
  });
  expect_all(3);
}

TEST(Pool, nested_calls_run_inline_with_the_same_split) {
  Pool pool(3);
  std::atomic<int> inner_parts{0}, wrong_thread{0};
  Team(pool).run(3, [&](int) {
    const auto me = std::this_thread::get_id();
    Team(pool).parallel_for(300, 1, [&](int64_t b, int64_t e) {
      inner_parts++;
      if (std::this_thread::get_id() != me || e - b != 100) wrong_thread++;
    });
  });
  EXPECT_EQ(inner_parts, 9);
  EXPECT_EQ(wrong_thread, 0);
}

TEST(Pool, eight_user_threads_may_call_at_once) {
  Pool pool(3);
  std::vector<std::thread> users;
  std::atomic<int64_t> total{0};
  for (int u = 0; u < 8; ++u) {
    users.emplace_back([&] {
      for (int round = 0; round < 300; ++round) {
        std::atomic<int64_t> sum{0};
        Team(pool).parallel_for(1000, 10, [&](int64_t b, int64_t e) {
          for (int64_t i = b; i < e; ++i) sum.fetch_add(i, std::memory_order_relaxed);
        });
        total += sum;
      }
    });
  }
  for (auto& u : users) u.join();
  EXPECT_EQ(total, int64_t(8) * 300 * 499500);
}

TEST(Pool, wakes_sleeping_workers) {
  Pool pool(2);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> count{0};
    Team(pool).run(2, [&](int) { count++; });
    EXPECT_EQ(count, 2);
  }
  // With the caller kept busy, the sleeping worker has to do its own part.
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  std::atomic<bool> other_done{false};
  Team(pool).run(2, [&](int part) {
    if (part == 1) other_done = true;
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (part == 0 && !other_done && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  });
  EXPECT_TRUE(other_done);
}

TEST(Pool, throws_the_error_of_the_lowest_part_and_stays_usable) {
  Pool pool(3);
  for (int round = 0; round < 20; ++round) {
    try {
      Team(pool).run(3, [&](int part) {
        if (part > 0) throw invalid("part ", part);
      });
      FAIL() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.message(), "part 1");
    }
  }
  std::atomic<int> count{0};
  Team(pool).run(3, [&](int) { count++; });
  EXPECT_EQ(count, 3);
}

TEST(Pool, a_team_limits_the_threads_of_a_call) {
  Pool pool(3);
  EXPECT_EQ(Team(pool, 2).threads(), 2);
  EXPECT_EQ(Team(pool, 9).threads(), 3);
  std::atomic<int> calls{0};
  Team(pool, 2).parallel_for(100, 1, [&](int64_t, int64_t) { calls++; });
  EXPECT_EQ(calls, 2);
}

#if !defined(__SANITIZE_THREAD__)  // forking a threaded process is outside what tsan supports
TEST(Pool, survives_a_fork) {
  Pool pool(3);
  Team(pool).run(3, [](int) {});
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    std::atomic<int> sum{0};
    for (int round = 0; round < 100; ++round) Team(pool).run(3, [&](int part) { sum += part; });
    _exit(sum == 300 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  std::atomic<int> sum{0};
  Team(pool).run(3, [&](int part) { sum += part; });
  EXPECT_EQ(sum, 3);
}
#endif

TEST(Pool, takes_its_size_from_the_environment_and_refuses_nonsense) {
  setenv("RLX_THREADS", "3", 1);
  EXPECT_EQ(Pool().threads(), 3);
  for (const char* bad : {"0", "-1", "two", "100000"}) {
    setenv("RLX_THREADS", bad, 1);
    EXPECT_THROW(Pool(), Error) << bad;
  }
  unsetenv("RLX_THREADS");
  EXPECT_GE(Pool().threads(), 1);
  EXPECT_THROW(Pool(-2), Error);
  EXPECT_THROW(Pool(5000), Error);
}

}  // namespace
}  // namespace rlx
