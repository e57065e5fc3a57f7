// The plan of a compiled graph as C++: what `rlx build` writes between the beginning and the end of a source.
#pragma once

#include <string>

#include "apps/rlx/build_values.h"
#include "rlx/runtime/compiled_graph.h"

namespace rlx::cli {

struct BuiltPlan {
  std::string graph;     // its name
  std::string families;  // rlx::cpu::add_matmul, rlx::cpu::add_regions
  std::string text;      // functions: bodies, add_buffers, one for each step, add_steps
  std::string summary;   // "12 steps, arena 4096 bytes"
  int64_t arena_bytes = 0;
  int threads = 0;
};

/// Of a graph with known sizes and all its weights, compiled for the CPU. Steps that only the reference rule runs are a user error that
/// names each of them.
BuiltPlan built_plan(CompiledGraph&, DataFile& data);

}  // namespace rlx::cli
