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
#include "rlx/lang/builders/attention.h"
#include "rlx/lang/builders/backward.h"
#include "rlx/lang/builders/control.h"
#include "rlx/lang/builders/conv.h"
#include "rlx/lang/builders/elementwise.h"
#include "rlx/lang/builders/fft.h"
#include "rlx/lang/builders/leaf.h"
#include "rlx/lang/builders/linear.h"
#include "rlx/lang/builders/norm.h"
#include "rlx/lang/builders/quant.h"
#include "rlx/lang/builders/random.h"
#include "rlx/lang/builders/reduce.h"
#include "rlx/lang/builders/scan_backward.h"
#include "rlx/lang/builders/sequence.h"
#include "rlx/lang/builders/shape.h"
#include "rlx/lang/builders/splat.h"
#include "rlx/ops/table.h"

namespace rlx {

class GraphModule;
struct Hir;
struct Lir;

using ir::NamedLiterals;
using ops::Activation;
using ops::BinaryOp;
using ops::CompareOp;
using ops::ReduceOp;

/// A graph with a method for every operator.
class Graph : public LeafBuilder,
              public ElementwiseBuilder,
              public ReduceBuilder,
              public ShapeBuilder,
              public LinearBuilder,
              public NormBuilder,
              public AttentionBuilder,
              public ConvBuilder,
              public QuantBuilder,
              public FftBuilder,
              public SequenceBuilder,
              public ControlBuilder,
              public RandomBuilder,
              public BackwardBuilder,
              public SplatBuilder,
              public ScanBackwardBuilder {
 public:
  using LeafBuilder::LeafBuilder;
  using ReduceBuilder::sort;  // not the graph's own ordering

  /// Nodes in topological order, to be edited in place; `verify` finds what an edit broke.
  std::vector<ir::Node*> nodes_mut();
  /// Symbols replaced by sizes, bodies included.
  Graph bind(const DimBinding& bindings) const { return ir::Graph::bind(bindings); }

  // Forms that read back to an equal graph.
  std::string to_text() const;
  /// Readers know the operators of `ops`: a copy of ops::table() with one's own added reads those too.
  static Graph parse(std::string_view text, const ir::OpTable& ops = ops::table());
  std::string to_json(int indent = -1) const;
  static Graph from_json(std::string_view text, const ir::OpTable& ops = ops::table());
  /// A safetensors file; see rlx/lang/graph_file.h. `weights` are values of params.
  void save(const std::string& path, const NamedLiterals& weights = {}) const;
  static Graph load(const std::string& path, const ir::OpTable& ops = ops::table());

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
  /// The annotated dump of a module.
  static std::string inspect_module(const GraphModule&);

  /// Runs by the operators' reference rules.
  NamedLiterals interpret(const NamedLiterals& leaves) const { return ir::interpret(*this, leaves); }
};

std::ostream& operator<<(std::ostream&, const Graph&);

template <class Theme>
ir::Graph& BuilderTheme<Theme>::graph() {
  return static_cast<Graph&>(static_cast<Theme&>(*this));
}

}  // namespace rlx
