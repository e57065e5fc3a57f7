#include "rlx/ops/control/custom_fn.h"

#include "rlx/ir/leaves.h"
#include "rlx/ops/control/body.h"
#include "rlx/ops/control/live_rows.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/reduce/reduce.h"

namespace rlx::ops {
namespace {

const std::string& name_of(const Graph& g, NodeId leaf) {
  return static_cast<const NamedLeaf*>(g.node(leaf).attrs.get())->name;
}

// Number behind a reserved prefix: "d_output_3" -> 3, "d_output" -> 0 when there is one; nothing for other
// names.
std::optional<size_t> reserved(std::string_view leaf, std::string_view prefix, size_t count) {
  if (leaf == prefix && count == 1) return 0;
  for (size_t i = 0; i < count; ++i) {
    if (leaf == cat(prefix, "_", i)) return i;
  }
  return std::nullopt;
}

struct OverrideSlots {
  size_t operands = 0, outputs = 0;
  std::string_view special;  // "d_output" or "tangent"
  size_t specials = 0;
};

// Binds the leaves of an override by name where reserved, else in order of the operands.
Exprs bind_override(const Graph& body, const OverrideSlots& slots, const Exprs& operands,
                    const Exprs& outputs, const Exprs& specials) {
  Exprs leaves;
  size_t next = 0;
  for (const NodeId id : body.leaves()) {
    const std::string& name = name_of(body, id);
    if (const auto i = reserved(name, "primal_output", slots.outputs)) {
      leaves.push_back(outputs[*i]);
    } else if (const auto k = reserved(name, slots.special, slots.specials)) {
      leaves.push_back(specials[*k]);
    } else {
      leaves.push_back(operands[next++]);
    }
  }
  return leaves;
}

void check_override(Infer& c, const Graph& body, std::string_view what, const OverrideSlots& slots,
                    bool needs_primal, const Shapes& operands, const Shapes& outputs, const Shapes& specials,
                    const Shapes& wanted) {
  size_t next = 0;
  std::vector<bool> primal(slots.outputs), special(slots.specials);
  for (const NodeId id : body.leaves()) {
    const std::string& name = name_of(body, id);
    const Shape& type = body.node(id).shapes[0];
    if (const auto i = reserved(name, "primal_output", slots.outputs)) {
      primal[*i] = true;
      check_same(c, type, outputs[*i], cat("types of ", what, " input '", name, "' and the result differ"));
    } else if (const auto k = reserved(name, slots.special, slots.specials)) {
      special[*k] = true;
      check_same(c, type, specials[*k],
                 cat("types of ", what, " input '", name, "' and what it stands for differ"));
    } else {
      if (next >= operands.size())
        c.fail(what, " has more inputs than the ", operands.size(), " operands and the reserved names; '",
               name, "' is one too many");
      check_same(c, type, operands[next++], cat("types of ", what, " input '", name, "' and operand differ"));
    }
  }
  if (next != operands.size())
    c.fail(what, " takes ", next, " of the ", operands.size(), " operands; it must take all");
  for (size_t i = 0; i < special.size(); ++i) {
    if (!special[i])
      c.fail(what, " lacks the input '",
             slots.specials == 1 && slots.special != "tangent" ? std::string(slots.special)
                                                               : cat(slots.special, "_", i),
             "'");
  }
  for (size_t i = 0; needs_primal && i < primal.size(); ++i) {
    if (!primal[i])
      c.fail(what, " lacks the input '",
             slots.outputs == 1 ? std::string("primal_output") : cat("primal_output_", i), "'");
  }
  const Shapes returned = output_shapes(body);
  if (returned.size() != wanted.size())
    c.fail(what, " has ", returned.size(), " outputs; it must have ", wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    check_same(c, returned[i], wanted[i],
               cat("types of ", what, " output ", i, " and what it is for differ"));
}

Exprs tensors_of(Graph& g, std::span<const Value> values) {
  Exprs out;
  for (const Value v : values) out.push_back({&g, v});
  return out;
}

}  // namespace

Shapes CustomFn::infer(Infer& c, Attrs& a) {
  const Shapes in(c.in().begin(), c.in().end());
  check_body(c, a.fwd_body, "fwd_body", in);
  const Shapes out = output_shapes(*a.fwd_body);
  if (out.empty()) c.fail("fwd_body has no outputs");
  if (a.vjp_body) {
    check_override(c, *a.vjp_body, "vjp_body", {in.size(), out.size(), "d_output", out.size()}, true, in, out,
                   out, in);
  }
  if (a.jvp_body) {
    check_override(c, *a.jvp_body, "jvp_body", {in.size(), out.size(), "tangent", in.size()}, false, in, out,
                   in, out);
  }
  return out;
}

Literals CustomFn::reference(const Eval& c, const Attrs& a) { return c.run(a.fwd_body, c.operands); }

Exprs CustomFn::vjp(const Vjp& c, const Attrs& a) {
  const Exprs in = tensors_of(c.graph, c.operands);
  const size_t n = c.results.size();
  if (a.vjp_body) {
    Exprs dy;
    for (size_t i = 0; i < n; ++i) dy.push_back(c.dy(int(i)));
    const OverrideSlots slots{in.size(), n, "d_output", n};
    return inline_graph(c.graph, *a.vjp_body,
                        bind_override(*a.vjp_body, slots, in, tensors_of(c.graph, c.results), dy));
  }
  std::vector<bool> wanted, seeded;
  Exprs dy;
  for (int i = 0; i < c.count(); ++i) wanted.push_back(c.wants(i) && is_differentiable(c.in(i).dtype()));
  for (size_t i = 0; i < n; ++i) {
    seeded.push_back(c.has_dy(int(i)));
    if (seeded.back()) dy.push_back(c.dy(int(i)));
  }
  const auto split = c.bodies.split_vjp(*a.fwd_body, wanted, seeded, false);
  const Exprs forward = inline_graph(c.graph, *split.forward, in);
  c.replacements.assign(forward.begin(), forward.begin() + long(n));
  const Exprs residuals(forward.begin() + long(n), forward.end());
  const Exprs grads = inline_graph(c.graph, *split.backward, join_lists<Expr>({in, residuals, dy}));
  Exprs out(in.size());
  for (size_t i = 0, g = 0; i < in.size(); ++i) {
    if (wanted[i]) out[i] = grads[g++];
  }
  return out;
}

Exprs CustomFn::jvp(const Jvp& c, const Attrs& a) {
  const Exprs in = tensors_of(c.graph, c.operands);
  if (a.jvp_body) {
    Exprs tangents;
    for (int i = 0; i < c.count(); ++i) tangents.push_back(c.dx(i));
    const OverrideSlots slots{in.size(), c.results.size(), "tangent", in.size()};
    return inline_graph(c.graph, *a.jvp_body,
                        bind_override(*a.jvp_body, slots, in, tensors_of(c.graph, c.results), tangents));
  }
  std::vector<bool> active;
  Exprs leaves = in;
  for (int i = 0; i < c.count(); ++i) {
    active.push_back(c.has_dx(i));
    if (active.back()) leaves.push_back(c.dx(i));
  }
  const Exprs out = inline_graph(c.graph, *c.bodies.jvp(*a.fwd_body, active), leaves);
  const size_t n = c.results.size();
  c.replacements.assign(out.begin(), out.begin() + long(n));
  Exprs tangents(n);
  for (size_t i = 0, t = n; i < n; ++i) {
    if (is_differentiable(c.out(int(i)).dtype())) tangents[i] = out[t++];
  }
  return tangents;
}

// The overrides are batched with the function, so derivatives of the batched function still use them.
Exprs CustomFn::vmap(const Vmap& c, const Attrs& a) {
  Values operands;
  for (int i = 0; i < c.count(); ++i) operands.push_back(lifted(c, i));
  const auto batch = [&](const GraphRef& body) -> GraphRef {
    if (!body) return nullptr;
    return with_batched_outputs(batch_body(c, *body, std::vector<bool>(body->leaves().size(), true)),
                                std::vector<bool>(body->outputs().size(), true), c.size);
  };
  return make_all<CustomFn>(c.graph, {batch(a.fwd_body), batch(a.vjp_body), batch(a.jvp_body)}, operands);
}

std::vector<OpSample<CustomFn::Attrs>> CustomFn::samples() {
  const auto named = [](std::string name, std::vector<std::pair<std::string, const char*>> inputs,
                        auto build) -> GraphRef {
    auto g = std::make_shared<Graph>(std::move(name));
    Exprs x;
    for (const auto& [leaf, type] : inputs) x.push_back({g.get(), g->input(leaf, parse_shape(type))});
    const Exprs out = build(x);
    g->set_outputs(Values(out.begin(), out.end()));
    return g;
  };
  const GraphRef square =
      named("square", {{"x", "f32[3]"}}, [](const Exprs& x) { return Exprs{x[0] * x[0]}; });
  const GraphRef square_vjp =
      named("square_vjp", {{"x", "f32[3]"}, {"primal_output", "f32[3]"}, {"d_output", "f32[3]"}},
            [](const Exprs& x) { return Exprs{2.0 * x[0] * x[2]}; });
  const GraphRef square_jvp = named("square_jvp", {{"x", "f32[3]"}, {"tangent_0", "f32[3]"}},
                                    [](const Exprs& x) { return Exprs{2.0 * x[0] * x[1]}; });
  const GraphRef two = named("two", {{"a", "f32[2]"}, {"b", "f32[]"}}, [](const Exprs& x) {
    return Exprs{sin(x[0]) * x[1], reduce_sum(x[0], {}) + x[1]};
  });
  const GraphRef empty = named("empty", {{"x", "f32[0]"}}, [](const Exprs& x) { return Exprs{exp(x[0])}; });
  return {{{square, nullptr, nullptr}, {"f32[3]"}},       {{square, square_vjp, nullptr}, {"f32[3]"}},
          {{square, nullptr, square_jvp}, {"f32[3]"}},    {{square, square_vjp, square_jvp}, {"f32[3]"}},
          {{two, nullptr, nullptr}, {"f32[2]", "f32[]"}}, {{empty, nullptr, nullptr}, {"f32[0]"}}};
}

Exprs custom_fn(Graph& g, const Exprs& inputs, Graph fwd_body, std::optional<Graph> vjp_body,
                std::optional<Graph> jvp_body) {
  const auto ref = [](std::optional<Graph> b) -> GraphRef {
    return b ? std::make_shared<const Graph>(std::move(*b)) : nullptr;
  };
  return make_all<CustomFn>(g, {ref(std::move(fwd_body)), ref(std::move(vjp_body)), ref(std::move(jvp_body))},
                            Values(inputs.begin(), inputs.end()));
}

}  // namespace rlx::ops
