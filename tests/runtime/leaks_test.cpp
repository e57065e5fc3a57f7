// Programs that come and go leave nothing behind: bytes of the heap after each round of other random programs. Runs for
// two seconds, or for as many as RLX_LEAK_SECONDS says.
#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <cstdlib>
#include <fstream>

#include "rlx/runtime/compiled_graph.h"
#include "rlx/transform/transform.h"
#include "tests/support/graphs.h"
#include "tests/support/random_network.h"
#include "tests/support/random_program.h"

namespace rlx {
namespace {

// Programs, their gradients and networks with weights, compiled with and without fusion, each run twice.
void round_of_programs(uint64_t seed) {
  for (uint64_t i = 0; i < 8; ++i, ++seed) {
    const test::RandomProgram p(seed, 12);
    NamedLiterals leaves;
    const Literals values = p.leaves();
    size_t leaf = 0;
    for (const ir::NodeId id : p.graph().leaves()) leaves.emplace(p.graph().node(id).name, values[leaf++]);
    ir::Graph scalar = p.graph();
    scalar.set_outputs({ops::reduce_sum(ir::Expr{&scalar, scalar.outputs()[0]}, {})});
    const ir::Graph grad = transform::value_and_grad(scalar, {"x0", "x1", "x2"});
    for (const bool fuse : {false, true}) {
      CompiledGraph f = compile(grad, {}, {.fuse = fuse});
      for (int run = 0; run < 2; ++run) f.run(leaves);
    }
    const test::RandomNetwork n(seed, 12);
    CompiledGraph f = compile(n.graph(), n.weights());
    for (int run = 0; run < 2; ++run) f.run(n.inputs());
    try {
      f.run({});
    } catch (const Error&) {
    }
  }
}

int64_t heap_bytes() {
  malloc_trim(0);
  const struct mallinfo2 m = mallinfo2();
  return int64_t(m.uordblks + m.hblkhd);
}

int64_t resident_bytes() {
  int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * 4096;
}

TEST(Programs, that_come_and_go_leave_nothing_behind) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "skipped: a sanitizer keeps what is freed for a while; it looks for leaks itself";
#endif
  const char* asked = std::getenv("RLX_LEAK_SECONDS");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(asked ? std::atol(asked) : 2);
  uint64_t seed = 50'000;
  for (int warm = 0; warm < 4; ++warm, seed += 8) round_of_programs(seed);
  const int64_t heap = heap_bytes(), resident = resident_bytes();
  int rounds = 0;
  do {
    round_of_programs(seed);
    seed += 8;
    ++rounds;
  } while (std::chrono::steady_clock::now() < end);
  // What grows is the largest size that each thread has seen: less and less with the rounds.
  EXPECT_LE(heap_bytes() - heap, 128 << 10) << rounds << " rounds";
  EXPECT_LE(resident_bytes() - resident, 16 << 20) << rounds << " rounds";
  RecordProperty("rounds", rounds);
}

}  // namespace
}  // namespace rlx
