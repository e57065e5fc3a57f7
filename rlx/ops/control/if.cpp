#include "rlx/ops/control/if.h"

#include "rlx/ir/leaves.h"
#include "rlx/ops/control/body.h"
#include "rlx/ops/control/live_rows.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/logical.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/reduce/any_all.h"

namespace rlx::ops {

Shapes If::infer(Infer& c, Attrs& a) {
  if (c.in(0).rank() != 0 || is_complex(c.in(0).dtype())) {
    c.fail("predicate: ", c.in(0), " must be a real or boolean scalar; reduce it with all or any first");
  }
  const Shapes captures(c.in().begin() + 1, c.in().end());
  check_body(c, a.then_body, "then_body", captures);
  check_body(c, a.else_body, "else_body", captures);
  const Shapes yes = output_shapes(*a.then_body), no = output_shapes(*a.else_body);
  if (yes.size() != no.size()) c.fail("then_body has ", yes.size(), " outputs and else_body ", no.size());
  for (size_t i = 0; i < yes.size(); ++i)
    check_same(c, yes[i], no[i], cat("types of output ", i, " of the bodies differ"));
  return yes;
}

Literals If::reference(const Eval& c, const Attrs& a) {
  const bool yes = c.in(0).real_at(0) != 0;
  return c.run(yes ? a.then_body : a.else_body, c.operands.subspan(1));
}

namespace {

Exprs emit(Graph& g, Expr predicate, const Exprs& captures, GraphRef yes, GraphRef no) {
  Values operands{predicate};
  for (const Expr& t : captures) operands.push_back(t);
  return make_all<If>(g, {std::move(yes), std::move(no)}, operands);
}

Exprs rest(const auto& c) {
  Exprs out;
  for (int i = 1; i < c.count(); ++i) out.push_back(c.in(i));
  return out;
}

}  // namespace

// Both branches return their residuals, the one not taken as zeros, so that the gradient is again a branch
// and the taken body runs once.
Exprs If::vjp(const Vjp& c, const Attrs& a) {
  const Exprs captures = rest(c);
  const Shapes outputs = output_shapes(*a.then_body), in = shapes_of(captures);
  std::vector<bool> wanted(captures.size()), seeded(outputs.size());
  Exprs cotangents;
  for (size_t i = 0; i < wanted.size(); ++i)
    wanted[i] = c.wants(int(i) + 1) && is_differentiable(in[i].dtype());
  for (size_t i = 0; i < outputs.size(); ++i) {
    seeded[i] = c.has_dy(int(i)) && is_differentiable(outputs[i].dtype());
    if (seeded[i]) cotangents.push_back(c.dy(int(i)));
  }
  const auto yes = c.bodies.split_vjp(*a.then_body, wanted, seeded, false);
  const auto no = c.bodies.split_vjp(*a.else_body, wanted, seeded, false);
  const size_t n = outputs.size(), ny = yes.residuals.size(), nn = no.residuals.size();

  const GraphRef then_forward = make_body(a.then_body->name(), in, [&](Graph& g, const Exprs& x) {
    return join_lists<Expr>({inline_graph(g, *yes.forward, x), zeros_of(g, no.residuals)});
  });
  const GraphRef else_forward = make_body(a.else_body->name(), in, [&](Graph& g, const Exprs& x) {
    const Exprs out = inline_graph(g, *no.forward, x);
    return join_lists<Expr>({take(out, 0, n), zeros_of(g, yes.residuals), take(out, n, nn)});
  });
  const Exprs forward = emit(c.graph, c.in(0), captures, then_forward, else_forward);
  c.replacements = take(forward, 0, n);

  const Exprs back_in =
      join_lists<Expr>({captures, take(forward, n, ny), take(forward, n + ny, nn), cotangents});
  const auto back = [&](const BodyTransforms::Split& split, size_t from, size_t count,
                        const std::string& name) {
    return make_body(name + "_backward", shapes_of(back_in), [&](Graph& g, const Exprs& x) {
      return inline_graph(
          g, *split.backward,
          join_lists<Expr>({take(x, 0, captures.size()), take(x, captures.size() + from, count),
                            take(x, captures.size() + ny + nn, cotangents.size())}));
    });
  };
  const Exprs results = emit(c.graph, c.in(0), back_in, back(yes, 0, ny, a.then_body->name()),
                             back(no, ny, nn, a.else_body->name()));
  Exprs grads(size_t(c.count()));
  for (size_t i = 0, r = 0; i < wanted.size(); ++i) {
    if (wanted[i]) grads[i + 1] = results[r++];
  }
  return grads;
}

Exprs If::jvp(const Jvp& c, const Attrs& a) {
  Exprs captures = rest(c), tangents;
  std::vector<bool> active(captures.size());
  for (size_t i = 0; i < active.size(); ++i) {
    active[i] = c.has_dx(int(i) + 1);
    if (active[i]) tangents.push_back(c.dx(int(i) + 1));
  }
  const Exprs out = emit(c.graph, c.in(0), join_lists<Expr>({captures, tangents}),
                         c.bodies.jvp(*a.then_body, active), c.bodies.jvp(*a.else_body, active));
  const Shapes outputs = output_shapes(*a.then_body);
  Exprs result(outputs.size());
  c.replacements = take(out, 0, outputs.size());
  size_t next = outputs.size();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (is_differentiable(outputs[i].dtype())) result[i] = out[next++];
  }
  return result;
}

