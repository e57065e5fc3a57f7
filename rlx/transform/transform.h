// Derivatives and batching of graphs. Every function takes a graph and returns a new one; they nest in any
// order.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rlx/ir/graph.h"
#include "rlx/transform/partition.h"

namespace rlx::transform {

/// What is differentiated, and what else the new graph gives.
struct GradOptions {
  /// Keep the outputs of the graph in front of the gradients.
  bool with_value = false;
  /// The output to differentiate, a real scalar, seeded with 1. The other outputs are carried along and get no
  /// cotangent. Empty: all of them, as below.
  std::string loss = {};
  /// One output that is a real scalar is seeded with 1. Otherwise, or when this is set, each differentiable
  /// output (with `loss`, that one) gets an input for its cotangent: "d_output" for a single output, else "d_"
  /// and the output's name.
  bool cotangent_inputs = false;
};

/// Gradients of the outputs with respect to inputs and params by name, in that order, named "d_<name>".
/// Inputs that do not matter get zeros.
Graph grad(const Graph& g, const std::vector<std::string>& wrt, GradOptions options = {});
/// The outputs of `g` first, then the gradients.
Graph value_and_grad(const Graph& g, const std::vector<std::string>& wrt, GradOptions options = {});
/// As value_and_grad, with the cotangents as inputs: "d_output" for a graph with one output, of any shape, else
/// "d_" and the output's name. Feeding 1 for a scalar loss gives what value_and_grad gives.
inline Graph grad_with_loss(const Graph& g, const std::vector<std::string>& wrt) {
  return value_and_grad(g, wrt, {.cotangent_inputs = true});
}

/// A joint graph cut into a forward and a backward graph under a policy for what is kept in between.
Partition grad_partitioned(const Graph& g, const std::vector<std::string>& wrt, SavePolicy policy,
                           std::optional<int64_t> budget = std::nullopt);

/// Outputs, then their tangents named "d_<output>"; adds an input "tangent_<name>" for each name in `wrt`.
Graph jvp(const Graph& g, const std::vector<std::string>& wrt);

/// jvp in two parts, so that many tangents share one forward run. What a loop computes on the way to its
/// tangents stays inside the loop and runs in both parts.
struct Linearized {
  Graph forward;  // leaves -> outputs, then residuals named "residual_0", ...
  Graph linear;   // residuals, then an input "tangent_<name>" for each name -> tangents as in jvp
  Shapes residuals;
};
/// Both parts, for these leaves.
Linearized linearize(const Graph& g, const std::vector<std::string>& wrt);

/// Hessian-vector product of a scalar: [value, gradients..., H v...]; adds "tangent_<name>" inputs.
Graph hvp(const Graph& g, const std::vector<std::string>& wrt);

/// The Jacobian of the only output with respect to one leaf, of shape output ++ leaf; real numbers only.
Graph jacfwd(const Graph& g, const std::string& wrt);
/// As jacfwd, a row at a time: for more inputs than outputs.
Graph jacrev(const Graph& g, const std::string& wrt);
/// Second derivatives of a scalar, of shape leaf ++ leaf.
Graph hessian(const Graph& g, const std::string& wrt);

/// Which axis of each leaf and output counts examples.
struct VmapOptions {
  /// Leaf name -> its batch axis. Leaves not listed, or listed with nothing, are shared.
  std::map<std::string, std::optional<int>> in_axes;
  /// Batch axis of each output; one entry serves all. Nothing: the output must not depend on the batch, and
  /// stays as it is.
  std::vector<std::optional<int>> out_axes = {0};
  /// Number of examples; may be a symbol. It must be given: the leaves of `g` are those of one example.
  std::optional<Dim> size = std::nullopt;
};

/// The graph on many examples at once, as if it ran on each.
Graph vmap(const Graph& g, const VmapOptions& options);

/// Expands every composite operator that reverse mode has to see through. grad does this itself.
Graph prepare_graph_for_ad(const Graph& g);

}  // namespace rlx::transform
