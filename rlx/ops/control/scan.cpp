#include "rlx/ops/control/scan.h"

#include <cstring>

#include "rlx/ir/interpreter.h"
#include "rlx/ir/leaves.h"
#include "rlx/ops/control/body.h"
#include "rlx/ops/control/scan_parts.h"
#include "rlx/ops/elementwise/activation.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {

namespace {

void check_gate(Infer& c, const Scan::Attrs& a, const Shapes& leaves) {
  const auto at = gate_leaf(a);
  if (!at) return;
  const bool carried = a.gate == ScanGate::carry;
  if (carried ? a.carries == 0 : *at >= leaves.size())
    c.fail("gate is ", carried ? "carry" : "sequence", " and there is none");
  if (leaves[*at] != Shape::scalar(DType::bool_))
    c.fail("gate: a step sees ", leaves[*at], " as its flag; it must be bool[]");
}

}  // namespace

Shapes Scan::infer(Infer& c, Attrs& a) {
  if (a.carries < 0 || a.consts < 0 || a.carries + a.consts > c.count()) {
    c.fail(a.carries, " carries and ", a.consts, " constants of ", c.count(), " operands");
  }
  if (a.length.is_inferred()) c.fail("length is -1; give a number or a symbol");
  if (a.checkpoints < 0) c.fail("checkpoints is ", a.checkpoints, "; it must not be negative");
  if (a.checkpoints > 0 && a.length.is_symbolic())
    c.fail("checkpoints is ", a.checkpoints, " and length ", a.length, " is symbolic; bind it first");
  if (a.length.is_static() && a.checkpoints >= a.length.value()) a.checkpoints = 0;  // every step is kept
  Shapes leaves;
  for (int i = 0; i < c.count(); ++i) {
    if (i < a.carries + a.consts) {
      leaves.push_back(c.in(i));
      continue;
    }
    if (c.in(i).rank() == 0)
      c.fail("sequence ", i - a.carries - a.consts, " is ", c.in(i), "; it needs a leading axis of ",
             a.length);
    if (decide_equal(c.in(i).dim(0), a.length) == false) {
      c.fail("sequence ", i - a.carries - a.consts, " is ", c.in(i), "; its first axis must be the length ",
             a.length);
    }
    c.same(c.in(i).dim(0), a.length, "lengths");
    leaves.push_back(slice_of(c.in(i)));
  }
  check_gate(c, a, leaves);
  check_body(c, a.body, "body", leaves);
  const Shapes outputs = output_shapes(*a.body);
  if (int(outputs.size()) < a.carries) {
    c.fail("body '", a.body->name(), "' has ", outputs.size(), " outputs; it must return the ", a.carries,
           " carries first");
  }
  Shapes results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (int(i) < a.carries) {
      check_same(c, outputs[i], c.in(int(i)), cat("types of carry ", i, " before and after a step differ"));
      results.push_back(c.in(int(i)));
    } else {
      results.push_back(stacked(outputs[i], a.length));
    }
  }
  return results;
}

Literals Scan::reference(const Eval& c, const Attrs& a) {
  const int64_t length = a.length.value();
  Literals carries(c.operands.begin(), c.operands.begin() + a.carries);
  Literals ys;
  for (size_t i = size_t(a.carries); i < c.results.size(); ++i) ys.push_back(Literal::zeros(c.results[i]));
  for (int64_t step = 0; step < length; ++step) {
    const int64_t t = a.reverse ? length - 1 - step : step;
    if (a.gate == ScanGate::carry && carries[0].real_at(0) == 0) break;
    if (a.gate == ScanGate::sequence && c.in(a.carries + a.consts).real_at(t) == 0) continue;
    Literals in = carries;
    for (int i = a.carries; i < c.count(); ++i) {
      const Literal& x = c.in(i);
      if (i < a.carries + a.consts) {
        in.push_back(x);
        continue;
      }
      const Shape slice = slice_of(x.shape());
      const auto size = size_t(slice.size_bytes());
      in.push_back(Literal::copy_of(slice, x.bytes().subspan(size_t(t) * size, size)));
    }
    const Literals out = c.run(a.body, in);
    carries.assign(out.begin(), out.begin() + a.carries);
    for (size_t i = 0; i < ys.size(); ++i) {
      const auto row = out[size_t(a.carries) + i].bytes();
      if (!row.empty())
        std::memcpy(ys[i].mutable_bytes().data() + size_t(t) * row.size(), row.data(), row.size());
    }
  }
  return join_lists<Literal>({carries, ys});
}

