#include "rlx/ir/graph.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "rlx/ir/leaves.h"
#include "rlx/ir/unify.h"

namespace rlx::ir {
namespace {

uint16_t next_tag() {
  static std::atomic<uint32_t> counter{0};
  return uint16_t(1 + counter.fetch_add(1, std::memory_order_relaxed) % 0xffff);
}

}  // namespace

const Shape& Expr::shape() const { return graph->shape(value); }

std::string Node::label() const { return name.empty() ? cat("%", id) : name; }

Node::operator Value() const {
  if (shapes.size() != 1) throw invalid(op->name, ": %", id, " has ", shapes.size(), " results; name one");
  return result();
}

Graph::Graph(std::string name) : name_(std::move(name)), tag_(next_tag()) {}
Graph::~Graph() { leave_anchor(); }

Graph::Graph(const Graph& other)
    : name_(other.name_),
      tag_(other.tag_),
      live_(other.live_),
      outputs_(other.outputs_),
      output_slots_(other.output_slots_),
      output_names_(other.output_names_),
      solved_(other.solved_),
      constraints_(other.constraints().begin(), other.constraints().end()),
      leaf_of_name_(other.leaf_of_name_),
      origin_(other.origin_) {
  nodes_.resize(other.nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (other.nodes_[i]) nodes_[i] = std::make_unique<Node>(*other.nodes_[i]);
  }
  for (const Node* n : other.nodes()) order_.push_back(nodes_[n->id].get());
  cycle_ = other.cycle_;
}

Graph& Graph::operator=(const Graph& other) {
  if (this != &other) *this = Graph(other);
  return *this;
}

Graph::Graph(Graph&& other) noexcept : tag_(other.tag_) { *this = std::move(other); }

Graph& Graph::operator=(Graph&& other) noexcept {
  leave_anchor();
  anchor_ = std::move(other.anchor_);
  if (anchor_) anchor_->graph = this;
  name_ = std::move(other.name_);
  tag_ = other.tag_;
  nodes_ = std::move(other.nodes_);
  live_ = std::exchange(other.live_, 0);
  next_id_ = other.next_id_;
  outputs_ = std::move(other.outputs_);
  output_slots_ = std::move(other.output_slots_);
  output_names_ = std::move(other.output_names_);
  solved_ = std::move(other.solved_);
  constraints_ = std::move(other.constraints_);
  leaf_of_name_ = std::move(other.leaf_of_name_);
  origin_ = std::move(other.origin_);
  order_ = std::move(other.order_);
  erased_ = std::move(other.erased_);
  order_stale_ = other.order_stale_;
  cycle_ = other.cycle_;
  return *this;
}

const std::shared_ptr<GraphAnchor>& Graph::anchor() {
  if (!anchor_) anchor_ = std::make_shared<GraphAnchor>(GraphAnchor{this, {}});
  return anchor_;
}

void Graph::leave_anchor() noexcept {
  if (!anchor_) return;
  anchor_->graph = nullptr;
  anchor_->name = std::move(name_);
  anchor_.reset();
}

Value Graph::input(const std::string& name, const Shape& shape) {
  return value(append(def<Input>(), std::make_shared<NamedLeaf>(NamedLeaf{name, shape}), {}));
}

Value Graph::param(const std::string& name, const Shape& shape) {
  return value(append(def<Param>(), std::make_shared<NamedLeaf>(NamedLeaf{name, shape}), {}));
}

Value Graph::constant(const Literal& v) {
  return value(append(def<Constant>(), std::make_shared<Constant::Attrs>(Constant::Attrs{v}), {}));
}

void Graph::check_operand(const OpDef& op, size_t i, Value v) const {
  if (v.tag != 0 && v.tag != tag_) {
    throw invalid(op.name, ": operand ", i, " belongs to another graph than '", name_, "'");
  }
  if (v.node == kNoNode)
    throw invalid(op.name, ": operand ", i, " is no value; a value comes from a method of the graph");
  if (!contains(v.node))
    throw invalid(op.name, ": operand ", i, " is %", v.node, ", which is not in graph '", name_, "'");
  if (v.index >= nodes_[v.node]->shapes.size()) {
    throw invalid(op.name, ": operand ", i, " is result ", v.index, " of %", v.node, ", which has ",
                  nodes_[v.node]->shapes.size());
  }
}

void Graph::check_leaf_name(const OpDef& op, const std::string& name) const {
  if (leaf_of_name_.contains(name)) {
    throw invalid(op.name, ": graph '", name_, "' already has an input or param named '", name,
                  "'; names must be unique");
  }
}

NodeId Graph::append(const OpDef& op, AttrsRef attrs, std::span<const Value> inputs, std::string name) {
  try {
    if (std::string wrong = op.operand_count_error(int(inputs.size())); !wrong.empty()) throw invalid(wrong);
    for (size_t i = 0; i < inputs.size(); ++i) check_operand(op, i, inputs[i]);
    // Attributes become canonical here, so they are copied unless this call is their only owner.
    std::shared_ptr<void> own = attrs && attrs.use_count() == 1
                                    ? std::const_pointer_cast<void>(std::move(attrs))
                                    : op.copy_attrs(attrs.get());
    Typed typed{std::move(own), {}, {}};
    if (!Unifier::infers_alone(*this, op, typed, inputs)) {
      Unifier sizes(*this);
      typed = sizes.infer(op, std::move(typed.attrs), inputs);
      if (op.traits.leaf) check_leaf_name(op, static_cast<const NamedLeaf*>(typed.attrs.get())->name);
      sizes.commit();
    } else if (op.traits.leaf) {
      check_leaf_name(op, static_cast<const NamedLeaf*>(typed.attrs.get())->name);
    }

    const NodeId id = next_id_ ? *next_id_ : NodeId(nodes_.size());
    next_id_.reset();
    auto node = std::make_unique<Node>();
    node->id = id;
    node->op = &op;
    node->attrs = std::move(typed.attrs);
    node->inputs.assign(inputs.begin(), inputs.end());
    for (Value& v : node->inputs) v.tag = tag_;
    node->shapes = std::move(typed.shapes);
    node->name = std::move(name);
    node->origin = origin_;
    if (op.traits.leaf) {
      const auto& leaf = *static_cast<const NamedLeaf*>(node->attrs.get());
      leaf_of_name_.emplace(leaf.name, id);
      if (node->name.empty()) node->name = leaf.name;
    }
    for (Constraint& c : typed.open) {
      c.node = id;
      constraints_.push_back(std::move(c));
    }
    if (id >= nodes_.size()) nodes_.resize(id + 1);
    add_uses(*node);
    order_.push_back(node.get());
    nodes_[id] = std::move(node);
    ++live_;
    return id;
  } catch (Error& e) {
    next_id_.reset();
    if (e.origin().empty() && origin_) e.set_origin(origin_->text());
    throw;
  }
}

void Graph::reserve_id(NodeId id) {
  RLX_CHECK(!contains(id), "id %", id, " is taken");
  nodes();  // an erased node of this id is gone from every list
  next_id_ = id;
}

uint32_t& Graph::slot_of(Use use) {
  if (use.user == kNoNode) return output_slots_[use.operand];
  Node& n = *nodes_[use.user];
  if (n.use_slots.size() <= use.operand) n.use_slots.resize(use.operand + 1);
  return n.use_slots[use.operand];
}

void Graph::add_use(Value v, Use use) {
  std::vector<Use>& uses = nodes_[v.node]->uses;
  slot_of(use) = uint32_t(uses.size());
  uses.push_back(use);
}

void Graph::add_uses(Node& n) {
  n.use_slots.resize(n.inputs.size());
  for (uint32_t i = 0; i < n.inputs.size(); ++i) {
    std::vector<Use>& uses = nodes_[n.inputs[i].node]->uses;
    n.use_slots[i] = uint32_t(uses.size());
    uses.push_back({n.id, i});
  }
}

// The last use takes the place of the one that goes. Where operands were written through node_mut the slot
// may be wrong, and a search tells whether the use is listed at all.
void Graph::remove_use(Value v, Use use) {
  std::vector<Use>& uses = nodes_[v.node]->uses;
  size_t slot = slot_of(use);
  if (slot >= uses.size() || uses[slot] != use)
    slot = size_t(std::find(uses.begin(), uses.end(), use) - uses.begin());
  RLX_CHECK(slot < uses.size(), "use list of %", v.node, " misses %", use.user);
  const Use last = uses.back();
  uses[slot] = last;
  uses.pop_back();
  if (last != use) slot_of(last) = uint32_t(slot);
}

void Graph::rebuild_slots(const Node& n) {
  for (uint32_t i = 0; i < n.uses.size(); ++i) slot_of(n.uses[i]) = i;
}

const Node& Graph::node(NodeId id) const {
  if (!contains(id)) throw invalid("graph '", name_, "': there is no node %", id);
  return *nodes_[id];
}

Node& Graph::node_mut(NodeId id) {
  node(id);
  return *nodes_[id];
}

const Shape& Graph::shape(Value v) const {
  const Node& n = node(v.node);
  if (v.index >= n.shapes.size()) throw invalid("graph '", name_, "': %", v.node, " has no result ", v.index);
  return n.shapes[v.index];
}

size_t Graph::use_count(Value v) const {
  size_t count = 0;
  for (const Use& u : node(v.node).uses) {
    const Value used = u.user == kNoNode ? outputs_[u.operand] : nodes_[u.user]->inputs[u.operand];
    count += used == v;
  }
  return count;
}

std::span<const Node* const> Graph::nodes() const {
  const std::lock_guard lock(order_mutex_);
  if (!erased_.empty()) drop_erased();
  if (order_stale_) sort();
  return order_;
}

std::span<const Constraint> Graph::constraints() const {
  nodes();
  return constraints_;
}

void Graph::drop_erased() const {
  const auto gone = [this](NodeId id) { return id >= nodes_.size() || nodes_[id] == nullptr; };
  // An id can be taken again (reserve_id), so a node is told by its address.
  std::erase_if(order_, [&](const Node* n) { return gone(n->id) || nodes_[n->id].get() != n; });
  std::erase_if(constraints_, [&](const Constraint& c) { return c.node != kNoNode && gone(c.node); });
  erased_.clear();
}

// Leaves first, in the order they were made: callers bind them by position. Then depth-first from each node
// in the old order, so that what was sorted stays where it was. On a cycle the old order is kept for the
// nodes on it, and verify reports them.
void Graph::sort() const {
  cycle_.reset();
  std::vector<const Node*> sorted;
  sorted.reserve(live_);
  enum : uint8_t { fresh, open, done };
  std::vector<uint8_t> state(nodes_.size(), fresh);
  std::vector<std::pair<const Node*, size_t>> stack;
  for (const Node* n : order_) {
    if (n->op->traits.leaf) sorted.push_back(n), state[n->id] = done;
  }
  for (const Node* root : order_) {
    if (state[root->id] != fresh) continue;
    stack.push_back({root, 0});
    state[root->id] = open;
    while (!stack.empty()) {
      auto& [n, next] = stack.back();
      if (next == n->inputs.size()) {
        state[n->id] = done;
        sorted.push_back(n);
        stack.pop_back();
        continue;
      }
      const NodeId operand = n->inputs[next++].node;
      if (operand >= nodes_.size() || !nodes_[operand]) continue;
      if (state[operand] == open) cycle_ = operand;
      if (state[operand] == fresh) {
        state[operand] = open;
        stack.push_back({nodes_[operand].get(), 0});
      }
    }
  }
  order_ = std::move(sorted);
  order_stale_ = false;
}

void Graph::move_leaf_before(NodeId leaf, NodeId other) {
  nodes();  // brings the order up to date
  const auto place = [&](NodeId id) {
    RLX_CHECK(node(id).op->traits.leaf, "%", id, " is ", node(id).op->name, ", not a leaf");
    return std::find(order_.rbegin(), order_.rend(), nodes_[id].get()).base() - 1;
  };
  const auto from = place(leaf), to = place(other);
  RLX_CHECK(to < from, "%", other, " does not stand in front of %", leaf);
  std::rotate(to, from, from + 1);
}

void Graph::check_order() const {
  nodes();
  if (cycle_)
    throw invalid("graph '", name_, "': %", *cycle_, " (", node(*cycle_).op->name,
                  ") depends on itself; a graph must have no cycle");
}

std::vector<NodeId> Graph::topo_order() const {
  check_order();
  std::vector<NodeId> ids;
  ids.reserve(live_);
  for (const Node* n : nodes()) ids.push_back(n->id);
  return ids;
}

std::vector<NodeId> Graph::reverse_topo() const {
  std::vector<NodeId> ids = topo_order();
  std::reverse(ids.begin(), ids.end());
  return ids;
}

std::vector<NodeId> Graph::leaves() const {
  std::vector<NodeId> out;
  for (const Node* n : nodes()) {
    if (n->op->traits.leaf) out.push_back(n->id);
  }
  return out;
}

std::vector<NodeId> Graph::inputs() const {
  std::vector<NodeId> out = leaves();
  std::erase_if(out, [&](NodeId id) { return !node(id).is<Input>(); });
  return out;
}

std::vector<NodeId> Graph::params() const {
  std::vector<NodeId> out = leaves();
  std::erase_if(out, [&](NodeId id) { return !node(id).is<Param>(); });
  return out;
}

std::optional<NodeId> Graph::find_leaf(std::string_view name) const {
  const auto it = leaf_of_name_.find(name);
  if (it == leaf_of_name_.end()) return std::nullopt;
  return it->second;
}

void Graph::set_outputs(Values outputs, std::vector<std::string> names) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Value v = outputs[i];
    if ((v.tag != 0 && v.tag != tag_) || !contains(v.node) || v.index >= nodes_[v.node]->shapes.size()) {
      throw invalid("set_outputs: output ", i, " is %", v.node, "#", v.index,
                    ", which is not a value of graph '", name_, "'");
    }
  }
  if (!names.empty() && names.size() != outputs.size()) {
    throw invalid("set_outputs: ", names.size(), " names for ", outputs.size(), " outputs");
  }
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 1; i < sorted.size(); ++i) {
    if (!sorted[i].empty() && sorted[i] == sorted[i - 1])
      throw invalid("set_outputs: two outputs are named '", sorted[i], "'");
  }
  for (uint32_t i = 0; i < outputs_.size(); ++i) remove_use(outputs_[i], {kNoNode, i});
  outputs_ = std::move(outputs);
  output_slots_.assign(outputs_.size(), 0);
  output_names_ = std::move(names);
  for (uint32_t i = 0; i < outputs_.size(); ++i) {
    outputs_[i].tag = tag_;
    add_use(outputs_[i], {kNoNode, i});
  }
}

