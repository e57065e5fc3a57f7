// Lowering: blocks give way wherever they are, and the stage of a graph is told by its content.
#include "rlx/ir/bodies.h"
#include "rlx/ir/build_def.h"
#include "rlx/lang/inspect.h"
#include "rlx/lang/module.h"
#include "rlx/ops/all.h"
#include "rlx/transform/transform.h"
#include "tests/lang/rows.h"
#include "tests/support/errors.h"
#include "tests/support/samples.h"

namespace rlx {
namespace {

using namespace test;

constexpr FusionPolicy kPolicies[] = {FusionPolicy::direct, FusionPolicy::fusable};

constexpr const char* kScanOfBlock = R"(graph @loop(c: f64[2,3], w: f64[3,3], b: f64[3]) {
  y = scan(c, w, b, carries=1, consts=2, length=3, body=graph(c: f64[2,3], w: f64[3,3], b: f64[3]) {
    h = linear(c, w, b, activation=tanh)
    return h
  })
  return y
})";

size_t count_op(const ir::Graph& g, std::string_view op) {
  const auto counts = histogram(g);
  const auto it = counts.find(std::string(op));
  return it == counts.end() ? 0 : size_t(it->second);
}

TEST(Lower, reaches_blocks_in_the_body_of_a_loop) {
  const Literals in = {mixed({2, 3}, 1), mixed({3, 3}, 2), mixed({3}, 3)};
  const Graph g = Graph::parse(kScanOfBlock);
  const Literal want = ir::interpret(g, in)[0];
  const Graph direct = lower(g), fusable = lower(g, FusionPolicy::fusable);
  for (const Graph& lowered : {direct, fusable}) {
    EXPECT_FALSE(ir::holds_blocks(lowered));
    EXPECT_TRUE(lowered.verify().empty());
    expect_close(ir::interpret(lowered, in)[0], want, 1e-12);
  }
  EXPECT_EQ(count_op(direct, "fused_matmul_bias_act"), 1u);
  EXPECT_EQ(count_op(fusable, "fused_matmul_bias_act"), 0u);
  EXPECT_EQ(count_op(fusable, "matmul"), 1u);
}

TEST(Lower, keeps_a_body_without_blocks_as_it_is) {
  const Graph g = Graph::parse(R"(graph(x: f64[2,3], w: f64[3,3]) {
    y = scan(x, carries=1, length=2, body=graph(c: f64[2,3]) {
      n = exp(c)
      return n
    })
    z = linear(y, w)
    return z
  })");
  const Graph lowered = lower(g);
  const auto body = [](const ir::Graph& of) {
    for (const ir::Node* n : of.nodes()) {
      if (n->is<ops::Scan>()) return n->as<ops::Scan>().body.get();
    }
    return static_cast<const ir::Graph*>(nullptr);
  };
  EXPECT_EQ(body(lowered), body(g));
}

TEST(Lower, what_a_block_becomes_tells_which_block_it_was) {
  const Graph lowered = lower(Graph::parse(kScanOfBlock));
  std::vector<std::string> blocks;
  ir::for_each_node(lowered, [&](const ir::Node& n) {
    if (n.origin && !n.origin->block.empty()) blocks.push_back(n.origin->block);
  });
  EXPECT_EQ(blocks, std::vector<std::string>{"h"});
}

TEST(Lower, the_stage_of_a_graph_is_told_by_its_content) {
  const Graph g = Graph::parse("graph(x: f64[2,3], w: f64[3,3]) { return exp(linear(x, w)) }");
  const GraphModule m = g.module();
  EXPECT_EQ(m.stage(), Stage::Hir);
  EXPECT_EQ(m.lower().stage(), Stage::Mir);
  EXPECT_EQ(Graph::parse(kScanOfBlock).module().stage(), Stage::Hir);
  EXPECT_EQ(m.into_graph().module().stage(), Stage::Mir);
  EXPECT_EQ(m.into_lir().plan.schedule.size(), 2u);
}

TEST(Lower, blocks_that_come_in_later_are_lowered_too) {
  GraphModule m = GraphModule::mir("late");
  const Value x = m.input("x", Shape(DType::f64, {2, 3})), w = m.input("w", Shape(DType::f64, {3, 3}));
  m.set_outputs({ir::make<ops::LinearBlock>(m.builders(), {}, {x, w})});
  EXPECT_FALSE(ir::holds_blocks(m.lower().as_graph()));
  EXPECT_FALSE(ir::holds_blocks(m.into_lir().graph));
}

TEST(Lower, derivatives_of_graphs_with_blocks) {
  const Graph g =
      Graph::parse("graph(x: f64[2,3], w: f64[3,3]) { return loss=reduce(linear(x, w, activation=tanh)) }");
  const Literals in = {mixed({2, 3}, 1), mixed({3, 3}, 2)};
  const Literal want = ir::interpret(transform::grad(lower(g), {"w"}), in)[0];
  const Graph gradient = transform::grad(g, {"w"});
  for (const FusionPolicy policy : kPolicies) {
    expect_close(ir::interpret(lower(gradient, policy), in)[0], want, 1e-12);
    EXPECT_FALSE(ir::holds_blocks(lower(gradient, policy)));
  }
}

