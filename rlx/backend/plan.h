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

/// Part of a buffer, or of other memory.
struct ByteRange {
  int64_t begin = 0, end = 0;
  bool is_empty() const { return begin >= end; }
  bool meets(const ByteRange& o) const {
    return begin < o.end && o.begin < end && !is_empty() && !o.is_empty();
  }
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

struct Plan {
  struct Buffer {
    BufferKind kind;
    std::string name;
    int64_t bytes = 0;
    int index = 0;            // of the leaf, output or constant
    int64_t offset = 0;       // in the arena
    int first = 0, last = 0;  // steps between which it is in use, both included
    int state = -1;           // of an output: the leaf in whose memory it lies; -1: memory of its own
  };
  /// Where a value lies: its first element at byte `offset` of a buffer, then by strides.
  struct Place {
    int buffer = -1;
    int64_t offset = 0;
    Shape shape;
    Layout layout;  // without offset
    /// Tells apart what lies in one buffer one after the other, as results that take the place of an operand: the number that the buffer of
    /// the value had before; -1: it is this one. A view has the number of what it looks at.
    int value = -1;

    /// What it touches of its buffer.
    ByteRange extent() const;
  };
  struct Step {
    ir::NodeId node = ir::kNoNode;  // kNoNode: a copy that the builder added
    std::string name;               // of the node; %5 where it has none
    std::string op, kernel, note;
    std::string origin;  // the user's line
    std::vector<Place> in, out;
    std::vector<bool> packed;       // operands that the step keeps in a form of its own
    std::vector<InPlace> in_place;  // results that it may write over an operand
    int workspace = -1;             // its buffer
    ir::Cost cost;
    std::vector<Declined> declined;
    std::vector<Plan> bodies;         // of control flow
    bool by_rule = false;             // the reference rule computes it on the host: exact, slow
    std::vector<SourceText> sources;  // of its kernels, where the device compiles them
  };

  std::string graph;  // its name
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  int64_t arena_bytes = 0;  // of activations and workspaces: what a run needs beside the caller's memory
  int64_t live_bytes = 0;   // the largest set in use at one step: a lower bound of the former

  /// A line for each buffer, two for each step (rlx/backend/plan_text.cpp); `parse` reads it back. What kernels declined is in reports alone.
  std::string text() const;
  /// The plan that such a text says; its text is the same again. What cannot be read is a user error with the number of its line;
  /// whether the plan can run, verify_plan tells.
  static Plan parse(std::string_view text);
};

/// Whether the step, or one in its bodies, is computed by the reference rule.
bool runs_by_rule(const Plan::Step&);

/// What is wrong with a plan; empty when nothing is. Buffers in use at the same time do not overlap and begin at multiples of 64 bytes,
/// places lie inside their buffers, and arena and live set are what they are said to be. Then runs it on numbers: every byte that a step
/// reads still holds the value that it means, whether in the arena, in an output or in a state that is written where it is read; a result
/// lies on an operand only where the step may write it there; and every output is there at the end.
std::vector<std::string> verify_plan(const Plan&);

}  // namespace rlx::backend
