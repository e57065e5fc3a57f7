#include "rlx/lang/builders/builder.h"

#include "rlx/ops/all.h"

namespace rlx {
namespace detail {

void truncate(ir::Graph& g, size_t len) {
  while (g.len() > len) g.erase(g.nodes().back()->id);
}

}  // namespace detail

Value Builder::input(const std::string& name, const Shape& shape, const Loc& loc) {
  const ir::LocationScope scope(*this, loc);
  return ir::Graph::input(name, shape);
}

Value Builder::param(const std::string& name, const Shape& shape, const Loc& loc) {
  const ir::LocationScope scope(*this, loc);
  return ir::Graph::param(name, shape);
}

Value Builder::constant(const Literal& value, const Loc& loc) {
  const ir::LocationScope scope(*this, loc);
  return ir::Graph::constant(value);
}

Value Builder::constant(std::span<const double> data, const Shape& shape, const Loc& loc) {
  const ir::LocationScope scope(*this, loc);
  if (!shape.is_static()) throw invalid("constant: ", shape, " has a symbolic size; constants need numbers");
  if (int64_t(data.size()) != shape.elements())
    throw invalid("constant: ", data.size(), " values for ", shape, "; it has ", shape.elements());
  return ir::Graph::constant(Literal::reals(shape, data));
}

Value Builder::append_node(std::string_view op, const Values& inputs, const Declared& shape,
                           const std::string& name, ir::AttrsRef attrs, const Loc& loc) {
  return one(shape, loc,
             [&] { return t(value(append(ops::table().at(op), std::move(attrs), inputs, name))); });
}

Value Builder::add_node(std::string_view op, const Values& inputs, const Declared& shape, const Loc& loc) {
  return append_node(op, inputs, shape, {}, nullptr, loc);
}

ir::Exprs Builder::ts(const Values& values) {
  ir::Exprs out;
  for (const Value v : values) out.push_back(t(v));
  return out;
}

ir::Expr Builder::checked(ir::Expr result, const Declared& declared) const {
  if (!declared || result.shape() == *declared) return result;
  const ir::Node& n = node(result);
  ShapeError e(cat(n.op->name, ": declared ", *declared, ", its operands give ", result.shape()));
  if (n.origin) e.set_origin(n.origin->text());
  throw e;
}

}  // namespace rlx
