// Small frame of the benchmark programs: measured machine limits, interleaved timing, one JSON line a result.
//
// A line: {"name", "value", "unit", "limit", "share", "peer", "peer_name", "ratio", "goal"}; bench/run.py
// prints them as a table. `share` is value / limit, `ratio` value / peer, both larger is better.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace rlx::bench {

struct Limits {
  double fma_gflops;  // f32 multiply-adds, all threads
  double vnni_gops;   // u8 x i8 dot products, all threads; 0 without the instruction
  double read_gbs;    // sum over a buffer larger than every cache
  double copy_gbs;    // read + write bytes of a large copy with streaming stores
};

/// Threads the benchmarks use: RLX_THREADS, or all cores.
int threads();
/// Measured once per process on that many threads.
const Limits& limits();

/// One plain pass of all threads over so many bytes: what a kernel that reads them once can reach at most.
void read_once(const void* data, size_t bytes);

/// Whether `name` was asked for on the command line (no argument: everything).
bool wanted(int argc, char** argv, const std::string& name);

/// Seconds per call of each function: rounds of all of them in turn, the median of the rounds. A round
/// repeats a function for at least `round_seconds`.
std::vector<double> interleaved(const std::vector<std::function<void()>>& functions,
                                double round_seconds = 0.02, int rounds = 9);

struct Result {
  std::string name;
  double value = 0;
  std::string unit;
  double limit = 0;  // in the same unit; 0: none
  double peer = 0;   // in the same unit; 0: none
  std::string peer_name;
  std::string goal;  // in words: ">= 75 % of limit"
};
void report(const Result&);

}  // namespace rlx::bench