std::string Graph::output_name(size_t i) const { return output_names()[i]; }

std::vector<std::string> Graph::output_names() const {
  std::vector<std::string> out(outputs_.size());
  std::map<std::string, int> count;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const bool given = i < output_names_.size() && !output_names_[i].empty();
    out[i] = given ? output_names_[i] : node(outputs_[i]).name;
    if (!given && node(outputs_[i]).shapes.size() > 1) out[i].clear();
    ++count[out[i]];
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const bool given = i < output_names_.size() && !output_names_[i].empty();
    if (given || (!out[i].empty() && count[out[i]] == 1)) continue;
    out[i] = cat("output", i);
    while (count.contains(out[i])) out[i] += "_";
  }
  return out;
}

void Graph::replace(Value from, Value to) {
  if (from == to) return;
  if (shape(from) != shape(to)) {
    throw invalid("replace: %", from.node, " is ", shape(from), " but %", to.node, " is ", shape(to),
                  "; types must be equal");
  }
  Node& old = *nodes_[from.node];
  std::vector<Use> kept, moved;
  for (const Use& u : old.uses) {
    Value& slot = u.user == kNoNode ? outputs_[u.operand] : nodes_[u.user]->inputs[u.operand];
    if (slot == from && u.user != to.node) {
      slot = to;
      slot.tag = tag_;
      moved.push_back(u);
    } else {
      kept.push_back(u);
    }
  }
  old.uses = std::move(kept);
  rebuild_slots(old);
  for (const Use& u : moved) add_use(to, u);
  order_stale_ = true;
}

