// Two devices side by side on one graph: where do their numbers part?
//
// The graph is compiled for the second device. Every pass is checked by running the graph before and behind it on the
// first; then every node of the compiled graph runs on both devices, on the same operands, which the first made. So a
// difference is found where it arises, not where it has grown visible.
#pragma once

#include <optional>

#include "rlx/runtime/compiled_graph.h"

namespace rlx {

/// How far apart results of one type may lie, relative to 1 + the largest finite magnitude of the expected tensor.
double default_tolerance(DType);

struct Deviation {
  double error =
      0;  // largest |a - b| / (1 + max |a|); infinite where one is NaN or infinite and the other is not
  int64_t element = 0;
  double a = 0, b = 0;
};
/// Of two literals of one type.
Deviation deviation(const Literal& a, const Literal& b);

struct LockstepOptions {
  std::string a = "ref", b = "cpu";
  std::optional<double> tolerance;  // default: by type
  CompileOptions compile;           // of the second; its device is `b`
};

/// The first place where they part.
struct Parting {
  std::string where;  // "pass simplify", or a node and its operator
  std::string text;   // what was compared and how far it is apart
  ir::Graph graph;    // a graph that shows it: one node, or the graph in front of the pass
  NamedLiterals values;
};

struct LockstepResult {
  struct NodeError {
    std::string node;
    double error = 0;
  };
  std::vector<NodeError> nodes;  // in the order they ran
  std::optional<Parting> parting;
};

/// A static graph on values for all of its leaves. Values of integers and booleans must be equal.
LockstepResult run_in_lockstep(const ir::Graph&, const NamedLiterals& leaves, const LockstepOptions& = {});

/// The values of all nodes by the reference rules.
std::vector<Literals> values_of_nodes(const ir::Graph&, const NamedLiterals& leaves);  // by node id

}  // namespace rlx
