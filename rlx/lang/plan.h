// The plain plan of a module at LIR stage: a slot of its own for every buffer, in the order of the graph. It
// states the bytes a run needs and where everything lies; the compiler's planner shares slots.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "rlx/ir/module.h"

namespace rlx {

struct Plan {
  static constexpr int64_t kAlignment = 64;

  /// Where a value lies in the arena.
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

  /// The slot of a value; one that has none is a user error.
  const Slot& slot(ir::Value) const;
  /// The plan for people: slots, ports, bytes in all.
  std::string text() const;
  /// As a text holds it: arena(bytes=, align=), slot(value, offset=, bytes=) for each, step(node) in order.
  std::vector<ir::PlanStatement> statements() const;
};

/// Symbolic sizes are a user error that names the symbols to bind.
Plan make_plan(const ir::Graph&);
/// The plan that these statements describe; what does not fit the graph is a user error.
Plan read_plan(const ir::Graph&, std::span<const ir::PlanStatement>);

}  // namespace rlx
