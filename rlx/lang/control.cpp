#include "rlx/lang/control.h"

#include "rlx/lang/apply.h"
#include "rlx/ops/control/custom_op.h"
#include "rlx/ops/control/if.h"
#include "rlx/ops/control/scan.h"
#include "rlx/ops/control/while.h"

namespace rlx {
namespace detail {
namespace {

Tensors joined(std::initializer_list<const Tensors*> lists) {
  Tensors out;
  for (const Tensors* list : lists) out.insert(out.end(), list->begin(), list->end());
  return out;
}

// The graph that a loop or branch on these tensors will stand in; the tensors are brought into it.
ir::Graph& enter(std::string_view what, std::initializer_list<Tensors*> lists) {
  Tensors all;
  for (const Tensors* list : lists) {
    for (const Tensor& t : *list) {
      if (t.is_empty())
        throw invalid(what, ": operand ", all.size(),
                      " is an empty tensor; a tensor comes from a Tracer or from an operator");
      all.push_back(t);
    }
  }
  if (all.empty()) throw invalid(what, ": it has no operands");
  ir::Graph& home = BodyScope::home_of_control(all);
  if (BodyScope* around = BodyScope::of(home)) {
    for (Tensors* list : lists) {
      for (Tensor& t : *list) t = around->localize(t);
    }
  }
  return home;
}

Tensors arguments(BodyScope& scope, std::string_view name, const Tensors& outer) {
  Tensors out;
  for (const Tensor& t : outer) out.push_back(scope.argument(cat(name, "_", out.size()), t.shape()));
  return out;
}

Tensors slices(BodyScope& scope, const Tensors& xs) {
  Tensors out;
  for (const Tensor& x : xs) {
    const Shape& s = x.shape();
    if (s.rank() == 0)
      throw invalid("scan: sequence ", out.size(), " of xs is ", s,
                    "; its first axis must be that of the steps");
    out.push_back(
        scope.argument(cat("x_", out.size()), s.with_dims(Dims(s.dims().begin() + 1, s.dims().end()))));
  }
  return out;
}

GraphRef finished(BodyScope& scope) { return std::make_shared<const ir::Graph>(std::move(scope.graph())); }

template <ir::OpRecord Op>
Tensors append(ir::Graph& home, typename Op::Attrs attrs, const Tensors& operands, const Loc& loc) {
  return build_at(home, loc, [&] {
    const ir::Exprs results =
        ir::make_all<Op>(home, std::move(attrs), Values(operands.begin(), operands.end()));
    return Tensors(results.begin(), results.end());
  });
}

}  // namespace

void wrong_arity(const BodyScope& scope, int takes, size_t given) {
  throw invalid(scope.name(), ": the body takes ", takes, takes == 1 ? " tensor" : " tensors",
                "; it is given ", given);
}

Tensors build_scan(const Tensors& init, const ScanOptions& options, const BodyFunction& body,
                   const Loc& loc) {
  return run_at(loc, [&] {
    Tensors carries = init, consts = options.consts, xs = options.xs;
    ir::Graph& home = enter("scan", {&carries, &consts, &xs});
    BodyScope scope("scan", home);
    const Tensors c = arguments(scope, "carry", carries), k = arguments(scope, "const", consts),
                  x = slices(scope, xs);
    scope.set_outputs(body(scope, joined({&c, &k, &x})));
    // What was captured is constant: its leaves stand in front of the slices.
    if (!x.empty()) {
      for (const Tensor& leaf : scope.leaves_of_captured())
        scope.graph().move_leaf_before(Value(leaf).node, Value(x[0]).node);
    }
    consts = joined({&consts, &scope.captured()});
    if (!options.length && xs.empty())
      throw invalid("scan: the number of steps is not known; set length, or give sequences in xs");
    ops::Scan::Attrs a;
    a.body = finished(scope);
    a.length = options.length ? *options.length : xs[0].dim(0);
    a.carries = int(carries.size());
    a.consts = int(consts.size());
    a.reverse = options.reverse;
    a.checkpoints = options.checkpoints;
    return append<ops::Scan>(home, std::move(a), joined({&carries, &consts, &xs}), loc);
  });
}

Tensors build_while(const Tensors& init, const WhileOptions& options, const BodyFunction& cond,
                    const BodyFunction& body, const Loc& loc) {
  return run_at(loc, [&] {
    Tensors carries = init, consts = options.consts;
    ir::Graph& home = enter("while", {&carries, &consts});
    BodyScope condition("while", home);
    {
      const Tensors c = arguments(condition, "carry", carries), k = arguments(condition, "const", consts);
      condition.set_outputs(cond(condition, joined({&c, &k})));
    }
    BodyScope step("while", home);
    const Tensors c = arguments(step, "carry", carries), k = arguments(step, "const", consts);
    step.capture_all(condition.captured());
    step.set_outputs(body(step, joined({&c, &k})));
    condition.capture_all(step.captured());
    const Tensors captured = step.captured();
    ops::While::Attrs a;
    a.cond = finished(condition);
    a.body = finished(step);
    a.carries = int(carries.size());
    a.max_iterations = options.max_iterations;
    return append<ops::While>(home, std::move(a), joined({&carries, &consts, &captured}), loc);
  });
}

Tensors build_if(const Tensor& predicate, const Tensors& captures, const BodyFunction& then_body,
                 const BodyFunction& else_body, const Loc& loc) {
  return run_at(loc, [&] {
    Tensors head = {predicate}, given = captures;
    ir::Graph& home = enter("if", {&head, &given});
    BodyScope yes("if", home);
    yes.set_outputs(then_body(yes, arguments(yes, "capture", given)));
    BodyScope no("if", home);
    const Tensors args = arguments(no, "capture", given);
    no.capture_all(yes.captured());
    no.set_outputs(else_body(no, args));
    yes.capture_all(no.captured());
    const Tensors captured = no.captured();
    ops::If::Attrs a;
    a.then_body = finished(yes);
    a.else_body = finished(no);
    return append<ops::If>(home, std::move(a), joined({&head, &given, &captured}), loc);
  });
}

}  // namespace detail

Tensors custom_op(std::string_view name, std::string_view attrs, const Tensors& operands,
                  const ir::OpTable& ops, const Loc& loc) {
  const detail::Gathered in = detail::gather_operands(name, operands, loc);
  return build_at(in.graph, loc, [&] {
    const ir::Exprs results = ops::custom_op(in.graph, name, attrs, in.operands, ops);
    return Tensors(results.begin(), results.end());
  });
}

}  // namespace rlx
