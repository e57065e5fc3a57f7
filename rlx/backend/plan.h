// The plan of a program (LIR): its buffers, where every value lies, and the steps in the order they run.
#pragma once

#include "rlx/backend/backend.h"

namespace rlx::backend {

enum class BufferKind : uint8_t {
  leaf,        // an input, a weight or a state, given by the caller
  output,      // memory of the caller
  constant,    // contents of the graph
  activation,  // in the arena, between the step that makes it and the last that reads it
  workspace,   // in the arena, during one step
};
std::string_view buffer_kind_name(BufferKind);

struct Plan {
  struct Buffer {
    BufferKind kind;
    std::string name;
    int64_t bytes = 0;
    int index = 0;            // of the leaf, output or constant
    int64_t offset = 0;       // in the arena
    int first = 0, last = 0;  // steps between which it is in use, both included
  };
  /// Where a value lies: its first element at byte `offset` of a buffer, then by strides.
  struct Place {
    int buffer = -1;
    int64_t offset = 0;
    Shape shape;
    Layout layout;  // without offset
  };
  struct Step {
    ir::NodeId node = ir::kNoNode;  // kNoNode: a copy that the builder added
    std::string name;               // of the node; %5 where it has none
    std::string op, kernel, note;
    std::string origin;  // the user's line
    std::vector<Place> in, out;
    std::vector<bool> packed;  // operands that the step keeps in a form of its own
    int workspace = -1;        // its buffer
    ir::Cost cost;
    std::vector<Declined> declined;
    std::vector<Plan> bodies;  // of control flow
  };

  std::string graph;  // its name
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  int64_t arena_bytes = 0;  // of activations and workspaces: what a run needs beside the caller's memory
  int64_t live_bytes = 0;   // the largest set in use at one step: a lower bound of the former

  /// One line a buffer and a step; see docs/design/005.
  std::string text() const;
};

/// What is wrong with a plan; empty when nothing is. Simulates it: buffers in use at the same time do not overlap, places
/// lie inside their buffers, every value read was written before and not overwritten since.
std::vector<std::string> verify_plan(const Plan&);

}  // namespace rlx::backend
