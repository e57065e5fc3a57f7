#include "rlx/ir/rewrite.h"

#include <unordered_map>

#include "rlx/ir/bodies.h"

namespace rlx::ir {
namespace {

class Rewriter {
 public:
  explicit Rewriter(const RewriteRule& rule) : rule_(rule) {}

  Rewritten run(const Graph& from) {
    from.check_order();
    Rewritten out{Graph(from.name())};
    out.graph.assume_sizes_of(from);
    Cloner copy(out.graph);
    for (const Node* n : from.nodes()) {
      const AttrsRef attrs = map_bodies(
          *n, [&](const FieldInfo&, const GraphRef& body) { return rewritten(body, out.changes); });
      if (attrs == n->attrs) {
        node(copy, *n, out.changes);
      } else {
        Node inner = *n;
        inner.attrs = attrs;
        node(copy, inner, out.changes);
      }
    }
    copy.copy_outputs(from);
    return out;
  }

 private:
  void node(Cloner& copy, const Node& n, size_t& changes) {
    const NodeId first = copy.to().next_id();
    const auto results = n.op->traits.leaf ? std::nullopt : rule_(copy, n);
    if (!results) {
      copy.copy(n);
      return;
    }
    ++changes;
    copy.set_results(n, *results);
    // What was made in place of a named node takes its name.
    const NodeId made = results->size() == 1 ? (*results)[0].node : kNoNode;
    if (made != kNoNode && made >= first && copy.to().node(made).name.empty())
      copy.to().set_name(made, n.name);
  }

  GraphRef rewritten(const GraphRef& body, size_t& changes) {
    const auto [it, is_new] = done_.try_emplace(body.get(), body, 0);
    auto& [result, count] = it->second;  // stays in place when the table grows
    if (is_new) {
      Rewritten inner = run(*body);
      count = inner.changes;
      if (count > 0) result = std::make_shared<const Graph>(std::move(inner.graph));
    }
    changes += count;
    return result;
  }

  const RewriteRule& rule_;
  std::unordered_map<const Graph*, std::pair<GraphRef, size_t>> done_;
};

}  // namespace

Rewritten rewrite(const Graph& from, const RewriteRule& rule) { return Rewriter(rule).run(from); }

}  // namespace rlx::ir
