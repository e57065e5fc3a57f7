// Two devices side by side on one graph: where do their numbers part?
//
// The graph is compiled for the second device. Every pass is checked by running the graph before and behind it on the
// first; then every node of the compiled graph runs on both devices, on the same operands, which the first made. So a
// difference is found where it arises, not where it has grown visible. In loops and branches that is the first node of the first step whose
// results differ when both devices get the same carried values.
//
// A node alone has dense operands in memory of their own; in a program they may be views, and memory is used again. So at
// last the outputs of the whole program are compared with what the nodes made one at a time.
#pragma once

#include <functional>
#include <optional>

#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/deviation.h"

namespace rlx {

/// A static graph on values for all of its leaves; results in the order of its outputs.
using RunGraph = std::function<Literals(const ir::Graph&, const NamedLiterals& leaves)>;

/// Which devices, and how far apart is too far.
struct LockstepOptions {
  std::string a = "ref", b = "cpu";
  std::optional<double> tolerance;  // default: by type
  CompileOptions compile;           // of the second; its device is `b`
  RunGraph run_b;                   // how whole graphs run on the second; by default they are compiled for it
};

/// The first place where they part.
struct Parting {
  std::string
      where;  // "pass simplify", a node and its operator, in a body "r scan, step 17: n tanh", or "the whole program"
  std::string text;  // what was compared and how far it is apart
  ir::Graph
      graph;  // a graph that shows it: one node, the graph in front of the pass, or the least that shows it as a whole
  NamedLiterals values;
};

/// How every node fared, and where numbers parted.
struct LockstepResult {
  /// The largest error of a node that ran alone.
  struct NodeError {
    std::string node;
    double error = 0;
  };
  std::vector<NodeError> nodes;  // in the order they ran
  double whole = 0;              // largest error of an output of the whole program
  std::optional<Parting> parting;
};

/// A static graph on values for all of its leaves. Without a tolerance, that of the least exact type on the way. Values of integers and booleans must be equal.
LockstepResult run_in_lockstep(const ir::Graph&, const NamedLiterals& leaves, const LockstepOptions& = {});

/// Compiled by these options and run.
Literals run_compiled(const ir::Graph&, const NamedLiterals& leaves, const CompileOptions&);

/// Whether an output of the graph, compiled for both devices, differs by more than the tolerance of its type and more than `least`.
/// What the second refuses to run and the first does differs too.
bool outputs_part(const ir::Graph&, const NamedLiterals& leaves, const LockstepOptions&, double least = 0);

/// The values of all nodes by the reference rules.
std::vector<Literals> values_of_nodes(const ir::Graph&, const NamedLiterals& leaves);  // by node id

}  // namespace rlx
