// The judge of numbers: runs any graph by the operators' reference rules, one node after another.
//
// A composite operator without a rule of its own is evaluated through its decomposition with floats widened
// to f64 and rounded once at the end, so an answer carries one rounding per operator of the user's graph.
#pragma once

#include <map>
#include <span>
#include <string>

#include "rlx/ir/graph.h"
#include "rlx/ir/named_literals.h"

namespace rlx::ir {

class Interpreter {
 public:
  /// What runs took, over the life of the interpreter.
  struct Stats {
    int64_t live_bytes = 0;  // results held now, leaves not counted
    int64_t peak_bytes = 0;
    int64_t nodes_run = 0;  // bodies counted each time they run
    std::map<std::string, int64_t> runs_of_op;
  };

  /// Runs a graph on values for leaves() in order. Symbols are bound from the values' shapes (rlx/ir/call.h).
  Literals run(const Graph& g, std::span<const Literal> leaves);
  /// One node on values of its operands.
  Literals run_node(const Node& n, std::span<const Literal> in);
  /// What runs took so far.
  const Stats& stats() const { return stats_; }

 private:
  struct Expansion {
    AttrsRef attrs;  // keeps the key alive
    Shapes types;
    Graph graph;
  };

  Literals run_static(const Graph& g, std::span<const Literal> leaves);
  Literals run_composite(const Node& n, std::span<const Literal> in);
  void held(int64_t bytes);

  Stats stats_;
  std::multimap<std::pair<const OpDef*, const void*>, Expansion> expansions_;
};

/// Runs a graph on named values and returns the outputs by name. Every wrong or missing name, shape and
/// dtype is told in one error.
NamedLiterals interpret(const Graph& g, const NamedLiterals& leaves);
Literals interpret(const Graph& g, std::span<const Literal> leaves);

/// Checks named values against the leaves and returns them in order of leaves().
Literals arrange_leaves(const Graph& g, const NamedLiterals& values);

}  // namespace rlx::ir
