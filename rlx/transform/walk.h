// What the transforms share: maps from values, scopes that record where derivative nodes come from, and
// the expansion of composite operators that have no rule of their own.
#pragma once

#include <functional>

#include "rlx/ir/graph.h"
#include "rlx/ir/inline.h"
#include "rlx/ir/leaves.h"

namespace rlx::transform {

// The words of the IR that transforms are written in.
using ir::AttrsRef;
using ir::BodyTransforms;
using ir::Expr;
using ir::Exprs;
using ir::Graph;
using ir::GraphRef;
using ir::Input;
using ir::Jvp;
using ir::kNoNode;
using ir::Lower;
using ir::NamedLeaf;
using ir::Node;
using ir::NodeId;
using ir::OpDef;
using ir::Origin;
using ir::OriginRef;
using ir::Param;
using ir::Use;
using ir::Value;
using ir::ValueMap;
using ir::Values;
using ir::Vjp;
using ir::Vmap;
using ir::zeros_like;

/// Nodes made while it lives carry the forward node's origin and a note such as "vjp of %7 softmax".
class RuleScope {
 public:
  RuleScope(Graph& g, const Node& n, std::string_view rule);

  /// What `rule` makes. An error of it that names no place gets the node's.
  template <class Rule>
  auto run(Rule rule) const {
    try {
      return rule();
    } catch (Error& e) {
      name_place(e);
      throw;
    }
  }

 private:
  void name_place(Error& e) const;

  const Graph& graph_;
  ir::OriginScope scope_;
};

/// `t` in the type a rule promised, which may have been read before sizes became one. Sizes that are equal by an
/// equation without a solution (n*k and p*q) are equal to the graph but not by type: a reshape says so. Any
/// other difference is a wrong rule, named by `what`.
Expr as_type(Expr t, const Shape& promised, std::string_view what);

/// Emits the decomposition of a composite node and returns its results.
Exprs emit_decomposition(Graph& g, const Node& n);

/// Replaces each composite node for which `wants` holds by its decomposition, and again inside it; then
/// erases what is dead.
void expand_composites(Graph& g, const std::function<bool(const Node&)>& wants);

/// The leaf with this name, which must exist; `who` starts the error.
NodeId leaf_named(const Graph& g, const std::string& name, std::string_view who);
/// The same as a value, which must be differentiable.
Value differentiable_leaf(const Graph& g, const std::string& name, std::string_view who);

/// `name`, or with "_2", "_3", ... behind it the first that is not taken: derivatives of derivatives add
/// inputs and outputs of one name.
std::string free_leaf_name(const Graph& g, const std::string& name);
std::string free_name(const std::vector<std::string>& taken, const std::string& name);

const BodyTransforms& body_transforms();

}  // namespace rlx::transform
