#include "rlx/lang/builders/leaf.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "rlx/ops/table.h"

namespace rlx {
namespace {

bool same_function(const ir::Origin& a, const ir::Origin& b) {
  const auto same = [](const char* x, const char* y) { return x && y && std::strcmp(x, y) == 0; };
  return same(a.file, b.file) && same(a.function, b.function);
}

using Place = std::pair<uint32_t, uint32_t>;
Place place_of(const ir::Node& n) { return {n.origin->line, n.origin->column}; }

// The leaves that the function which made `newest` made in a row, in the order they were made. Operands of one
// expression are near each other, so the search goes back over a limited number of nodes.
std::vector<const ir::Node*> made_in_a_row(const ir::Graph& g, const ir::Node& newest) {
  constexpr NodeId kReach = 4096;
  std::vector<const ir::Node*> out = {&newest};
  for (NodeId id = newest.id, seen = 0; id-- > 0 && seen < kReach; ++seen) {
    if (!g.contains(id) || !g.node(id).op->traits.leaf) continue;
    const ir::Node& n = g.node(id);
    if (!n.origin || !same_function(*n.origin, *newest.origin)) break;
    out.push_back(&n);
  }
  std::reverse(out.begin(), out.end());
  return out;
}

void sort_by_place(std::vector<const ir::Node*>::iterator first,
                   std::vector<const ir::Node*>::iterator last) {
  std::sort(first, last, [](const ir::Node* a, const ir::Node* b) { return place_of(*a) < place_of(*b); });
}

// Leaves move to the front only, which keeps every operand before its users.
void arrange(ir::Graph& g, const std::vector<const ir::Node*>& leaves) {
  const auto place = [&](const ir::Node* n) {
    const auto nodes = g.nodes();
    return std::find(nodes.rbegin(), nodes.rend(), n);
  };
  for (size_t i = leaves.size() - 1; i > 0; --i) {
    if (place(leaves[i - 1]) < place(leaves[i])) g.move_leaf_before(leaves[i - 1]->id, leaves[i]->id);
  }
}

}  // namespace

// By line and column within a round: a place that is met again, in a loop or by another call of the function,
// starts the next one, and rounds stand in the order they were made.
Value LeafBuilder::placed(Value leaf) {
  const ir::Node& newest = node(leaf);
  if (!newest.origin || newest.origin->function == nullptr) return leaf;
  std::vector<const ir::Node*> leaves = made_in_a_row(*this, newest);
  auto round = leaves.begin();
  std::set<Place> met;
  for (auto it = leaves.begin(); it != leaves.end(); ++it) {
    if (met.insert(place_of(**it)).second) continue;
    sort_by_place(round, it);
    round = it;
    met = {place_of(**it)};
  }
  if (*met.rbegin() == place_of(newest)) return leaf;  // the last of its round is where it belongs
  sort_by_place(round, leaves.end());
  arrange(*this, leaves);
  return leaf;
}

Value LeafBuilder::input(const std::string& name, const Shape& shape, const Loc& loc) {
  const ir::LocationScope scope(*this, loc);
  return placed(ir::Graph::input(name, shape));
}

Value LeafBuilder::param(const std::string& name, const Shape& shape, const Loc& loc) {
  const ir::LocationScope scope(*this, loc);
  return placed(ir::Graph::param(name, shape));
}

Value LeafBuilder::constant(const Literal& value, const Loc& loc) {
  const ir::LocationScope scope(*this, loc);
  return ir::Graph::constant(value);
}

Value LeafBuilder::constant(std::span<const double> data, const Shape& shape, const Loc& loc) {
  const ir::LocationScope scope(*this, loc);
  if (!shape.is_static()) throw invalid("constant: ", shape, " has a symbolic size; constants need numbers");
  if (int64_t(data.size()) != shape.elements())
    throw invalid("constant: ", data.size(), " values for ", shape, "; it has ", shape.elements());
  return ir::Graph::constant(Literal::reals(shape, data));
}

Value LeafBuilder::append_node(std::string_view op, const Values& inputs, const Declared& shape,
                               const std::string& name, ir::AttrsRef attrs, const Loc& loc) {
  return build_at(*this, loc, [&]() -> Value {
    const NodeId id = append(ops::table().at(op), std::move(attrs), inputs, name);
    return detail::checked({this, value(id)}, shape);
  });
}

Value LeafBuilder::add_node(std::string_view op, const Values& inputs, const Declared& shape,
                            const Loc& loc) {
  return append_node(op, inputs, shape, {}, nullptr, loc);
}

}  // namespace rlx
