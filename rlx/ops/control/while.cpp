#include "rlx/ops/control/while.h"

#include "rlx/ir/leaves.h"
#include "rlx/ops/control/body.h"
#include "rlx/ops/control/if.h"
#include "rlx/ops/control/live_rows.h"
#include "rlx/ops/control/scan_parts.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/reduce/any_all.h"
#include "rlx/ops/reduce/reduce.h"

namespace rlx::ops {
namespace {

bool holds(const Literal& flags) {
  for (int64_t i = 0; i < flags.elements(); ++i) {
    if (flags.real_at(i) == 0) return false;
  }
  return true;
}

Exprs operands_of(const auto& c) {
  Exprs out;
  for (int i = 0; i < c.count(); ++i) out.push_back(c.in(i));
  return out;
}

Exprs emit(Graph& g, const Exprs& carries, const Exprs& consts, GraphRef cond, GraphRef body,
           std::optional<int64_t> max_iterations) {
  const Exprs operands = join_lists<Expr>({carries, consts});
  return make_all<While>(g, {std::move(cond), std::move(body), int(carries.size()), max_iterations},
                         Values(operands.begin(), operands.end()));
}

}  // namespace

Shapes While::infer(Infer& c, Attrs& a) {
  if (a.carries < 0 || a.carries > c.count()) c.fail(a.carries, " carries of ", c.count(), " operands");
  if (a.max_iterations && *a.max_iterations < 0)
    c.fail("max_iterations is ", *a.max_iterations, "; it must be 0 or more");
  const Shapes all(c.in().begin(), c.in().end());
  check_body(c, a.cond, "cond", all);
  check_body(c, a.body, "body", all);
  if (a.cond->outputs().size() != 1)
    c.fail("cond has ", a.cond->outputs().size(), " outputs; it must have one");
  if (is_complex(output_shapes(*a.cond)[0].dtype()))
    c.fail("cond returns a complex value; it must be bool or real");
  const Shapes out = output_shapes(*a.body);
  if (int(out.size()) != a.carries)
    c.fail("body has ", out.size(), " outputs; it must return the ", a.carries, " carries");
  for (size_t i = 0; i < out.size(); ++i)
    check_same(c, out[i], all[i], cat("types of carry ", i, " before and after a step differ"));
  return Shapes(all.begin(), all.begin() + a.carries);
}

Literals While::reference(const Eval& c, const Attrs& a) {
  Literals values(c.operands.begin(), c.operands.end());
  for (int64_t step = 0; !a.max_iterations || step < *a.max_iterations; ++step) {
    if (!holds(c.run(a.cond, values)[0])) break;
    const Literals next = c.run(a.body, values);
    std::copy(next.begin(), next.end(), values.begin());
  }
  values.resize(size_t(a.carries));
  return values;
}

// A scan over max_iterations steps, gated by whether the loop is alive: each step asks the condition, then
// runs the body or keeps the carries. The steps after the first that keeps them are skipped, so that the cost
// is that of the steps taken.
Exprs While::decompose(const Lower& c, const Attrs& a) {
  if (!a.max_iterations) {
    throw invalid(
        "while: reverse mode needs a bound on the number of steps; set max_iterations, or use forward mode "
        "(jvp)");
  }
  const Exprs in = operands_of(c);
  const auto n = size_t(a.carries);
  const Exprs consts = take(in, n, in.size() - n);
  const Exprs carries = join_lists<Expr>({{full(c.graph, Shape::scalar(DType::bool_), 1)}, take(in, 0, n)});
  const GraphRef keep =
      make_body("keep", shapes_of(in), [&](Graph&, const Exprs& x) { return take(x, 0, n); });
  const GraphRef step = make_body(a.body->name() + "_step", shapes_of(join_lists<Expr>({carries, consts})),
                                  [&](Graph& g, const Exprs& x) {
                                    const Exprs values = take(x, 1, x.size() - 1);
                                    const Expr flags =
                                        cast(inline_graph(g, *a.cond, values)[0], DType::bool_);
                                    const Expr alive = flags.rank() == 0 ? flags : all(flags, {});
                                    Values run{alive};
                                    for (const Expr& v : values) run.push_back(v);
                                    return join_lists<Expr>({{alive}, make_all<If>(g, {a.body, keep}, run)});
                                  });
  const Exprs out = emit_scan(c.graph, {carries, consts, {}},
                              {.body = step, .length = *a.max_iterations, .gate = ScanGate::carry});
  return take(out, 1, n);
}

// Tangents ride along; the condition sees the values only.
Exprs While::jvp(const Jvp& c, const Attrs& a) {
  const Exprs in = operands_of(c);
  const auto n = size_t(a.carries);
  std::vector<bool> active(in.size());
  Exprs dcarries, dconsts;
  for (size_t i = 0; i < in.size(); ++i) {
    active[i] = is_differentiable(in[i].dtype()) && (i < n || c.has_dx(int(i)));
    if (active[i]) (i < n ? dcarries : dconsts).push_back(c.dx(int(i)));
  }
  const Exprs carries = join_lists<Expr>({take(in, 0, n), dcarries}),
              consts = join_lists<Expr>({take(in, n, in.size() - n), dconsts});
  const Shapes inputs = shapes_of(join_lists<Expr>({carries, consts}));
  const auto primal = [&](const Exprs& x) {
    return join_lists<Expr>({take(x, 0, n), take(x, carries.size(), in.size() - n)});
  };
  const GraphRef both = c.bodies.jvp(*a.body, active);
  const GraphRef cond = make_body(
      "cond", inputs, [&](Graph& g, const Exprs& x) { return inline_graph(g, *a.cond, primal(x)); });
  const GraphRef body = make_body(a.body->name() + "_jvp", inputs, [&](Graph& g, const Exprs& x) {
    return inline_graph(g, *both,
                        join_lists<Expr>({primal(x), take(x, n, dcarries.size()),
                                          take(x, carries.size() + in.size() - n, dconsts.size())}));
  });
  const Exprs out = emit(c.graph, carries, consts, cond, body, a.max_iterations);
  c.replacements = take(out, 0, n);
  Exprs tangents(n);
  for (size_t i = 0, d = n; i < n; ++i) {
    if (active[i]) tangents[i] = out[d++];
  }
  return tangents;
}

namespace {

// A loop over a batch: which operands carry the batch, and the bodies on it.
struct BatchedLoop {
  std::vector<bool> batched;  // per operand
  BatchedBody cond, body;
};

// A carry carries the batch when it starts so, when a step makes it so, or when the rows end at different
// steps and it changes. Each round may make further ones so; the last changes nothing.
BatchedLoop batch_loop(const Vmap& c, const While::Attrs& a) {
  BatchedLoop out;
  for (int i = 0; i < c.count(); ++i) out.batched.push_back(c.batched(i));
  const auto leaves = a.body->leaves();
  for (bool changed = true; changed;) {
    changed = false;
    out.cond = batch_body(c, *a.cond, out.batched);
    out.body = batch_body(c, *a.body, out.batched);
    for (size_t i = 0; i < size_t(a.carries); ++i) {
      const bool passes = a.body->outputs()[i] == a.body->value(leaves[i]);
      if (out.batched[i] || !(out.body.batched[i] || (out.cond.batched[0] && !passes))) continue;
      out.batched[i] = changed = true;
    }
  }
  return out;
}

}  // namespace

// When all rows end together the loop stays as it is. Otherwise it goes on while any row does; rows that are
// done keep their carries, and the condition gives them the answer that ended them.
Exprs While::vmap(const Vmap& c, const Attrs& a) {
  const auto n = size_t(a.carries);
  const BatchedLoop loop = batch_loop(c, a);
  const std::vector<bool> batched_carries(loop.batched.begin(), loop.batched.begin() + long(n));
  Exprs carries, consts;
  for (int i = 0; i < c.count(); ++i) {
    if (i < a.carries) {
      carries.push_back(loop.batched[size_t(i)] ? lifted(c, i) : c.in(i));
    } else {
      consts.push_back(c.in(i));
    }
  }
  const GraphRef body = with_batched_outputs(loop.body, batched_carries, c.size);
  if (!loop.cond.batched[0]) return emit(c.graph, carries, consts, loop.cond.body, body, a.max_iterations);
  const Shapes inputs = shapes_of(join_lists<Expr>({carries, consts}));
  const auto alive = [&](Graph& g, const Exprs& x) {
    return live_rows(inline_graph(g, *loop.cond.body, x)[0]);
  };
  const GraphRef any_row =
      make_body("any", inputs, [&](Graph& g, const Exprs& x) { return Exprs{any(alive(g, x), {})}; });
  const GraphRef step = make_body(a.body->name() + "_batch", inputs, [&](Graph& g, const Exprs& x) {
    const Expr live = alive(g, x);
    Exprs out = inline_graph(g, *body, feed_dead_rows(live, x, loop.batched));
    for (size_t i = 0; i < n; ++i) out[i] = loop.batched[i] ? choose_rows(live, {out[i]}, {x[i]})[0] : x[i];
    return out;
  });
  return emit(c.graph, carries, consts, any_row, step, a.max_iterations);
}

std::vector<OpSample<While::Attrs>> While::samples() {
  const auto f = [](const char* s) { return parse_shape(s); };
  // Squares while the sum is below a limit.
  const Shapes types{f("f32[2]"), f("f32[]")};
  const GraphRef below = make_body(
      "below", types, [](Graph&, const Exprs& x) { return Exprs{less(reduce_sum(x[0], {0}), x[1])}; });
  const GraphRef grow =
      make_body("grow", types, [](Graph&, const Exprs& x) { return Exprs{x[0] * x[0] + 0.5}; });
  const Shapes counted{f("i32[]"), f("f32[3]")};
  const GraphRef few = make_body(
      "few", counted, [](Graph&, const Exprs& x) { return Exprs{less(x[0], scalar_like(x[0], 4))}; });
  const GraphRef spin = make_body(
      "spin", counted, [](Graph&, const Exprs& x) { return Exprs{x[0] + scalar_like(x[0], 1), sin(x[1])}; });
  const GraphRef never = make_body("never", {f("f32[1]")}, [](Graph& g, const Exprs&) {
    return Exprs{full(g, Shape::scalar(DType::bool_), 0)};
  });
  const GraphRef once =
      make_body("once", {f("f32[1]")}, [](Graph&, const Exprs& x) { return Exprs{x[0] * 2.0}; });
  const GraphRef each = make_body(
      "each", {f("f32[0]")}, [](Graph&, const Exprs& x) { return Exprs{less(x[0], scalar_like(x[0], 0))}; });
  const GraphRef same = make_body("same", {f("f32[0]")}, [](Graph&, const Exprs& x) { return Exprs{x[0]}; });
  return {{{below, grow, 1, 6}, {"f32[2] unit", "f32[] in 3..9"}},
          {{few, spin, 2, 10}, {"i32[] <3", "f32[3]"}},
          {{few, spin, 2, 2}, {"i32[] <3", "f32[3]"}},
          {{never, once, 1, 3}, {"f32[1]"}},
          {{each, same, 1, 2}, {"f32[0]"}},
          {{few, spin, 2, 0}, {"i32[] <3", "f32[3]"}}};
}

Exprs while_loop(Graph& g, const Exprs& init, const Exprs& consts, Graph cond, Graph body,
                 std::optional<int64_t> max_iterations) {
  return emit(g, init, consts, std::make_shared<const Graph>(std::move(cond)),
              std::make_shared<const Graph>(std::move(body)), max_iterations);
}

}  // namespace rlx::ops
