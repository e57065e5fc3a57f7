// How a graph is compiled.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rlx/passes/precision.h"

namespace rlx {

using passes::PrecisionPolicy;

/// A value that stays on the device between runs: an input and the output that becomes its next value. Both have one type
/// and share memory.
struct StatePair {
  std::string input, output;
};

/// For what device and by what rules a graph is compiled.
struct CompileOptions {
  std::string device = "cpu";  // see device_named()
  int threads = 0;             // 0: all that the process may use
  bool optimise = true;        // run the passes of the pipeline; false builds the graph as it is
  bool fuse = true;            // join elementwise regions; results do not depend on it
  /// A row along the first axis has the bits that it has alone, whatever is computed beside it: long sums and Fourier transforms are then
  /// cut as for a single row. Devices of the host only.
  bool batch_independent = false;
  std::optional<PrecisionPolicy> precision;  // how f32 values are stored; none leaves them
  std::vector<StatePair> states;
  int64_t plans_kept = 16;  // of a graph with symbolic sizes, at least 1; the least recently used goes first
};

}  // namespace rlx
