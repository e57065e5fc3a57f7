// Deep equality and the content hash. Both walk the graph in one canonical order: leaves first, then the
// rest topologically, with nodes numbered by position, so ids and the place of declarations do not matter.
#include "rlx/ir/compare.h"

#include <bit>
#include <unordered_map>

namespace rlx::ir {
namespace {

std::vector<const Node*> canonical_order(const Graph& g) {
  std::vector<const Node*> out;
  out.reserve(g.len());
  for (const Node* n : g.nodes()) {
    if (n->op->traits.leaf) out.push_back(n);
  }
  for (const Node* n : g.nodes()) {
    if (!n->op->traits.leaf) out.push_back(n);
  }
  return out;
}

std::unordered_map<NodeId, uint32_t> positions(const std::vector<const Node*>& order) {
  std::unordered_map<NodeId, uint32_t> out;
  out.reserve(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) out[order[i]->id] = i;
  return out;
}

void add_shape(Hasher& h, const Shape& s) {
  h.add(uint64_t(s.dtype()));
  h.add(uint64_t(s.rank()));
  // Symbolic dims hash by text: table indices depend on the order of creation.
  for (const Dim d : s.dims()) d.is_symbolic() ? h.add(cat(d)) : h.add(uint64_t(d.rep()));
}

struct AddAttr {
  Hasher& h;
  void operator()(std::monostate) const {}
  void operator()(bool v) const { h.add(uint64_t(v)); }
  void operator()(int64_t v) const { h.add(uint64_t(v)); }
  void operator()(double v) const { h.add(v != v ? 0x7ff8000000000000ull : std::bit_cast<uint64_t>(v)); }
  void operator()(const std::string& v) const { h.add(std::string_view(v)); }
  void operator()(DType v) const { h.add(uint64_t(v)); }
  void operator()(const std::vector<int64_t>& v) const { h.add_bytes(v.data(), v.size() * sizeof(int64_t)); }
  void operator()(const std::vector<double>& v) const {
    h.add(v.size());
    for (const double x : v) (*this)(x);
  }
  void operator()(Dim v) const { add_shape(h, Shape(DType::f32, {v})); }
  void operator()(const Dims& v) const { add_shape(h, Shape(DType::f32, v)); }
  void operator()(const Shape& v) const { add_shape(h, v); }
  void operator()(const Literal& v) const {
    add_shape(h, v.shape());
    h.add_bytes(v.bytes().data(), v.bytes().size());
  }
  void operator()(const GraphRef& v) const {
    const Hash128 inner = v ? v->hash() : Hash128{};
    h.add(inner.lo);
    h.add(inner.hi);
  }
};

// What the graph itself says of its sizes, beyond what its nodes ask for.
std::vector<std::pair<std::string, std::string>> size_facts(const Graph& g) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [name, value] : g.solved_symbols()) out.emplace_back(name, cat(value));
  for (const Constraint& c : g.constraints()) {
    if (c.node == kNoNode) out.emplace_back(cat(c.a), cat(c.b));
  }
  return out;
}

}  // namespace

bool same_operation(const Node& a, const Node& b) {
  if (a.op != b.op || a.shapes != b.shapes || a.inputs.size() != b.inputs.size()) return false;
  if (a.attrs == b.attrs) return true;
  for (const FieldInfo& f : a.op->fields) {
    if (!same_value(f.get(a.attrs.get()), f.get(b.attrs.get()))) return false;
  }
  return true;
}

void add_operation(Hasher& h, const Node& n) {
  h.add(n.op->name);
  for (const FieldInfo& f : n.op->fields) {
    const AttrValue v = f.get(n.attrs.get());
    h.add(v.index());
    std::visit(AddAttr{h}, v);
  }
  h.add(n.inputs.size());
  for (const Shape& s : n.shapes) add_shape(h, s);
}

bool operator==(const Graph& a, const Graph& b) {
  if (&a == &b) return true;
  if (a.name() != b.name() || a.len() != b.len() || a.outputs().size() != b.outputs().size()) return false;
  const auto order_a = canonical_order(a), order_b = canonical_order(b);
  const auto at_a = positions(order_a), at_b = positions(order_b);
  const auto same = [&](Value x, Value y) {
    return x.index == y.index && at_a.at(x.node) == at_b.at(y.node);
  };
  for (size_t i = 0; i < order_a.size(); ++i) {
    const Node &x = *order_a[i], &y = *order_b[i];
    if (!same_operation(x, y) || !std::equal(x.inputs.begin(), x.inputs.end(), y.inputs.begin(), same))
      return false;
  }
  return std::equal(a.outputs().begin(), a.outputs().end(), b.outputs().begin(), same) &&
         a.output_names() == b.output_names() && size_facts(a) == size_facts(b);
}

Hash128 Graph::hash() const {
  Hasher h;
  h.add(std::string_view(name_));
  const auto order = canonical_order(*this);
  const auto at = positions(order);
  const auto add_value = [&](Value v) { h.add(uint64_t(at.at(v.node)) << 16 | v.index); };
  for (const Node* n : order) {
    add_operation(h, *n);
    for (const Value v : n->inputs) add_value(v);
  }
  h.add(outputs_.size());
  for (const Value v : outputs_) add_value(v);
  for (const std::string& name : output_names()) h.add(std::string_view(name));
  for (const auto& [a, b] : size_facts(*this)) {
    h.add(std::string_view(a));
    h.add(std::string_view(b));
  }
  return h.finish();
}

}  // namespace rlx::ir
