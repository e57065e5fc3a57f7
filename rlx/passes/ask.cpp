#include "rlx/passes/ask.h"

namespace rlx::passes {

ir::Support runs(const ir::Target& target, const ir::Graph& g, const ir::Node& n) {
  Shapes types;
  ir::Layouts in, out;
  for (const ir::Value v : n.inputs) {
    types.push_back(g.shape(v));
    in.push_back(ir::Layout::row_major(types.back().dims()));
  }
  for (const Shape& s : n.shapes) out.push_back(ir::Layout::row_major(s.dims()));
  return target.accepts(n, types, in, out);
}

}  // namespace rlx::passes
