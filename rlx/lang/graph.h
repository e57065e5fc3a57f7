// rlx::Graph: the graph people build by hand. A method per operator, the text, JSON and file forms, and the
// way to modules. It adds no data to ir::Graph, so the two convert into each other freely.
//
//   Graph g("qkv");
//   const Value x = g.input("x", Shape(DType::f32, {4, 15, 384}));
//   const Value w = g.param("w", Shape(DType::f32, {384, 1152}));
//   g.set_outputs({g.mm(x, w)});
#pragma once

#include <functional>
#include <iosfwd>

#include "rlx/ir/interpreter.h"
#include "rlx/lang/builders/scan_backward.h"

namespace rlx {

class GraphModule;
struct Hir;
struct Lir;

using ir::NamedLiterals;
using ops::Activation;
using ops::BinaryOp;
using ops::CompareOp;
using ops::ReduceOp;

class Graph : public ScanBackwardBuilder {
 public:
  using ScanBackwardBuilder::ScanBackwardBuilder;

  /// Nodes in topological order, to be edited in place; `verify` finds what an edit broke.
  std::vector<ir::Node*> nodes_mut();
  Graph bind(const DimBinding& bindings) const { return ir::Graph::bind(bindings); }

  // Forms that read back to an equal graph.
  std::string to_text() const;
  static Graph parse(std::string_view text);
  std::string to_json(int indent = -1) const;
  static Graph from_json(std::string_view text);
  /// A safetensors file; see rlx/lang/graph_file.h. `weights` are values of params.
  void save(const std::string& path, const NamedLiterals& weights = {}) const;
  static Graph load(const std::string& path);

  // Stages; see rlx/lang/module.h.
  /// A module at HIR stage whose output is what `build` returns.
  static GraphModule define(const std::string& name, const std::function<Value(GraphModule&)>& build);
  static GraphModule hir(const std::string& name);
  GraphModule module() const;
  Graph to_mir() const { return *this; }
  /// Blocks expanded; what cannot be expanded is a LowerError.
  static Graph from_hir(const Hir&);
  static Graph from_lir(const Lir&);
  static Graph from(const ir::Graph& mir) { return mir; }

  /// The annotated dump: counts of operators, every node with its tags and origin.
  std::string inspect() const;
  static std::string inspect_module(const GraphModule&);

  /// Runs by the operators' reference rules.
  NamedLiterals interpret(const NamedLiterals& leaves) const { return ir::interpret(*this, leaves); }
};

std::ostream& operator<<(std::ostream&, const Graph&);

}  // namespace rlx
