#include <algorithm>

#include "rlx/ir/graph.h"

namespace rlx::ir {
namespace {

void collect(const Graph& g, std::vector<std::string>& names) {
  for (const Node* n : g.nodes()) {
    for (const Shape& s : n->shapes) {
      for (const Dim d : s.dims()) collect_symbols(d, names);
    }
    for (const FieldInfo& f : n->op->fields) {
      const AttrValue v = f.get(n->attrs.get());
      if (const auto* d = std::get_if<Dim>(&v)) collect_symbols(*d, names);
      if (const auto* dims = std::get_if<Dims>(&v)) {
        for (const Dim d : *dims) collect_symbols(d, names);
      }
      if (const auto* body = std::get_if<GraphRef>(&v); body && *body) collect(**body, names);
    }
  }
}

// A copy of the attributes with symbols replaced, or null when nothing in them can hold a symbol.
std::shared_ptr<void> bind_attrs(const Node& n, const DimBinding& binding) {
  std::shared_ptr<void> out = n.op->copy_attrs(n.attrs.get());
  for (const FieldInfo& f : n.op->fields) {
    AttrValue v = f.get(out.get());
    if (auto* d = std::get_if<Dim>(&v)) {
      *d = rlx::bind(*d, binding);
    } else if (auto* dims = std::get_if<Dims>(&v)) {
      *dims = rlx::bind(*dims, binding);
    } else if (auto* shape = std::get_if<Shape>(&v)) {
      *shape = shape->bind(binding);
    } else if (auto* body = std::get_if<GraphRef>(&v); body && *body) {
      if (!(*body)->has_dynamic_dims()) continue;
      *body = std::make_shared<Graph>((*body)->bind(binding));
    } else {
      continue;
    }
    f.set(out.get(), v);
  }
  return out;
}

}  // namespace

std::vector<std::string> Graph::dynamic_symbols() const {
  std::vector<std::string> names;
  collect(*this, names);
  return names;
}

Graph Graph::bind(const DimBinding& binding) const {
  const std::vector<std::string> symbols = dynamic_symbols();
  for (const auto& [name, size] : binding) {
    const bool well_known = name == "batch" || name == "seq" || name == "rows" || name == "past_seq";
    if (!well_known && !std::binary_search(symbols.begin(), symbols.end(), name)) {
      throw invalid("bind: graph '", name_, "' has no symbol '", name, "'; it has ",
                    symbols.empty() ? std::string("none") : join(symbols));
    }
  }
  Graph out = *this;
  if (symbols.empty()) return out;
  out.constraints_.clear();
  for (const NodeId id : out.topo_order()) {
    Node& n = out.node_mut(id);
    try {
      const auto attrs = bind_attrs(n, binding);
      Shapes in;
      for (const Value v : n.inputs) in.push_back(out.shape(v));
      std::vector<Constraint> constraints;
      Infer infer(*n.op, in, &constraints);
      n.shapes = n.op->infer(infer, attrs.get());
      n.attrs = attrs;
      for (Constraint& c : constraints) {
        c.node = id;
        out.constraints_.push_back(c);
      }
    } catch (Error& e) {
      e.set_node(cat("%", id));
      if (n.origin) e.set_origin(n.origin->text());
      throw;
    }
  }
  return out;
}

}  // namespace rlx::ir
