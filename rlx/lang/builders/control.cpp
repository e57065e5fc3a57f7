#include "rlx/lang/builders/control.h"

#include "rlx/lang/graph.h"
#include "rlx/ops/control/custom_fn.h"
#include "rlx/ops/control/custom_op.h"
#include "rlx/ops/control/if.h"
#include "rlx/ops/control/scan.h"
#include "rlx/ops/control/while.h"

namespace rlx {

Values ControlBuilder::scan(const Values& init, const ScanParts& parts, const ir::Graph& body,
                            const Loc& loc) {
  return many(loc, [&] {
    ops::Scan::Attrs a;
    a.body = std::make_shared<const ir::Graph>(body);
    a.carries = int(init.size());
    a.consts = int(parts.consts.size());
    a.reverse = parts.reverse;
    a.checkpoints = parts.checkpoints;
    if (parts.length) {
      a.length = *parts.length;
    } else if (!parts.xs.empty() && graph().shape(parts.xs[0]).rank() > 0) {
      a.length = graph().shape(parts.xs[0]).dim(0);
    } else {
      throw invalid("scan: the number of steps is not known; set length, or give sequences in xs");
    }
    Values operands = init;
    operands.insert(operands.end(), parts.consts.begin(), parts.consts.end());
    operands.insert(operands.end(), parts.xs.begin(), parts.xs.end());
    return ir::make_all<ops::Scan>(graph(), std::move(a), operands);
  });
}

Value ControlBuilder::final_carry(const Values& init, const ScanParts& parts, const ir::Graph& body,
                                  const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return t(scan(init, parts, body, loc).at(0)); });
}

Value ControlBuilder::scan(Value init, const ir::Graph& body, Dim length, const Declared& shape,
                           const Loc& loc) {
  return final_carry({init}, {.length = length}, body, shape, loc);
}

Value ControlBuilder::scan_checkpointed(Value init, const ir::Graph& body, Dim length,
                                        int64_t num_checkpoints, const Declared& shape, const Loc& loc) {
  if (num_checkpoints < 1) throw invalid("scan_checkpointed: ", num_checkpoints, " checkpoints; at least 1");
  return final_carry({init}, {.length = length, .checkpoints = num_checkpoints}, body, shape, loc);
}

Value ControlBuilder::scan_with_xs(Value init, const Values& xs, const ir::Graph& body, Dim length,
                                   const Declared& shape, const Loc& loc) {
  return final_carry({init}, {.xs = xs, .length = length}, body, shape, loc);
}

Value ControlBuilder::scan_with_bcasts_and_xs(Value init, const Values& bcasts, const Values& xs,
                                              const ir::Graph& body, Dim length, const Declared& shape,
                                              const Loc& loc) {
  return final_carry({init}, {.consts = bcasts, .xs = xs, .length = length}, body, shape, loc);
}

Value ControlBuilder::scan_trajectory(Value init, const ir::Graph& body, Dim length, const Declared& shape,
                                      const Loc& loc) {
  return one(shape, loc, [&] { return ops::scan_trajectory(t(init), body, length); });
}

Values ControlBuilder::scan_all(const Values& init, const Values& consts, const Values& xs,
                                const ir::Graph& body, Dim length, bool reverse, const Loc& loc) {
  return scan(init, {.consts = consts, .xs = xs, .length = length, .reverse = reverse}, body, loc);
}

Values ControlBuilder::if_(Value predicate, const Values& captures, const ir::Graph& then_body,
                           const ir::Graph& else_body, const Loc& loc) {
  return many(loc, [&] { return ops::if_else(t(predicate), ts(captures), then_body, else_body); });
}

Values ControlBuilder::while_(const Values& init, const Values& consts, const ir::Graph& cond,
                              const ir::Graph& body, std::optional<int64_t> max_iterations, const Loc& loc) {
  return many(loc,
              [&] { return ops::while_loop(graph(), ts(init), ts(consts), cond, body, max_iterations); });
}

Values ControlBuilder::custom_op(std::string_view name, std::string_view attrs, const Values& inputs,
                                 const ir::OpTable& ops, const Loc& loc) {
  return many(loc, [&] { return ops::custom_op(graph(), name, attrs, ts(inputs), ops); });
}

Value ControlBuilder::custom_op_packed(std::string_view name, std::string_view attrs, const Values& inputs,
                                       const Shape& out_shape, const ir::OpTable& ops, const Loc& loc) {
  return one({}, loc,
             [&] { return ops::custom_op_packed(graph(), name, attrs, ts(inputs), out_shape, ops); });
}

Value ControlBuilder::custom_fn(const Values& inputs, const ir::Graph& fwd_body,
                                const std::optional<ir::Graph>& vjp_body,
                                const std::optional<ir::Graph>& jvp_body, const Declared& shape,
                                const Loc& loc) {
  return one(shape, loc,
             [&] { return ops::custom_fn(graph(), ts(inputs), fwd_body, vjp_body, jvp_body).at(0); });
}

MultiOutputHandle ControlBuilder::custom_fn_multi(const Values& inputs, const ir::Graph& fwd_body,
                                                  const std::optional<ir::Graph>& vjp_body,
                                                  const std::optional<ir::Graph>& jvp_body, const Loc& loc) {
  return build_at(graph(), loc, [&] {
    const ir::Exprs results = ops::custom_fn(graph(), ts(inputs), fwd_body, vjp_body, jvp_body);
    if (results.empty()) throw invalid("custom_fn_multi: the body of '", fwd_body.name(), "' has no outputs");
    MultiOutputHandle out{results[0], {}, {}, results.size()};
    Dim offset = 0;
    for (const ir::Expr& r : results) {
      out.sub_shapes.push_back(r.shape());
      out.offsets.push_back(offset);
      offset = offset + r.shape().num_elements();
    }
    return out;
  });
}

Value MultiOutputHandle::output(const ir::Graph& g, size_t i) const {
  if (i >= n_outputs) throw invalid("custom_fn_multi: there is no output ", i, "; it has ", n_outputs);
  return g.value(source.node, uint32_t(i));
}

}  // namespace rlx
