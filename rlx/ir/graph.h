// The graph: nodes with any number of results, in topological order, with def-use lists.
//
// This class is structure only. rlx::Graph (rlx/lang/graph.h) adds a method for every operator; passes,
// transforms and backends work with this one.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "rlx/base/dim_solve.h"
#include "rlx/base/hash.h"
#include "rlx/ir/op_def.h"

namespace rlx::ir {

/// Where a node came from; shared by the nodes that have it in common.
struct Origin {
  const char* file = nullptr;                     // the user's source line
  std::shared_ptr<const std::string> file_owner;  // holds `file` where it was read, not compiled in
  uint32_t line = 0, column = 0;
  const char* function = nullptr;  // the user's, where it was compiled in
  std::string label;               // scopes joined by '/': "layer3/attention"
  std::string block;               // the HIR block it was lowered from
  std::vector<std::string> notes;  // passes and rules that made or touched it, oldest first

  std::string_view file_name() const;  // without its folders
  std::string text() const;            // "model.cpp:12, layer3/attention"
};
using OriginRef = std::shared_ptr<const Origin>;

/// Operand `operand` of node `user`, or graph output number `operand` when user is kNoNode.
struct Use {
  NodeId user;
  uint32_t operand;
  friend bool operator==(Use, Use) = default;
};

/// An operator with its attributes, operands and results.
struct Node {
  NodeId id = kNoNode;
  const OpDef* op = nullptr;
  AttrsRef attrs;
  Values inputs;
  Shapes shapes;                    // one per result
  std::vector<Use> uses;            // of all results, in no order
  std::vector<uint32_t> use_slots;  // per operand, where its use stands in the list of the operand's node
  std::string name;                 // for people; need not be unique
  OriginRef origin;

  /// What messages call it: its name, or %7 where it has none.
  std::string label() const;
  /// One of its results, as a value.
  Value result(uint32_t i = 0) const { return {id, uint16_t(i), 0}; }
  /// The result of a node that has one.
  operator Value() const;  // NOLINT: implicit on purpose
  /// Whether it is of this operator: records are told apart by their address.
  template <class Op>
  bool is() const {
    return op == &def<Op>();
  }
  /// Its attributes; those of another operator are an internal error.
  template <class Op>
  const typename Op::Attrs& as() const {
    RLX_CHECK(is<Op>(), "node %", id, " is ", op->name, ", not ", Op::name);
    return *static_cast<const typename Op::Attrs*>(attrs.get());
  }
};

/// Where a graph is now, for handles that see it move or outlive it. `graph` is null once it is gone, and `name`
/// is what it was called.
struct GraphAnchor {
  Graph* graph = nullptr;
  std::string name;
};

/// Something wrong with a graph, and where.
struct VerifyError {
  std::optional<NodeId> node;
  std::string rule;     // which check: "operands", "order", "types", "uses", "names", "outputs", "body"
  std::string message;  // in the grammar of rlx/base/error.h
  std::string origin;
};

class Graph {
 public:
  explicit Graph(std::string name = "main");
  Graph(const Graph&);
  Graph& operator=(const Graph&);
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  // For people, and for the text form.
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

  // Making nodes. All checks happen before anything is appended.
  Value input(const std::string& name, const Shape& shape);
  Value param(const std::string& name, const Shape& shape);
  Value constant(const Literal& value);
  /// Appends a node; result types are inferred. `attrs` may be null for the defaults. Returns its id.
  NodeId append(const OpDef& op, AttrsRef attrs, std::span<const Value> inputs, std::string name = {});

  // Reading.
  size_t len() const { return live_; }
  bool is_empty() const { return live_ == 0; }
  bool contains(NodeId id) const { return id < nodes_.size() && nodes_[id] != nullptr; }
  const Node& node(NodeId id) const;
  const Node& node(Value v) const { return node(v.node); }
  const Shape& shape(Value v) const;
  /// Live nodes, operands before users.
  std::span<const Node* const> nodes() const;
  std::vector<NodeId> topo_order() const;
  /// An error when a node depends on itself: edits can do that, and then there is no order to walk in.
  void check_order() const;
  std::vector<NodeId> reverse_topo() const;
  std::span<const Use> users(NodeId id) const { return node(id).uses; }
  size_t use_count(NodeId id) const { return node(id).uses.size(); }
  size_t use_count(Value v) const;
  /// Inputs and params in order of appearance.
  std::vector<NodeId> leaves() const;
  std::vector<NodeId> inputs() const;
  std::vector<NodeId> params() const;
  std::optional<NodeId> find_leaf(std::string_view name) const;

  /// What a run returns, in order.
  const Values& outputs() const { return outputs_; }
  /// A value may be an output twice; names must differ.
  void set_outputs(Values outputs, std::vector<std::string> names = {});
  /// Given name, else the node's name where it is unique among the outputs, else "output<i>".
  std::string output_name(size_t i) const;
  /// All of them.
  std::vector<std::string> output_names() const;

