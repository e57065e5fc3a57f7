// What the compiler decided for one set of sizes, and what it costs: as text for people, as JSON for programs.
#pragma once

#include "rlx/backend/plan.h"
#include "rlx/passes/fuse.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/profile.h"

namespace rlx {

/// Bytes of a compiled graph, by what they are for. Each weight is counted once: as it came, or in the forms that steps read.
struct MemoryUse {
  int64_t inputs = 0, outputs = 0, states = 0;
  int64_t weights = 0;    // values that steps read as they are
  int64_t packed = 0;     // forms that steps read instead
  int64_t constants = 0;  // of the graph
  int64_t arena = 0;      // activations and workspaces of one run
  int64_t live = 0;       // the largest set of them in use at one step

  /// All of it.
  int64_t total() const { return inputs + outputs + states + weights + packed + constants + arena; }
};

/// Bytes of the arena in use at each step of a plan.
std::vector<int64_t> memory_timeline(const backend::Plan&);

/// What a run of these sizes will need, without weights and without running; params count as they are declared. Symbols that the
/// inputs leave open are a user error.
MemoryUse estimate_memory(const ir::Graph&, const std::map<std::string, Shape>& inputs = {},
                          const CompileOptions& = {});

struct Report {
  std::string graph, device;
  int threads = 0;
  backend::Plan plan;
  std::vector<std::string> names;  // of the steps: the node's name, or %id
  std::vector<passes::Remark>
      remarks;  // what was joined, and what was not and why; text and JSON leave out `on_request`
  MemoryUse memory;
  /// Bytes that every run copies to the device and back, also for steps that it leaves to the host; 0 where callers see its memory.
  int64_t sent = 0, fetched = 0;
  std::vector<std::string> prologue;  // kernels that run when weights are set
  // Of each step where a profile was taken: seconds, and the share of what the machine could do.
  std::vector<double> seconds, roofline;
  std::map<std::vector<int>, InsideTimes> inside;  // of steps in bodies, by StepPath

  /// Medians of a profile of the same plan, for the columns of time.
  void add_times(const Profile&);
  /// Steps that the reference rule runs, those in bodies too: exact, slow, on the host.
  std::vector<StepPath> reference_steps() const;

  /// For people: steps, buffers, why kernels declined.
  std::string text() const;
  /// For programs.
  std::string json(int indent = 2) const;
};

}  // namespace rlx
