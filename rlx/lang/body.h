// Bodies of loops and branches, written as functions of tensors.
//
// While a body is built, tensors of the graphs around it may be used inside: each becomes an operand of the loop
// or branch and a leaf of the body, once. So a lambda simply captures what it needs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "rlx/lang/graph.h"
#include "rlx/lang/tensor.h"

namespace rlx {

/// A body under construction. Scopes nest as the C++ scopes do, one stack per thread.
class BodyScope {
 public:
  /// `parent` is the graph that the loop or branch will stand in.
  BodyScope(std::string name, ir::Graph& parent);
  ~BodyScope();
  BodyScope(const BodyScope&) = delete;
  BodyScope& operator=(const BodyScope&) = delete;

  Graph& graph() { return graph_; }
  const std::string& name() const { return graph_.name(); }
  Tensor argument(const std::string& name, const Shape& shape);
  /// The leaf that stands for a tensor of the parent; made when it is first asked for.
  Tensor capture(const Tensor& outer);
  /// The tensors of the parent that were captured, and the leaves that stand for them.
  const Tensors& captured() const { return outer_; }
  const Tensors& leaves_of_captured() const { return inner_; }
  /// Captures what another body of the same operator did, in its order.
  void capture_all(const Tensors& outer);

  /// The tensor as this body sees it: its own, or captured through all graphs in between. A tensor of an
  /// unrelated graph stays what it is.
  Tensor localize(const Tensor& t);
  void set_outputs(const Tensors& outputs);

  /// The scope whose graph this is, among those open on this thread; null where there is none.
  static BodyScope* of(const ir::Graph& g);
  /// The graph in which an operator on these tensors belongs: the innermost body any of them is from.
  static ir::Graph& home(std::span<const Tensor> operands);
  /// The graph in which a loop or branch on these tensors belongs: the body being built, if they are seen from it.
  static ir::Graph& home_of_control(std::span<const Tensor> operands);

 private:
  bool sees(const ir::Graph& g) const;  // it is this body's graph or one around it

  Graph graph_;
  ir::Graph& parent_;
  BodyScope* before_;  // the scope that was innermost
  Tensors outer_, inner_;
};

}  // namespace rlx
