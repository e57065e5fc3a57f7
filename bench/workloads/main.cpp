//   bench_workloads [NAME...]              everything, without peers
//   bench_workloads --alone [NAME...]      what has no peer
//   bench_workloads --serve NAME [FILE]    rounds on demand: reads seconds, a line each, and answers seconds a call
#include <chrono>
#include <cstdio>
#include <iostream>

#include "bench/bench.h"
#include "bench/workloads/workload.h"
#include "rlx/base/error.h"

namespace rlx::bench {
namespace {

std::vector<Workload> all() {
  std::vector<Workload> out;
  for (const auto& list :
       {encoder_workloads(), recurrence_workloads(), language_workloads(), image_workloads()})
    out.insert(out.end(), list.begin(), list.end());
  return out;
}

double seconds_a_call(const std::function<void()>& f, double for_seconds) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  int64_t calls = 0;
  for (;;) {
    f();
    ++calls;
    const double passed = std::chrono::duration<double>(Clock::now() - begin).count();
    if (passed >= for_seconds) return passed / double(calls);
  }
}

void serve(const std::string& name, const std::string& file) {
  for (const Workload& w : all()) {
    if (w.name != name) continue;
    const auto f = w.make(file);
    f();
    std::cout << "ready" << std::endl;
    for (double seconds; std::cin >> seconds;) std::cout << seconds_a_call(f, seconds) << std::endl;
    return;
  }
  throw invalid("bench: there is no workload '", name, "'");
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  using namespace rlx::bench;  // NOLINT
  try {
    if (argc > 2 && std::string(argv[1]) == "--serve") {
      serve(argv[2], argc > 3 ? argv[3] : "");
      return 0;
    }
    const bool alone = argc > 1 && std::string(argv[1]) == "--alone";
    if (alone) --argc, ++argv;
    report_overheads(argc, argv);
    if (alone) return 0;
    for (const Workload& w : all()) {
      if (w.from_file || !wanted(argc, argv, w.name)) continue;
      report({.name = w.name, .value = 1 / interleaved({w.make("")}, 0.3, 7)[0], .unit = "1/s"});
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