void Graph::set_inputs(NodeId id, const Values& inputs) {
  Node& n = node_mut(id);
  for (size_t i = 0; i < inputs.size(); ++i) check_operand(*n.op, i, inputs[i]);
  for (uint32_t i = 0; i < n.inputs.size(); ++i) remove_use(n.inputs[i], {id, i});
  n.inputs = inputs;
  for (Value& v : n.inputs) v.tag = tag_;
  add_uses(n);
  order_stale_ = true;
}

void Graph::erase(NodeId id) {
  const Node& n = node(id);
  if (!n.uses.empty()) throw invalid("erase: %", id, " still has ", n.uses.size(), " uses");
  for (uint32_t i = 0; i < n.inputs.size(); ++i) remove_use(n.inputs[i], {id, i});
  if (n.op->traits.leaf) leaf_of_name_.erase(static_cast<const NamedLeaf*>(n.attrs.get())->name);
  erased_.push_back(std::move(nodes_[id]));
  --live_;
}

size_t Graph::erase_dead() {
  std::vector<bool> needed(nodes_.size(), false);
  std::vector<NodeId> work;
  const auto need = [&](NodeId id) {
    if (!needed[id]) needed[id] = true, work.push_back(id);
  };
  for (const Value v : outputs_) need(v.node);
  for (const auto& [name, id] : leaf_of_name_) need(id);
  while (!work.empty()) {
    const NodeId id = work.back();
    work.pop_back();
    for (const Value v : nodes_[id]->inputs) need(v.node);
  }
  nodes();
  std::erase_if(order_, [&](const Node* n) { return !needed[n->id]; });
  std::erase_if(constraints_, [&](const Constraint& c) { return c.node != kNoNode && !needed[c.node]; });
  size_t gone = 0;
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    if (!nodes_[id]) continue;
    if (needed[id]) {
      if (std::erase_if(nodes_[id]->uses,
                        [&](const Use& u) { return u.user != kNoNode && !needed[u.user]; }) > 0)
        rebuild_slots(*nodes_[id]);
      continue;
    }
    ++gone;
  }
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    if (!needed[id]) nodes_[id].reset();
  }
  live_ -= gone;
  return gone;
}

}  // namespace rlx::ir