// One loop that carries values and tangents side by side.
Exprs Scan::jvp(const Jvp& c, const Attrs& a) {
  const ScanOperands in = scan_operands(c, a);
  const size_t n = in.carries.size(), total = size_t(c.count());
  const Shapes outputs = output_shapes(*a.body), leaves = leaf_shapes(*a.body);
  std::vector<bool> active(total);
  Exprs dcarries, dconsts, dxs;
  for (size_t i = 0; i < total; ++i) {
    active[i] = is_differentiable(leaves[i].dtype()) && (i < n || c.has_dx(int(i)));
    if (active[i]) (i < n ? dcarries : i < n + in.consts.size() ? dconsts : dxs).push_back(c.dx(int(i)));
  }
  const GraphRef body = c.bodies.jvp(*a.body, active);
  const Exprs carries = join_lists<Expr>({in.carries, dcarries}),
              consts = join_lists<Expr>({in.consts, dconsts}), xs = join_lists<Expr>({in.xs, dxs});
  const Shapes inputs = join_lists<Shape>({shapes_of(carries), shapes_of(consts), slices_of(xs)});
  const GraphRef joint = make_body(a.body->name() + "_jvp", inputs, [&](Graph& g, const Exprs& x) {
    size_t at = 0;
    const auto next = [&](size_t count) { return at += count, take(x, at - count, count); };
    const Exprs p = next(n), dp = next(dcarries.size()), q = next(in.consts.size()),
                dq = next(dconsts.size()), s = next(in.xs.size()), ds = next(dxs.size());
    const Exprs out = inline_graph(g, *body, join_lists<Expr>({p, q, s, dp, dq, ds}));
    // out: carries', ys, then the tangents of those that have one; wanted: carries', dcarries', ys, dys.
    const Exprs primal = take(out, 0, outputs.size()),
                tangent = take(out, outputs.size(), out.size() - outputs.size());
    return join_lists<Expr>({take(primal, 0, n), take(tangent, 0, dcarries.size()),
                             take(primal, n, primal.size() - n),
                             take(tangent, dcarries.size(), tangent.size() - dcarries.size())});
  });
  const Exprs out = emit_scan(c.graph, {carries, consts, xs}, like(a, joint));
  Exprs tangents(outputs.size());
  c.replacements.assign(outputs.size(), Expr{});
  size_t dcarry = n, y = n + dcarries.size(), dy = y + (outputs.size() - n);
  for (size_t i = 0; i < outputs.size(); ++i) {
    c.replacements[i] = i < n ? out[i] : out[y++];
    if (is_differentiable(outputs[i].dtype())) tangents[i] = i < n ? out[dcarry++] : out[dy++];
  }
  return tangents;
}

namespace {

GraphRef sample_body(std::string_view kind) {
  const auto f = [](const char* s) { return parse_shape(s); };
  if (kind == "rnn") {  // carry, w, x -> tanh(carry w + x)
    return make_body("rnn", {f("f32[2,3]"), f("f32[3,3]"), f("f32[2,3]")},
                     [](Graph&, const Exprs& x) { return Exprs{tanh(matmul(x[0], x[1]) + x[2])}; });
  }
  if (kind == "pair") {  // two carries, one output of another size
    return make_body("pair", {f("f32[2]"), f("f32[]"), f("f32[]")}, [](Graph&, const Exprs& x) {
      const Expr next = sin(x[0]) * x[2] + x[1];
      return Exprs{next, x[1] * 0.5 + x[2], reshape(next * next, {1, 2})};
    });
  }
  if (kind == "count") {  // an integer carry beside a float one
    return make_body("count", {f("i32[]"), f("f32[3]")}, [](Graph&, const Exprs& x) {
      return Exprs{x[0] + scalar_like(x[0], 1), sigmoid(x[1])};
    });
  }
  if (kind == "until") {  // a flag in front: on while the carry is small
    return make_body("until", {f("bool[]"), f("f32[3]")}, [](Graph&, const Exprs& x) {
      const Expr next = x[1] * x[1] + 0.5;
      return Exprs{less(reduce_sum(next, {0}), scalar_like(next, 6)), next, reduce_sum(x[1], {0})};
    });
  }
  if (kind == "some") {  // slices with a flag in front
    return make_body("some", {f("f32[3]"), f("bool[]"), f("f32[3]")},
                     [](Graph&, const Exprs& x) { return Exprs{sin(x[0]) + x[2], x[0] * x[2]}; });
  }
  // no carries: a map over slices with a constant
  return make_body("map", {f("f32[3]"), f("f32[3]")},
                   [](Graph&, const Exprs& x) { return Exprs{x[0] * exp(x[1])}; });
}

}  // namespace

