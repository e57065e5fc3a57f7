#include "rlx/lang/builders/builder.h"

namespace rlx::detail {

void truncate(ir::Graph& g, size_t len) {
  while (g.len() > len) g.erase(g.nodes().back()->id);
}

ir::Exprs on_graph(ir::Graph& g, const Values& values) {
  ir::Exprs out;
  for (const Value v : values) out.push_back({&g, v});
  return out;
}

ir::Expr checked(ir::Expr result, const Declared& declared) {
  if (!declared || result.shape() == *declared) return result;
  const ir::Node& n = result.graph->node(result);
  ShapeError e(cat(n.op->name, ": declared ", *declared, ", its operands give ", result.shape()));
  if (n.origin) e.set_origin(n.origin->text());
  throw e;
}

void name_place(Error& e, const ir::OriginRef& origin) {
  if (e.origin().empty() && origin) e.set_origin(origin->text());
}

void name_place(Error& e, const Loc& loc) {
  if (loc.line() == 0) return;
  auto origin = std::make_shared<ir::Origin>();
  origin->file = loc.file_name();
  origin->line = loc.line();
  name_place(e, origin);
}

}  // namespace rlx::detail
