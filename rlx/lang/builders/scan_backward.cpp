#include "rlx/lang/builders/scan_backward.h"

#include "rlx/ir/inline.h"
#include "rlx/ir/leaves.h"
#include "rlx/lang/graph.h"
#include "rlx/ops/control/scan.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx {
namespace {

struct Sweep {
  ir::Expr init, upstream;
  ir::Exprs xs;
  const ir::Graph& body_vjp;
  bool save_trajectory;
};

Shape slice_of(const Shape& stacked) {
  if (stacked.rank() == 0)
    throw invalid("scan_backward: a sequence must have a leading axis, found ", stacked);
  return stacked.with_dims(Dims(stacked.dims().begin() + 1, stacked.dims().end()));
}

// (d, carry before, [upstream slice], slices...) -> (d before, gradients of the slices...)
ir::Graph reverse_step(const Sweep& s) {
  ir::Graph g("reverse_step");
  const auto input = [&g](std::string name, const Shape& shape) {
    return ir::Expr{&g, g.input(name, shape)};
  };
  ir::Expr d = input("d", s.init.shape());
  const ir::Expr carry = input("carry", s.init.shape());
  if (s.save_trajectory) d = ops::add(d, input("upstream", s.init.shape()));
  ir::Exprs slices = {carry};
  for (size_t i = 0; i < s.xs.size(); ++i) slices.push_back(input(cat("x", i), slice_of(s.xs[i].shape())));
  ir::Exprs leaves;
  size_t next = 0;
  for (const NodeId id : s.body_vjp.leaves()) {
    const bool is_gradient = s.body_vjp.node(id).name == "d_output";
    if (!is_gradient && next == slices.size())
      throw invalid("scan_backward: body_vjp takes more than carry, ", s.xs.size(), " slices and d_output");
    leaves.push_back(is_gradient ? d : slices[next++]);
  }
  const ir::Exprs out = ir::inline_graph(g, s.body_vjp, leaves);
  if (out.size() != slices.size()) {
    throw invalid("scan_backward: body_vjp returns ", out.size(), " gradients; carry and ", s.xs.size(),
                  " slices need ", slices.size());
  }
  g.set_outputs(Values(out.begin(), out.end()));
  return g;
}

ir::Expr rows(ir::Expr t, int64_t start, int64_t count) { return ops::narrow(t, 0, start, count); }

// Steps [start, start + count) from the end, given the carries before them: d before, then gradients of
// slices.
ir::Exprs reverse_segment(const Sweep& s, const ir::Graph& step, ir::Expr d, ir::Expr before, int64_t start,
                          int64_t count) {
  ir::Exprs sequences = {before};
  if (s.save_trajectory) sequences.push_back(rows(s.upstream, start, count));
  for (const ir::Expr& x : s.xs) sequences.push_back(rows(x, start, count));
  return ops::scan_all(*d.graph, {d}, {}, sequences, step, count, true);
}

ir::Expr first_gradient(const Sweep& s) { return s.save_trajectory ? ir::zeros_like(s.init) : s.upstream; }

ir::Exprs sweep(const Sweep& s, ir::Expr trajectory, int64_t length) {
  if (length < 1) throw invalid("scan_backward: length ", length, "; it must be 1 or more");
  const ir::Expr start = ops::unsqueeze(s.init, 0);
  const ir::Expr before = length == 1 ? start : ops::concat({start, rows(trajectory, 0, length - 1)}, 0);
  return reverse_segment(s, reverse_step(s), first_gradient(s), before, 0, length);
}

// forward_body with the carry before each step as per-step output.
ir::Graph recording(const ir::Graph& forward_body) {
  ir::Graph g = forward_body;
  g.set_outputs({g.outputs().at(0), g.value(g.leaves().at(0))});
  return g;
}

ir::Exprs sweep_checkpointed(const Sweep& s, ir::Expr trajectory, int64_t length, int64_t k,
                             const std::optional<ir::Graph>& forward_body) {
  if (k < 1 || k > length)
    throw invalid("scan_backward: num_checkpoints ", k, " for length ", length, "; 1 to the length");
  if (!forward_body)
    throw invalid("scan_backward: checkpoints need forward_body, which computes the carries between them");
  const ir::Graph step = reverse_step(s), record = recording(*forward_body);
  const auto end_of = [&](int64_t i) { return ((i + 1) * length + k - 1) / k; };  // one behind the last step
  ir::Expr d = first_gradient(s);
  std::vector<ir::Exprs> parts(s.xs.size());
  for (int64_t i = k - 1; i >= 0; --i) {
    const int64_t start = i == 0 ? 0 : end_of(i - 1), count = end_of(i) - start;
    const ir::Expr carry = i == 0 ? s.init : ops::reshape(rows(trajectory, i - 1, 1), s.init.shape().dims());
    ir::Exprs slices;
    for (const ir::Expr& x : s.xs) slices.push_back(rows(x, start, count));
    const ir::Expr before = ops::scan_all(*d.graph, {carry}, {}, slices, record, count)[1];
    const ir::Exprs out = reverse_segment(s, step, d, before, start, count);
    d = out[0];
    for (size_t x = 0; x < parts.size(); ++x) parts[x].insert(parts[x].begin(), out[x + 1]);
  }
  ir::Exprs results = {d};
  for (const ir::Exprs& p : parts) results.push_back(ops::concat(p, 0));
  return results;
}

ir::Expr pick(const ir::Exprs& results, size_t xs_idx) {
  if (xs_idx + 1 >= results.size())
    throw invalid("scan_backward: xs_idx ", xs_idx, "; there are ", results.size() - 1, " sequences");
  return results[xs_idx + 1];
}

}  // namespace

Value ScanBackwardBuilder::scan_backward(Value init, Value trajectory, Value upstream, const Values& xs,
                                         const ir::Graph& body_vjp, int64_t length, bool save_trajectory,
                                         const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] {
    return sweep({t(init), t(upstream), ts(xs), body_vjp, save_trajectory}, t(trajectory), length)[0];
  });
}

Value ScanBackwardBuilder::scan_backward_xs(Value init, Value trajectory, Value upstream, const Values& xs,
                                            const ir::Graph& body_vjp, int64_t length, bool save_trajectory,
                                            size_t xs_idx, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] {
    return pick(sweep({t(init), t(upstream), ts(xs), body_vjp, save_trajectory}, t(trajectory), length),
                xs_idx);
  });
}

Value ScanBackwardBuilder::scan_backward_with_checkpoints(Value init, Value trajectory, Value upstream,
                                                          const Values& xs, const ir::Graph& body_vjp,
                                                          int64_t length, bool save_trajectory,
                                                          int64_t num_checkpoints,
                                                          const std::optional<ir::Graph>& forward_body,
                                                          const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] {
    return sweep_checkpointed({t(init), t(upstream), ts(xs), body_vjp, save_trajectory}, t(trajectory),
                              length, num_checkpoints, forward_body)[0];
  });
}

Value ScanBackwardBuilder::scan_backward_xs_with_checkpoints(
    Value init, Value trajectory, Value upstream, const Values& xs, const ir::Graph& body_vjp, int64_t length,
    bool save_trajectory, int64_t num_checkpoints, const std::optional<ir::Graph>& forward_body,
    size_t xs_idx, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] {
    return pick(sweep_checkpointed({t(init), t(upstream), ts(xs), body_vjp, save_trajectory}, t(trajectory),
                                   length, num_checkpoints, forward_body),
                xs_idx);
  });
}

}  // namespace rlx
