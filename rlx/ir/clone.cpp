#include "rlx/ir/clone.h"

#include <algorithm>

#include "rlx/ir/leaves.h"

namespace rlx::ir {

OriginRef noted_origin(const Node& n, std::string note) {
  auto origin = n.origin ? std::make_shared<Origin>(*n.origin) : std::make_shared<Origin>();
  origin->notes.push_back(std::move(note));
  return origin;
}

Value append_leaf_like(Graph& to, const Node& leaf) { return append_leaf_like(to, leaf, leaf.shapes[0]); }

Value append_leaf_like(Graph& to, const Node& leaf, const Shape& shape) {
  const OriginScope scope(to, leaf.origin ? leaf.origin : to.current_origin());
  return to.value(to.append(*leaf.op, std::make_shared<NamedLeaf>(NamedLeaf{leaf_name(leaf), shape}), {}));
}

void Cloner::set(Value original, Value copy) {
  if (original.node >= first_.size()) {
    const size_t size = std::max(size_t(original.node) + 1, first_.size() * 2);
    first_.resize(size, 0);
    count_.resize(size, 0);
  }
  uint16_t& count = count_[original.node];
  if (original.index >= count) {
    // Results are set in order as a rule; a later one moves the row behind the others.
    const uint32_t begin = uint32_t(copies_.size()), had = first_[original.node];
    for (uint32_t i = 0; i <= original.index; ++i) copies_.push_back(i < count ? copies_[had + i] : Value{});
    first_[original.node] = begin;
    count = uint16_t(original.index + 1);
  }
  copies_[first_[original.node] + original.index] = copy;
}

void Cloner::set_results(const Node& original, std::span<const Value> copies) {
  RLX_CHECK(copies.size() == original.shapes.size(), original.op->name, " has ", original.shapes.size(),
            " results; ", copies.size(), " given");
  for (size_t i = copies.size(); i-- > 0;) set(original.result(uint32_t(i)), copies[i]);
}

Value Cloner::at(Value original) const {
  const Value copy = slot(original);
  RLX_CHECK(copy.node != kNoNode, "%", original.node, "#", original.index, " is used before it is copied");
  return copy;
}

Values Cloner::at(std::span<const Value> originals) const {
  Values out;
  out.reserve(originals.size());
  for (const Value v : originals) out.push_back(at(v));
  return out;
}

NodeId Cloner::copy(const Node& n, AttrsRef attrs) {
  const OriginScope scope(to_, n.origin ? n.origin : to_.current_origin());
  const NodeId id = to_.append(*n.op, std::move(attrs), at(n.inputs), n.name);
  for (size_t i = n.shapes.size(); i-- > 0;) set(n.result(uint32_t(i)), to_.value(id, uint32_t(i)));
  return id;
}

void Cloner::copy_outputs(const Graph& from) { to_.set_outputs(at(from.outputs()), from.output_names()); }

}  // namespace rlx::ir
