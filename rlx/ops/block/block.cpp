#include "rlx/ops/block/block.h"

namespace rlx::ops {

Shapes infer_by_decomposition(Infer& c, Exprs (*decompose)(const Lower&, const void*), const void* attrs) {
  Graph g("block");
  Values operands;
  for (int i = 0; i < c.count(); ++i) operands.push_back(g.input(cat("x", i), c.in(i)));
  Shapes out;
  try {
    for (const Expr& t : decompose(Lower{g, operands, {}}, attrs)) out.push_back(t.shape());
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::user) throw;
    c.fail(e.message());
  }
  for (const auto& [name, value] : g.solved_symbols()) c.same(Dim::symbol(name), value, "sizes");
  for (const Constraint& k : g.constraints()) c.same(k.a, k.b, "sizes");
  return out;
}

}  // namespace rlx::ops
