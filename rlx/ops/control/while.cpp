#include "rlx/ops/control/while.h"

#include "rlx/ir/leaves.h"
#include "rlx/ops/control/body.h"
#include "rlx/ops/control/if.h"
#include "rlx/ops/control/scan.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {
namespace {

bool holds(const Literal& flags) {
  for (int64_t i = 0; i < flags.elements(); ++i) {
    if (flags.real_at(i) == 0) return false;
  }
  return true;
}

// Whether all elements behind the first `keep` axes are not 0, as bool.
Expr all_of(Expr flags, int keep) {
  std::vector<int> axes;
  for (int i = keep; i < flags.rank(); ++i) axes.push_back(i);
  Expr yes = cast(cast(flags, DType::bool_), DType::i32);
  if (!axes.empty()) yes = reduce(yes, ReduceOp::min, axes, false);
  return cast(yes, DType::bool_);
}

Expr any_of(Expr flags) {
  return cast(reduce(cast(flags, DType::i32), ReduceOp::max, {}, false), DType::bool_);
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

// max_iterations steps of a scan, each a branch: once the condition fails, the rest pass the carries through.
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
  const GraphRef step =
      make_body(a.body->name() + "_step", shapes_of(join_lists<Expr>({carries, consts})),
                [&](Graph& g, const Exprs& x) {
                  const Exprs values = take(x, 1, x.size() - 1);
                  // The condition is asked only while the loop is alive: it may be undefined afterwards.
                  const GraphRef ask = make_body("ask", shapes_of(values), [&](Graph& h, const Exprs& v) {
                    return Exprs{all_of(inline_graph(h, *a.cond, v)[0], 0)};
                  });
                  const GraphRef over = make_body("over", shapes_of(values), [&](Graph& h, const Exprs&) {
                    return Exprs{full(h, Shape::scalar(DType::bool_), 0)};
                  });
                  Values ask_in{x[0]}, run_in;
                  for (const Expr& v : values) ask_in.push_back(v);
                  const Expr alive = make<If>(g, {ask, over}, ask_in);
                  run_in.push_back(alive);
                  for (const Expr& v : values) run_in.push_back(v);
                  return join_lists<Expr>({{alive}, make_all<If>(g, {a.body, keep}, run_in)});
                });
  const Exprs operands = join_lists<Expr>({carries, consts});
  const Exprs out = make_all<Scan>(c.graph, {step, *a.max_iterations, int(n) + 1, int(consts.size())},
                                   Values(operands.begin(), operands.end()));
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

// The loop goes on while any example does; finished examples keep their carries.
Exprs While::vmap(const Vmap& c, const Attrs& a) {
  const auto n = size_t(a.carries);
  std::vector<bool> batched;
  Exprs carries, consts;
  for (int i = 0; i < c.count(); ++i) {
    batched.push_back(i < a.carries || c.batched(i));
    (i < a.carries ? carries : consts).push_back(i < a.carries ? lifted(c, i) : c.in(i));
  }
  const GraphRef cond = c.bodies.vmap(*a.cond, batched, c.size),
                 body = c.bodies.vmap(*a.body, batched, c.size);
  const Shapes inputs = shapes_of(join_lists<Expr>({carries, consts}));
  const GraphRef any = make_body("any", inputs, [&](Graph& g, const Exprs& x) {
    return Exprs{any_of(all_of(inline_graph(g, *cond, x)[0], 1))};
  });
  const GraphRef step = make_body(a.body->name() + "_batch", inputs, [&](Graph& g, const Exprs& x) {
    const Expr alive = all_of(inline_graph(g, *cond, x)[0], 1);
    const Exprs next = inline_graph(g, *body, x);
    Exprs out;
    for (size_t i = 0; i < n; ++i) {
      Dims dims(size_t(next[i].rank()), Dim(1));
      dims[0] = c.size;
      out.push_back(where(reshape(alive, dims), next[i], x[i]));
    }
    return out;
  });
  return emit(c.graph, carries, consts, any, step, a.max_iterations);
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
