#include "rlx/lang/apply.h"

#include <cmath>
#include <limits>

#include "rlx/lang/body.h"

namespace rlx::detail {
namespace {

std::string operand_name(const ir::OpDef& op, size_t i) {
  if (op.operands.empty()) return cat(i);
  std::string name = op.operands[std::min(i, op.operands.size() - 1)];
  const bool list = name.ends_with("...");
  name = name.substr(0, name.find_first_of("?."));
  return list ? cat(name, " ", i + 1 - op.operands.size()) : name;
}

// The tensors among the operands, none of them empty.
Tensors tensors_of(const ir::OpDef& op, const Operands& operands) {
  Tensors out;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].is_number() && operands[i].tensor().is_empty()) {
      throw invalid(op.name, ": operand ", operand_name(op, i),
                    " is an empty tensor; a tensor comes from a Tracer or from an operator");
    }
    if (!operands[i].is_number()) out.push_back(operands[i].tensor());
  }
  if (out.empty()) throw invalid(op.name, ": it has no tensor among its operands");
  return out;
}

Literal scalar_of(const ir::OpDef& op, double v, DType dtype) {
  const Literal scalar = Literal::scalar(dtype, v);
  if (is_complex(dtype)) return scalar;
  const bool held = is_float(dtype) ? std::isfinite(scalar.real_at(0)) || !std::isfinite(v)
                                    : scalar.real_at(0) == v && std::fabs(v) <= 0x1p53;
  if (held) return scalar;
  const bool wide = std::fabs(v) > double(std::numeric_limits<float>::max());
  const DType wider = v == std::trunc(v) && !is_float(dtype) ? DType::i64 : wide ? DType::f64 : DType::f32;
  throw invalid(op.name, ": the number ", v, " is not a value of ", dtype, "; cast the tensor first, to ",
                wider);
}

}  // namespace

Gathered gather_operands(std::string_view what, const Tensors& operands, const Loc& loc) {
  return run_at(loc, [&]() -> Gathered {
    Tensors given;
    for (const Tensor& t : operands) {
      if (!t.is_empty()) given.push_back(t);
    }
    if (operands.empty() || operands[0].is_empty())
      throw invalid(what, ": the tensor is empty; a tensor comes from a Tracer or from an operator");
    ir::Graph& g = BodyScope::home(given);
    BodyScope* body = BodyScope::of(g);
    ir::Exprs out;
    for (const Tensor& t : operands)
      out.push_back(t.is_empty() ? ir::Expr{} : ir::Expr(body != nullptr ? body->localize(t) : t));
    return {g, std::move(out)};
  });
}

Operands with_list(Operands fixed, const Tensors& list) {
  fixed.insert(fixed.end(), list.begin(), list.end());
  return fixed;
}

Tensors emit(const ir::OpDef& op, ir::AttrsRef attrs, Operands operands, const Loc& loc) {
  const bool optional = op.max_operands >= 0;  // members of a list are not
  while (optional && int(operands.size()) > op.min_operands && !operands.back().is_number() &&
         operands.back().tensor().is_empty())
    operands.pop_back();
  DType dtype = DType::f32;  // of numbers
  ir::Graph& g = run_at(loc, [&]() -> ir::Graph& {
    const Tensors given = tensors_of(op, operands);
    ir::Graph& home = BodyScope::home(given);
    if (BodyScope* body = BodyScope::of(home)) {
      for (Operand& o : operands) {
        if (!o.is_number()) o = body->localize(o.tensor());
      }
    }
    dtype = given.back().dtype();
    return home;
  });
  return build_at(g, loc, [&] {
    Values values;
    for (const Operand& o : operands) {
      values.push_back(o.is_number() ? g.constant(scalar_of(op, o.number(), dtype)) : Value(o.tensor()));
    }
    const ir::NodeId id = g.append(op, std::move(attrs), values);
    Tensors out;
    for (uint32_t i = 0; i < g.node(id).shapes.size(); ++i) out.push_back(ir::Expr{&g, g.value(id, i)});
    return out;
  });
}

}  // namespace rlx::detail
