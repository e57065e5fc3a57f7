// Sizes that become one while a graph grows.
//
// An equation between extents that has one solution for a symbol puts that solution in the symbol's place in
// the whole graph: types, attributes and bodies. All of it is worked out beside the graph and written at the
// end, so a contradiction leaves the graph as it was.
#pragma once

#include <map>
#include <unordered_map>
#include <unordered_set>

#include "rlx/ir/graph.h"

namespace rlx::ir {

/// Each symbol that gives way may cost a walk over the graph, so a hostile text must not have too many.
inline constexpr size_t kMaxSymbols = 1024;

/// A node's attributes in canonical form, the types of its results, and what must hold for them beyond what the
/// graph knows.
struct Typed {
  std::shared_ptr<void> attrs;
  Shapes shapes;
  std::vector<Constraint> open;
};

class Unifier {
 public:
  explicit Unifier(Graph& g) : g_(g) {}

  /// Types of a node that is to be appended and says nothing new of any size, into `typed`, which has its
  /// attributes: most nodes, and a Unifier for each made gradients a tenth slower. False where one is needed.
  static bool infers_alone(const Graph&, const OpDef&, Typed& typed, std::span<const Value> inputs);
  /// Types of a node that is to be appended, under all that is known once it is there.
  Typed infer(const OpDef& op, std::shared_ptr<void> attrs, std::span<const Value> inputs);
  /// Equations to hold from now on; `who` starts the error. Solves them and follows what they entail.
  void assume(std::vector<Constraint> equations, std::string_view who);
  /// Writes into the graph.
  void commit();

 private:
  const DimSubstitution& solved() const { return changed_ ? solved_ : g_.solved_; }
  Typed infer_once(const OpDef& op, std::shared_ptr<void> attrs, const Shapes& types);
  const Shape& shape(Value v) const;
  Shapes shapes_of(std::span<const Value> values) const;

  bool absorb(std::vector<Constraint>& equations, std::string_view who);
  void substitute(const std::string& symbol, Dim value);
  void propagate();
  bool infer_stale();

  Dim resolve(Dim d);
  bool is_stale(Dim d) { return resolve(d) != d; }
  bool is_stale(const Shape& s);
  bool has_stale_attrs(const OpDef& op, const void* attrs);
  void resolve_attrs(const OpDef& op, void* attrs, std::vector<Constraint>& facts);
  GraphRef resolve_body(const GraphRef& body, std::vector<Constraint>& facts);

  size_t age(const std::string& symbol);
  void note_ages(const Graph& g);
  void note_ages(const Dims& dims);
  void note_ages(const OpDef& op, const void* attrs);

  Graph& g_;
  bool changed_ = false;  // a symbol gave way; solved_ takes the place of the graph's
  DimSubstitution solved_;
  std::unordered_map<int64_t, Dim> resolved_;        // by Dim::rep, under solved()
  std::map<NodeId, Typed> nodes_;                    // inferred anew
  std::optional<std::vector<Constraint>> recorded_;  // the graph's equations under solved_
  std::vector<Constraint> own_;                      // new equations of the graph itself
  std::map<std::string, size_t> ages_;
  std::unordered_set<int64_t> noted_;  // Dim::rep whose symbols have their age
  bool aged_ = false;
  std::pair<const OpDef*, const void*> pending_{};  // a node to be appended, and its attributes
};

}  // namespace rlx::ir