TEST(Lower, every_block_means_the_same_under_both_policies) {
  size_t blocks = 0;
  for (const auto& [name, op] : ops::table().all()) {
    if (!op->traits.block) continue;
    ++blocks;
    for (size_t i = 0; i < op->samples().size(); ++i) {
      SCOPED_TRACE(cat(name, " sample ", i));
      const auto [g, in] = make_case(*op, i, DType::f64);
      const Literals want = ir::interpret(g, in);
      for (const FusionPolicy policy : kPolicies) {
        const Graph lowered = lower(g, policy);
        EXPECT_FALSE(ir::holds_blocks(lowered));
        EXPECT_TRUE(lowered.verify().empty());
        expect_close(ir::interpret(lowered, in), want, 1e-9);
      }
    }
  }
  EXPECT_EQ(blocks, 7u);
}

// A block of blocks, of one's own.
struct TwoLayers {
  static constexpr std::string_view name = "two_layers", summary = "", doc = "", operands = "x, a, b";
  static constexpr ir::Traits traits{.block = true};
  using Attrs = ir::NoAttrs;
  static Shapes infer(ir::Infer& c, Attrs& a) { return ops::infer_block<TwoLayers>(c, a); }
  static ir::Exprs decompose(const ir::Lower& c, const Attrs&) {
    const ir::Expr h = ir::make<ops::LinearBlock>(c.graph, {}, {c.in(0), c.in(1)});
    return {ir::make<ops::LinearBlock>(c.graph, {}, {h, c.in(2)})};
  }
};

TEST(Lower, blocks_may_hold_blocks) {
  Graph g("g");
  const Value x = g.input("x", Shape(DType::f64, {2, 3})), w = g.input("w", Shape(DType::f64, {3, 3}));
  g.set_outputs({ir::make<TwoLayers>(g, {}, {x, w, w})});
  const Graph lowered = lower(g);
  EXPECT_EQ(count_op(lowered, "matmul"), 2u);
  EXPECT_FALSE(ir::holds_blocks(lowered));
}

TEST(ModuleText, every_reader_opens_it) {
  const std::string text = cat("module hir fusable\n", Graph::parse(kScanOfBlock).to_text());
  const GraphModule m = GraphModule::parse(text);
  EXPECT_EQ(m.stage(), Stage::Hir);
  EXPECT_EQ(m.fusion_policy(), FusionPolicy::fusable);
  EXPECT_EQ(m.to_text(), text);
  EXPECT_TRUE(Graph::parse(text) == Graph::parse(kScanOfBlock));
  EXPECT_EQ(message_of([] { GraphModule::parse("module hir fast\ngraph() { return }"); }),
            "parse: stage 'hir fast' is unknown; known: hir direct, hir fusable, mir, lir");
}

TEST(ModuleText, a_plan_prints_and_parses) {
  const GraphModule m = GraphModule::from_lir(
      Graph::parse("graph @g(x: f32[2,3]) { h = exp(x) %9:2 = top_k(h, k=2) return h, %9#1 }")
          .module()
          .into_lir());
  EXPECT_EQ(m.to_text(),
            "module lir\n"
            "graph @g(x: f32[2,3]) {\n"
            "  h = exp(x) : f32[2,3]\n"
            "  %9:2 = top_k(h, k=2, axis=1) : f32[2,2], i32[2,2]\n"
            "  return h, %9#1\n"
            "}\n"
            "plan {\n"
            "  arena(bytes=256, align=64)\n"
            "  slot(x, offset=0, bytes=24)\n"
            "  slot(h, offset=64, bytes=24)\n"
            "  slot(%9, offset=128, bytes=16)\n"
            "  slot(%9#1, offset=192, bytes=16)\n"
            "  step(h)\n"
            "  step(%9)\n"
            "}\n");
  const GraphModule back = GraphModule::parse(m.to_text());
  EXPECT_EQ(back.to_text(), m.to_text());
  EXPECT_EQ(back.as_lir().plan.outputs[1].offset, 192);
}

TEST(ModuleText, a_plan_that_does_not_fit_is_refused) {
  const auto refused = [](std::string plan) {
    return message_of([&] {
      GraphModule::parse(cat("module lir\ngraph(x: f32[2]) { h = exp(x) return h }\nplan { ", plan, " }"));
    });
  };
  const std::string start = "arena(bytes=128) slot(x, offset=0, bytes=8) ";
  EXPECT_EQ(refused(start + "slot(h, offset=64, bytes=8) step(h)"), "no error");
  EXPECT_EQ(
      refused(start + "slot(h, offset=0, bytes=8) step(h)"),
      "plan: slot of %1#0 lies at 0; slots come one after another, at multiples of 64, inside of 128 bytes");
  EXPECT_EQ(refused(start + "slot(h, offset=64, bytes=4) step(h)"),
            "plan: slot of %1#0 has 4 bytes; f32[2] needs 8");
  EXPECT_EQ(refused(start + "slot(h, offset=64, bytes=8)"), "plan: there is no step for %1");
  EXPECT_EQ(refused(start + "step(h)"), "plan: %1#0 has no slot");
  EXPECT_EQ(refused(start + "slot(h, bytes=8) step(h)"), "plan: slot lacks the whole number 'offset'");
  EXPECT_EQ(refused(start + "slot(z, offset=64)"), "parse: 'z' is not defined before its use");
  EXPECT_EQ(refused(start + "jump(h)"), "plan: unknown statement 'jump'; known: arena, slot, step");
}

}  // namespace
}  // namespace rlx
