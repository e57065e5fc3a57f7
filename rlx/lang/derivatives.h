// Derivatives and batching of rlx::Graph; what each means stands with the functions of the same name in
// rlx/transform/transform.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rlx/lang/graph.h"
#include "rlx/transform/transform.h"

namespace rlx {

using transform::GradOptions;
using transform::SavePolicy;
using transform::VmapOptions;

/// Gradients with respect to leaves by name, named "d_<name>".
inline Graph grad(const Graph& g, const std::vector<std::string>& wrt, const GradOptions& options = {}) {
  return transform::grad(g, wrt, options);
}
/// The outputs of `g`, then the gradients. With several outputs, GradOptions{.loss = "loss"} says which one is
/// differentiated; the others are carried along.
inline Graph value_and_grad(const Graph& g, const std::vector<std::string>& wrt,
                            const GradOptions& options = {}) {
  return transform::value_and_grad(g, wrt, options);
}
/// As value_and_grad, with the cotangents as inputs: "d_output" for a graph with one output, else "d_<output>".
inline Graph grad_with_loss(const Graph& g, const std::vector<std::string>& wrt) {
  return transform::grad_with_loss(g, wrt);
}
/// Outputs, then their tangents named "d_<output>", for tangents given as inputs "tangent_<name>".
inline Graph jvp(const Graph& g, const std::vector<std::string>& wrt) { return transform::jvp(g, wrt); }
/// Hessian-vector product of a scalar: value, gradients, products; directions are inputs "tangent_<name>".
inline Graph hvp(const Graph& g, const std::vector<std::string>& wrt) { return transform::hvp(g, wrt); }
/// The Jacobian of the only output by one leaf, of shape output ++ leaf; forward mode.
inline Graph jacfwd(const Graph& g, const std::string& wrt) { return transform::jacfwd(g, wrt); }
/// The same by reverse mode.
inline Graph jacrev(const Graph& g, const std::string& wrt) { return transform::jacrev(g, wrt); }
/// Second derivatives of a scalar, of shape leaf ++ leaf.
inline Graph hessian(const Graph& g, const std::string& wrt) { return transform::hessian(g, wrt); }
/// The graph for many examples at once: VmapOptions{.in_axes = {{"x", 0}}, .size = Dim::batch()}.
inline Graph vmap(const Graph& g, const VmapOptions& options) { return transform::vmap(g, options); }
/// Composite operators that reverse mode has to see through, expanded; grad does this itself.
inline Graph prepare_graph_for_ad(const Graph& g) { return transform::prepare_graph_for_ad(g); }

/// jvp in two parts, so that many tangents share one forward run.
struct Linearized {
  Graph forward;  // leaves -> outputs, then residuals
  Graph linear;   // residuals and tangents -> tangents
  Shapes residuals;
};
/// Forward and linear part of jvp.
inline Linearized linearize(const Graph& g, const std::vector<std::string>& wrt) {
  transform::Linearized l = transform::linearize(g, wrt);
  return {std::move(l.forward), std::move(l.linear), std::move(l.residuals)};
}

/// Forward and backward as two graphs, under a policy for what is kept in between.
inline transform::Partition grad_partitioned(const Graph& g, const std::vector<std::string>& wrt,
                                             SavePolicy policy, std::optional<int64_t> budget = {}) {
  return transform::grad_partitioned(g, wrt, policy, budget);
}

}  // namespace rlx