namespace {

// One side of a branch of which each row takes its own: it runs when some row takes it, and sees operands of
// such rows only.
Exprs emit_side(const Vmap& c, const GraphRef& body, Expr live, const Exprs& captures,
                const std::vector<bool>& batched) {
  const Exprs in = join_lists<Expr>({{live}, captures});
  const GraphRef run = make_body(body->name(), shapes_of(in), [&](Graph& g, const Exprs& x) {
    return inline_graph(g, *body, feed_dead_rows(x[0], take(x, 1, captures.size()), batched));
  });
  const GraphRef skip = make_body("skip", shapes_of(in),
                                  [&](Graph& g, const Exprs&) { return zeros_of(g, output_shapes(*body)); });
  return emit(c.graph, any(live, {}), in, run, skip);
}

}  // namespace

// One predicate for all examples stays a branch; with one per example both bodies may run, each for its rows.
Exprs If::vmap(const Vmap& c, const Attrs& a) {
  const Exprs captures = rest(c);
  std::vector<bool> batched;
  for (int i = 1; i < c.count(); ++i) batched.push_back(c.batched(i));
  const BatchedBody yes = batch_body(c, *a.then_body, batched), no = batch_body(c, *a.else_body, batched);
  std::vector<bool> wanted(yes.batched.size());
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = c.batched(0) || yes.batched[i] || no.batched[i];
  const GraphRef then_body = with_batched_outputs(yes, wanted, c.size),
                 else_body = with_batched_outputs(no, wanted, c.size);
  if (!c.batched(0)) return emit(c.graph, c.in(0), captures, then_body, else_body);
  const Expr live = cast(c.in(0), DType::bool_);
  return choose_rows(live, emit_side(c, then_body, live, captures, batched),
                     emit_side(c, else_body, logical_not(live), captures, batched));
}

std::vector<OpSample<If::Attrs>> If::samples() {
  const auto f = [](const char* s) { return parse_shape(s); };
  const GraphRef twice = make_body("twice", {f("f32[3]"), f("f32[]")},
                                   [](Graph&, const Exprs& x) { return Exprs{x[0] * 2.0, sin(x[1])}; });
  const GraphRef square = make_body("square", {f("f32[3]"), f("f32[]")},
                                    [](Graph&, const Exprs& x) { return Exprs{x[0] * x[0] * x[1], x[1]}; });
  const GraphRef first =
      make_body("first", {f("f32[0]")}, [](Graph&, const Exprs& x) { return Exprs{x[0]}; });
  const GraphRef number = make_body(
      "number", {}, [](Graph& g, const Exprs&) { return Exprs{full(g, Shape(DType::i32, {2}), 7)}; });
  const GraphRef other = make_body(
      "other", {}, [](Graph& g, const Exprs&) { return Exprs{full(g, Shape(DType::i32, {2}), 8)}; });
  return {{{twice, square}, {"bool[]", "f32[3]", "f32[]"}},
          {{square, twice}, {"i32[] <2", "f32[3]", "f32[]"}},
          {{square, square}, {"bool[]", "f32[3]", "f32[]"}},
          {{first, first}, {"bool[]", "f32[0]"}},
          {{number, other}, {"i64[] <2"}}};
}

Exprs if_else(Expr predicate, const Exprs& captures, Graph then_body, Graph else_body) {
  return emit(*predicate.graph, predicate, captures, std::make_shared<const Graph>(std::move(then_body)),
              std::make_shared<const Graph>(std::move(else_body)));
}

}  // namespace rlx::ops
