#include "rlx/ops/control/custom_op.h"

#include "rlx/ir/text.h"

namespace rlx::ops {

Exprs custom_op(Graph& g, std::string_view name, std::string_view attrs, const Exprs& inputs,
                const OpTable& ops) {
  const OpDef& op = ops.at(name);
  const NodeId id = g.append(op, ir::parse_attrs(attrs, op, ops), Values(inputs.begin(), inputs.end()));
  Exprs out;
  for (uint32_t i = 0; i < g.node(id).shapes.size(); ++i) out.push_back({&g, g.value(id, i)});
  return out;
}

Expr custom_op_packed(Graph& g, std::string_view name, std::string_view attrs, const Exprs& inputs,
                      const Shape& out_shape, const OpTable& ops) {
  const FieldInfo* f = ops.at(name).find_field("out_shape");
  std::string with_type(attrs);
  if (f != nullptr && f->kind == AttrKind::shape)
    with_type += cat(attrs.empty() ? "" : ", ", "out_shape=", out_shape);
  const Exprs out = custom_op(g, name, with_type, inputs, ops);
  if (out.size() == 1 && out[0].shape() == out_shape) return out[0];
  Shapes given;
  for (const Expr& t : out) given.push_back(t.shape());
  if (!out.empty()) g.erase(out[0].value.node);
  throw invalid("custom_op_packed: operator '", name, "' gives ", join(given), "; out_shape is ", out_shape);
}

}  // namespace rlx::ops
