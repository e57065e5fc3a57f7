#include "rlx/ops/control/body.h"

namespace rlx::ops {

Shapes leaf_shapes(const Graph& body) {
  Shapes out;
  for (const NodeId id : body.leaves()) out.push_back(body.node(id).shapes[0]);
  return out;
}

Shapes output_shapes(const Graph& body) {
  Shapes out;
  for (const Value v : body.outputs()) out.push_back(body.shape(v));
  return out;
}

void check_same(Infer& c, const Shape& a, const Shape& b, std::string_view what) {
  bool differ = a.rank() != b.rank() || a.dtype() != b.dtype();
  for (int i = 0; !differ && i < a.rank(); ++i) differ = decide_equal(a.dim(i), b.dim(i)) == false;
  if (differ) c.fail(what, ": ", a, " and ", b);
  for (int i = 0; i < a.rank(); ++i) c.same(a.dim(i), b.dim(i), what);
}

void check_body(Infer& c, const GraphRef& body, std::string_view what, const Shapes& leaves) {
  if (body == nullptr) c.fail(what, " is missing");
  const Shapes inner = leaf_shapes(*body);
  if (inner.size() != leaves.size()) {
    c.fail(what, " '", body->name(), "' has ", inner.size(), " inputs; it is given ", leaves.size());
  }
  for (size_t i = 0; i < inner.size(); ++i)
    check_same(c, inner[i], leaves[i], cat("types of input ", i, " of ", what, " differ"));
}

}  // namespace rlx::ops
