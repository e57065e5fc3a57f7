// What it costs to hand work to a second thread and to get it back.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <vector>

#include "bench/bench.h"
#include "rlx/base/pool.h"

namespace {

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

int main(int argc, char** argv) {
  using namespace rlx;
  using namespace rlx::bench;
  if (!wanted(argc, argv, "pool") || threads() < 2) return 0;
  const Team team(default_pool(), 2);
  // Part 0 does not return before part 1 has begun on the worker: without a hand-over there is no result.
  std::atomic<int64_t> begun{-1};
  int64_t missed = 0;
  const auto join = [&](int64_t round) {
    team.run(2, [&](int part) {
      if (part == 1) return begun.store(round, std::memory_order_release);
      for (int spin = 0; spin < 100000; ++spin) {
        if (begun.load(std::memory_order_acquire) == round) return;
        relax();
      }
      ++missed;
    });
  };
  constexpr int64_t kRounds = 200, kJoins = 1000;
  std::vector<double> times;
  for (int64_t round = 0; round < kRounds; ++round) {
    const double start = seconds();
    for (int64_t i = 0; i < kJoins; ++i) join(round * kJoins + i);
    times.push_back((seconds() - start) / double(kJoins));
  }
  std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
  report({.name = "pool fork-join with a hand-over, 2 threads",
          .value = times[size_t(kRounds / 2)] * 1e6,
          .unit = "us",
          .goal = "<= 0.3 us"});
  report(
      {.name = "pool joins without a hand-over", .value = double(missed), .unit = "of 200000", .goal = "0"});
}
