// Bodies: the graphs that nodes hold as attributes. A body is known by the kind of its field, whatever the
// operator; whoever looks into graphs looks into bodies through these.
#pragma once

#include <functional>

#include "rlx/ir/graph.h"

namespace rlx::ir {

/// The body in this field; null when the field is not a body or holds none.
GraphRef body_in(const Node& n, const FieldInfo& field);

/// Calls visit(field, body) for each body of the node.
template <class Visit>
void for_each_body(const Node& n, Visit visit) {
  for (const FieldInfo& f : n.op->fields) {
    if (f.kind != AttrKind::graph) continue;
    if (const GraphRef body = body_in(n, f)) visit(f, body);
  }
}

/// Attributes with map(field, body) in place of each body; the node's own object when all stay as they are.
AttrsRef map_bodies(const Node& n,
                    const std::function<GraphRef(const FieldInfo& field, const GraphRef& body)>& map);

/// Calls visit(node) for every node of the graph and of all bodies; the nodes of a body come before the node
/// that holds it. Inputs and params of a graph come first: this is the order in which a reader of the text
/// form makes the nodes.
void for_each_node(const Graph& g, const std::function<void(const Node&)>& visit);

/// Whether some node, in any body, satisfies `test`.
bool any_node(const Graph& g, const std::function<bool(const Node&)>& test);

}  // namespace rlx::ir