  // Editing. `verify` finds whatever an edit broke.
  void replace(Value from, Value to);  // every use, outputs included
  void set_inputs(NodeId id, const Values& inputs);
  Node& node_mut(NodeId id);
  void set_name(NodeId id, std::string name) { node_mut(id).name = std::move(name); }
  void set_origin(NodeId id, OriginRef origin) { node_mut(id).origin = std::move(origin); }
  void erase(NodeId id);  // must be unused
  /// Erases nodes that no output needs; inputs and params stay. Returns how many went.
  size_t erase_dead();

  // Symbols. A symbol is one size in the whole graph, bodies included. Sizes that must be equal become one:
  // `[n] + [m]` makes m another name of n, and every type says n.
  bool has_dynamic_dims() const;
  std::vector<std::string> dynamic_symbols() const;
  /// Symbols that gave way to an extent, which mentions none of them.
  const DimSubstitution& solved_symbols() const { return solved_; }
  /// Equations that have no unique solution; binding checks them.
  std::span<const Constraint> constraints() const;
  /// a and b are one size from now on. An error, and no change, when that cannot be.
  void assume_equal(Dim a, Dim b);
  /// Takes over what `other`, whose nodes come into this graph, knows of its symbols.
  void assume_sizes_of(const Graph& other);
  /// An extent in terms of the symbols in use.
  Dim resolve(Dim d) const { return solved_.empty() ? d : substitute(d, solved_); }
  Shape resolve(const Shape& s) const;
  /// A graph with symbols replaced everywhere, bodies included, and types inferred anew. Unknown symbols and
  /// violated equations are errors; symbols left out stay.
  Graph bind(const DimBinding&) const;

  /// All errors; empty means the graph is sound. Infers every node again and descends into bodies.
  std::vector<VerifyError> verify() const;
  /// Throws the first error of verify, with their number.
  void check() const;

  /// Same computation node by node: operators, attributes, constants, bodies, leaves, outputs and their
  /// names. Names of other nodes and origins do not count.
  friend bool operator==(const Graph&, const Graph&);
  /// Equal for equal graphs.
  Hash128 hash() const;

  // Where new nodes come from.
  OriginRef current_origin() const { return origin_; }
  void set_current_origin(OriginRef origin) { origin_ = std::move(origin); }
  uint16_t tag() const { return tag_; }
  /// The id the next node will get; every node so far has a smaller one.
  NodeId next_id() const { return next_id_ ? *next_id_ : NodeId(nodes_.size()); }
  Value value(NodeId id, uint32_t result = 0) const { return {id, uint16_t(result), tag_}; }

  /// For readers that keep the ids of a text: the next node gets this id, which must be free.
  void reserve_id(NodeId id);

  /// Leaf `leaf` takes its place in front of `other`, an earlier one: leaves() and positional binding follow.
  void move_leaf_before(NodeId leaf, NodeId other);

  /// The same object for all handles of this graph; it follows when the graph is moved.
  const std::shared_ptr<GraphAnchor>& anchor();

 private:
  void leave_anchor() noexcept;
  void add_use(Value v, Use use);
  void add_uses(Node& n);
  void remove_use(Value v, Use use);
  uint32_t& slot_of(Use use);
  void rebuild_slots(const Node& n);
  void check_operand(const OpDef& op, size_t i, Value v) const;
  void check_leaf_name(const OpDef& op, const std::string& name) const;
  void sort() const;
  void drop_erased() const;

  friend class Unifier;

  std::string name_;
  uint16_t tag_;
  std::vector<std::unique_ptr<Node>> nodes_;  // by id; null where erased
  size_t live_ = 0;
  std::optional<NodeId> next_id_;
  Values outputs_;
  std::vector<uint32_t> output_slots_;  // as Node::use_slots
  std::vector<std::string> output_names_;
  DimSubstitution solved_;
  mutable std::vector<Constraint> constraints_;
  std::map<std::string, NodeId, std::less<>> leaf_of_name_;
  OriginRef origin_;
  std::shared_ptr<GraphAnchor> anchor_;  // made when somebody asks

  // Order of the live nodes. Appending keeps it sorted; edits mark it stale and the next reader sorts.
  // Erased nodes stay until then too, so that erasing costs no walk over the graph.
  mutable std::mutex order_mutex_;
  mutable std::vector<const Node*> order_;
  mutable std::vector<std::unique_ptr<Node>> erased_;
  mutable bool order_stale_ = false;
  mutable std::optional<NodeId> cycle_;  // a node that depends on itself
};

void append_text(std::string& out, const VerifyError&);

/// The text form; see rlx/ir/text.h for the grammar.
void append_text(std::string& out, const Graph&);

/// Nodes made while it lives carry this source line; nothing changes when the line is unknown.
class LocationScope {
 public:
  LocationScope(Graph& g, const std::source_location& where);
  ~LocationScope() { graph_.set_current_origin(std::move(before_)); }
  LocationScope(const LocationScope&) = delete;

 private:
  Graph& graph_;
  OriginRef before_;
};

/// Nodes made while it lives carry `label`, inside the labels around it.
class LabelScope {
 public:
  LabelScope(Graph& g, std::string_view label);
  ~LabelScope() { graph_.set_current_origin(std::move(before_)); }
  LabelScope(const LabelScope&) = delete;

 private:
  Graph& graph_;
  OriginRef before_;
};

}  // namespace rlx::ir
