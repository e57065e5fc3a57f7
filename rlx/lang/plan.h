// The plain plan of a module at LIR stage: a slot of its own for every buffer, in the order of the graph. It
// states the bytes a run needs and where everything lies; the compiler's planner shares slots.
#pragma once

#include <string>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx {

struct Plan {
  static constexpr int64_t kAlignment = 64;

  struct Slot {
    ir::Value value;
    int64_t offset = 0, bytes = 0;
  };
  /// What a caller sees: a named tensor and its place.
  struct Port {
    std::string name;
    ir::Value value;
    Shape shape;
    int64_t offset = 0, bytes = 0;
  };

  int64_t arena_bytes = 0;
  std::vector<Slot> slots;           // by offset
  std::vector<ir::NodeId> schedule;  // nodes that compute, in order
  std::vector<Port> inputs, params, outputs;

  const Slot& slot(ir::Value) const;
  std::string text() const;
};

/// Symbolic sizes are a user error that names the symbols to bind.
Plan make_plan(const ir::Graph&);

}  // namespace rlx