std::vector<OpSample<Scan::Attrs>> Scan::samples() {
  return {
      {{sample_body("rnn"), 4, 1, 1}, {"f32[2,3]", "f32[3,3]", "f32[4,2,3]"}},
      {{sample_body("rnn"), 1, 1, 1, true, ScanSave::carries}, {"f32[2,3]", "f32[3,3]", "f32[1,2,3]"}},
      {{sample_body("rnn"), 0, 1, 1}, {"f32[2,3]", "f32[3,3]", "f32[0,2,3]"}},
      {{sample_body("pair"), 3, 2, 0, true}, {"f32[2]", "f32[]", "f32[3]"}},
      {{sample_body("pair"), 3, 2, 1}, {"f32[2]", "f32[]", "f32[]"}},
      {{sample_body("count"), 5, 2, 0}, {"i32[]", "f32[3]"}},
      {{sample_body("map"), 3, 0, 1}, {"f32[3]", "f32[3,3]"}},
      {{sample_body("rnn"), 5, 1, 1, false, ScanSave::residuals, 2}, {"f32[2,3]", "f32[3,3]", "f32[5,2,3]"}},
      {{sample_body("pair"), 4, 2, 0, true, ScanSave::residuals, 3}, {"f32[2]", "f32[]", "f32[4]"}},
      {{sample_body("until"), 6, 2, 0, false, ScanSave::residuals, 0, ScanGate::carry},
       {"bool[]", "f32[3] unit"}},
      {{sample_body("until"), 7, 2, 0, false, ScanSave::residuals, 3, ScanGate::carry},
       {"bool[]", "f32[3] unit"}},
      {{sample_body("some"), 5, 1, 0, true, ScanSave::residuals, 0, ScanGate::sequence},
       {"f32[3]", "bool[5]", "f32[5,3]"}},
      {{sample_body("some"), 5, 1, 0, false, ScanSave::residuals, 2, ScanGate::sequence},
       {"f32[3]", "bool[5]", "f32[5,3]"}}};
}

Exprs scan_all(Graph& g, const Exprs& init, const Exprs& consts, const Exprs& xs, Graph body, Dim length,
               bool reverse, ScanSave save) {
  return emit_scan(g, {init, consts, xs},
                   {.body = std::make_shared<const Graph>(std::move(body)),
                    .length = length,
                    .reverse = reverse,
                    .save = save});
}

Exprs scan_all_checkpointed(Graph& g, const Exprs& init, const Exprs& consts, const Exprs& xs, Graph body,
                            int64_t length, int64_t num_checkpoints) {
  if (num_checkpoints < 1) throw invalid("scan_checkpointed: ", num_checkpoints, " checkpoints; at least 1");
  return emit_scan(g, {init, consts, xs},
                   {.body = std::make_shared<const Graph>(std::move(body)),
                    .length = length,
                    .checkpoints = num_checkpoints});
}

Expr scan(Expr init, Graph body, Dim length) {
  return scan_all(*init.graph, {init}, {}, {}, std::move(body), length)[0];
}

Expr scan_with_xs(Expr init, const Exprs& xs, Graph body, Dim length) {
  return scan_all(*init.graph, {init}, {}, xs, std::move(body), length)[0];
}

Expr scan_with_bcasts_and_xs(Expr init, const Exprs& bcasts, const Exprs& xs, Graph body, Dim length) {
  return scan_all(*init.graph, {init}, bcasts, xs, std::move(body), length)[0];
}

Expr scan_trajectory(Expr init, Graph body, Dim length) {
  Values outputs = body.outputs();
  if (outputs.size() != 1)
    throw invalid("scan_trajectory: the body has ", outputs.size(), " outputs; it must return the carry");
  outputs.push_back(outputs[0]);
  body.set_outputs(outputs);
  return scan_all(*init.graph, {init}, {}, {}, std::move(body), length)[1];
}

Expr scan_checkpointed(Expr init, Graph body, Dim length, int64_t num_checkpoints) {
  if (!length.is_static()) throw invalid("scan_checkpointed: length ", length, " is symbolic; bind it first");
  return scan_all_checkpointed(*init.graph, {init}, {}, {}, std::move(body), length.value(),
                               num_checkpoints)[0];
}

}  // namespace rlx::ops
