#include "rlx/ir/bodies.h"

namespace rlx::ir {

GraphRef body_in(const Node& n, const FieldInfo& field) {
  if (field.kind != AttrKind::graph) return nullptr;
  AttrValue v = field.get(n.attrs.get());
  auto* body = std::get_if<GraphRef>(&v);
  return body ? std::move(*body) : nullptr;
}

AttrsRef map_bodies(const Node& n,
                    const std::function<GraphRef(const FieldInfo& field, const GraphRef& body)>& map) {
  std::shared_ptr<void> changed;
  for_each_body(n, [&](const FieldInfo& f, const GraphRef& body) {
    GraphRef mapped = map(f, body);
    if (mapped == body) return;
    if (!changed) changed = n.op->copy_attrs(n.attrs.get());
    f.set(changed.get(), AttrValue(std::move(mapped)));
  });
  return changed ? AttrsRef(std::move(changed)) : n.attrs;
}

void for_each_node(const Graph& g, const std::function<void(const Node&)>& visit) {
  for (const Node* n : g.nodes()) {
    if (n->op->traits.leaf) visit(*n);
  }
  for (const Node* n : g.nodes()) {
    if (n->op->traits.leaf) continue;
    for_each_body(*n, [&](const FieldInfo&, const GraphRef& body) { for_each_node(*body, visit); });
    visit(*n);
  }
}

bool any_node(const Graph& g, const std::function<bool(const Node&)>& test) {
  for (const Node* n : g.nodes()) {
    if (test(*n)) return true;
    bool inside = false;
    for_each_body(*n,
                  [&](const FieldInfo&, const GraphRef& body) { inside = inside || any_node(*body, test); });
    if (inside) return true;
  }
  return false;
}

}  // namespace rlx::ir
