// Copying nodes from one graph into another: which value became which, and where the copies came from.
// Whoever copies a graph with changes does it through a Cloner; passes that change single nodes are written
// on rlx/ir/rewrite.h, which descends into bodies.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx::ir {

/// For maps by values of one graph.
struct ValueHash {
  size_t operator()(Value v) const { return (size_t(v.node) << 16 | v.index) * 0x9E3779B97F4A7C15ull; }
};
/// Something known of some values of one graph.
template <class T>
using ValueMap = std::unordered_map<Value, T, ValueHash>;

/// Nodes made while it lives carry this origin.
class OriginScope {
 public:
  OriginScope(Graph& g, OriginRef origin) : graph_(g), before_(g.current_origin()) {
    g.set_current_origin(std::move(origin));
  }
  ~OriginScope() { graph_.set_current_origin(std::move(before_)); }
  OriginScope(const OriginScope&) = delete;

 private:
  Graph& graph_;
  OriginRef before_;
};

/// The origin of `n` with one more note, for nodes that a rule makes in its place.
OriginRef noted_origin(const Node& n, std::string note);

/// A leaf of the kind of `leaf` (input or param), under its name and of its type or of the type given.
Value append_leaf_like(Graph& to, const Node& leaf);
Value append_leaf_like(Graph& to, const Node& leaf, const Shape& shape);

/// A copy of a graph on its way: which value became which.
class Cloner {
 public:
  explicit Cloner(Graph& to) : to_(to) {}

  /// The graph that is made.
  Graph& to() const { return to_; }

  /// From now on `copy` stands for `original`.
  void set(Value original, Value copy);
  /// As set, for all results of a node.
  void set_results(const Node& original, std::span<const Value> copies);
  /// Whether something stands for `original`.
  bool has(Value original) const { return slot(original).node != kNoNode; }
  /// What stands for `original`, which must have been copied or set.
  Value at(Value original) const;
  Values at(std::span<const Value> originals) const;

  /// The same operator with the same attributes, name and origin, on the copies of its operands. A node
  /// without an origin gets that of the scope. A leaf becomes a leaf.
  NodeId copy(const Node& n) { return copy(n, n.attrs); }
  /// As above with other attributes.
  NodeId copy(const Node& n, AttrsRef attrs);

  /// The outputs of `from` and their names become those of the new graph.
  void copy_outputs(const Graph& from);

 private:
  Value slot(Value original) const {
    return original.node < first_.size() && original.index < count_[original.node]
               ? copies_[first_[original.node] + original.index]
               : Value{};
  }

  Graph& to_;
  // Copies of node i's results lie in a row from first_[i] on.
  std::vector<uint32_t> first_;
  std::vector<uint16_t> count_;
  Values copies_;
};

}  // namespace rlx::ir
