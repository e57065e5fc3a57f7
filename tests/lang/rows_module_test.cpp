// Rows of the public surface: modules, their stages and blocks. Every lowering is compared with a plain
// computation under both policies.
#include "rlx/lang/module.h"

#include <cmath>
#include <sstream>

#include "tests/lang/plain.h"
#include "tests/lang/rows.h"
#include "tests/support/errors.h"
#include "tests/support/scratch.h"

namespace rlx {
namespace {

using namespace test;
using plain::Matrix;

constexpr FusionPolicy kPolicies[] = {FusionPolicy::direct, FusionPolicy::fusable};

// The module that `build` makes over inputs of these values, lowered under both policies, gives `want`.
template <class Build>
void expect_block(const Literals& in, Build build, const Literals& want, double tolerance = 1e-9) {
  for (const FusionPolicy policy : kPolicies) {
    SCOPED_TRACE(choice_names(policy)[size_t(policy)]);
    GraphModule m = GraphModule::hir("block").with_fusion_policy(policy);
    Values inputs, outputs;
    for (size_t i = 0; i < in.size(); ++i) inputs.push_back(m.input(cat("x", i), in[i].shape()));
    add_outputs(outputs, build(m, inputs));
    m.set_hir_outputs(outputs);
    const Graph lowered = m.lower().as_graph();
    EXPECT_TRUE(lowered.verify().empty());
    for (const ir::Node* n : lowered.nodes()) EXPECT_FALSE(ops::is_block(*n->op)) << n->op->name;
    expect_close(ir::interpret(lowered, in), want, tolerance);
    expect_close(ir::interpret(m.as_hir().graph, in), want, tolerance);  // blocks run as they are, too
  }
}

size_t count_op(const ir::Graph& g, std::string_view op) {
  size_t n = 0;
  for (const ir::Node* node : g.nodes()) n += node->op->name == op;
  return n;
}

const Literal kX = mixed({2, 3, 4}, 1), kW = mixed({4, 5}, 2), kB = mixed({5}, 3);

GraphModule small() {
  return GraphModule::define("small", [](GraphModule& m) {
    const Value x = m.input("x", Shape(DType::f64, {3, 4}));
    const Value w = m.param("w", Shape(DType::f64, {4, 5})), b = m.param("b", Shape(DType::f64, {5}));
    return m.named("first", [&](GraphModule& n) { return n.linear(x, w, b, Activation::relu); });
  });
}

TEST(ModuleRow, stage) {
  const GraphModule m = small();
  EXPECT_EQ(m.stage(), Stage::Hir);
  EXPECT_EQ(m.lower().stage(), Stage::Mir);
  EXPECT_EQ(GraphModule::from_lir(m.into_lir()).stage(), Stage::Lir);
}
TEST(ModuleRow, define) {
  const GraphModule m = small();
  const Literal x = mixed({3, 4}, 1), w = kW, b = kB;
  const auto out = m.into_graph().interpret({{"x", x}, {"w", w}, {"b", b}});
  const Matrix y = plain::relu(plain::add_row(plain::product(Matrix(x, 3, 4), Matrix(w, 4, 5)), b));
  expect_close(out.at("first"), y.literal({3, 5}), 1e-12);
}
TEST(ModuleRow, hir) { EXPECT_EQ(GraphModule::hir("m").stage(), Stage::Hir); }
TEST(ModuleRow, mir) {
  GraphModule m = GraphModule::mir("m");
  const Value x = m.input("x", Shape(DType::f64, {2}));
  m.set_outputs({m.builders().exp(x)}, {"y"});
  EXPECT_NEAR(m.as_graph().interpret({{"x", f64({2}, {0, 1})}}).at("y").real_at(1), std::exp(1.0), 1e-12);
}
TEST(ModuleRow, from_hir) {
  EXPECT_TRUE(GraphModule::from_hir(small().into_hir()).as_hir().graph == small().as_hir().graph);
}
TEST(ModuleRow, from_graph) {
  const Graph g = small().into_graph();
  EXPECT_TRUE(GraphModule::from_graph(g).as_graph() == g);
}
TEST(ModuleRow, from_mir) { EXPECT_EQ(GraphModule::from_mir(small().into_mir()).stage(), Stage::Mir); }
TEST(ModuleRow, from_lir) {
  EXPECT_EQ(GraphModule::from_lir(small().into_lir()).as_lir().plan.outputs[0].name, "first");
}
TEST(ModuleRow, block) {
  GraphModule m = GraphModule::hir("m");
  const Value x = m.input("x", Shape(DType::f64, {1, 2}));
  m.finish_hir(GraphModule::block(
      m, "layer", [&](GraphModule& b) { return b.linear(x, b.param("w", Shape(DType::f64, {2, 1}))); }));
  const auto out = m.into_graph().interpret({{"x", f64({1, 2}, {1, 2})}, {"w", f64({2, 1}, {3, 4})}});
  EXPECT_EQ(out.at("layer").real_at(0), 11);
}
TEST(ModuleRow, fusion_policy) {
  EXPECT_EQ(small().fusion_policy(), FusionPolicy::direct);
  EXPECT_EQ(message_of([] { small().lower().fusion_policy(); }),
            "fusion_policy: module 'small' is at MIR stage; only HIR has one");
}
TEST(ModuleRow, with_fusion_policy) {
  const Graph direct = small().into_graph();
  const Graph fusable = small().with_fusion_policy(FusionPolicy::fusable).into_graph();
  EXPECT_EQ(count_op(direct, "fused_matmul_bias_act"), 1u);
  EXPECT_EQ(count_op(fusable, "fused_matmul_bias_act"), 0u);
  EXPECT_EQ(count_op(fusable, "matmul") + count_op(fusable, "add") + count_op(fusable, "relu"), 3u);
}
TEST(ModuleRow, set_outputs) {
  GraphModule m = GraphModule::hir("m");
  const Value x = m.input("x", Shape(DType::f64, {2})), y = m.input("y", Shape(DType::f64, {2}));
  m.set_outputs({y, x}, {"a", "b"});
  EXPECT_EQ(m.into_graph().interpret({{"x", f64({2}, {1, 1})}, {"y", f64({2}, {2, 2})}}).at("a").real_at(0),
            2);
}
TEST(ModuleRow, set_hir_outputs) {
  GraphModule m = small();
  EXPECT_EQ(message_of([&] { m.lower().set_hir_outputs({}); }),
            "set_hir_outputs: module 'small' is at MIR stage; blocks are added at HIR stage");
  m.set_hir_outputs({m.as_hir().graph.outputs()[0], m.as_hir().graph.value(0)});
  EXPECT_EQ(m.into_graph().outputs().size(), 2u);
}
TEST(ModuleRow, finish_hir) {
  GraphModule m = GraphModule::hir("m");
  m.finish_hir(m.input("x", Shape(DType::f64, {2})));
  EXPECT_EQ(m.into_graph().interpret({{"x", f64({2}, {7, 8})}}).begin()->second.real_at(1), 8);
}
TEST(ModuleRow, input) {
  GraphModule m = GraphModule::hir("m");
  EXPECT_EQ(cat(m.as_hir().graph.shape(m.input("x", parse_shape("f32[batch,2]")))), "f32[batch,2]");
  GraphModule planned = GraphModule::from_lir(small().into_lir());
  EXPECT_EQ(message_of([&] { planned.input("z", Shape()); }),
            "builders: module 'small' is at LIR stage; a planned graph is not edited");
}
TEST(ModuleRow, param) {
  GraphModule m = GraphModule::hir("m");
  m.finish_hir(m.param("w", Shape(DType::f64, {1})));
  EXPECT_EQ(m.into_graph().interpret({{"w", f64({1}, {5})}}).begin()->second.real_at(0), 5);
}

TEST(ModuleRow, linear) {
  const Matrix xw = plain::product(Matrix(kX, 6, 4), Matrix(kW, 4, 5)),
               y = plain::relu(plain::add_row(xw, kB));
  expect_block({kX, kW, kB},
               [](GraphModule& m, const Values& v) { return m.linear(v[0], v[1], v[2], Activation::relu); },
               {y.literal({2, 3, 5})});
  expect_block({kX, kW}, [](GraphModule& m, const Values& v) { return m.linear(v[0], v[1]); },
               {xw.literal({2, 3, 5})});
  GraphModule lowered = small().lower();
  EXPECT_EQ(message_of([&] { lowered.linear({}, {}); }),
            "linear: module 'small' is at MIR stage; blocks are added at HIR stage");
}
TEST(ModuleRow, linear_fused) {
  const Matrix y = plain::relu(plain::add_row(plain::product(Matrix(kX, 6, 4), Matrix(kW, 4, 5)), kB));
  expect_block(
      {kX, kW, kB},
      [](GraphModule& m, const Values& v) { return m.linear_fused(v[0], v[1], v[2], Activation::relu); },
      {y.literal({2, 3, 5})});
  // The policy holds here as well.
  GraphModule m = GraphModule::hir("m").with_fusion_policy(FusionPolicy::fusable);
  const Value x = m.input("x", Shape(DType::f64, {2, 2}));
  m.finish_hir(m.linear_fused(x, x, m.input("b", Shape(DType::f64, {2}))));
  EXPECT_EQ(count_op(m.into_graph(), "fused_matmul_bias_act"), 0u);
}
TEST(ModuleRow, shared_linear_pair) {
  const Literal w2 = mixed({4, 2}, 4);
  expect_block({kX, kW, w2},
               [](GraphModule& m, const Values& v) { return m.shared_linear_pair(v[0], v[1], v[2]); },
               {plain::product(Matrix(kX, 6, 4), Matrix(kW, 4, 5)).literal({2, 3, 5}),
                plain::product(Matrix(kX, 6, 4), Matrix(w2, 4, 2)).literal({2, 3, 2})});
}
TEST(ModuleRow, swiglu_ffn) {
  const Literal up = kW, gate = mixed({4, 5}, 5), down = mixed({5, 4}, 6);
  expect_block({kX, up, gate, down},
               [](GraphModule& m, const Values& v) { return m.swiglu_ffn(v[0], v[1], v[2], v[3]); },
               {plain::swiglu(Matrix(kX, 6, 4), Matrix(up, 4, 5), Matrix(gate, 4, 5), Matrix(down, 5, 4))
                    .literal({2, 3, 4})});
}
TEST(ModuleRow, residual_rms_norm) {
  const Literal r = mixed({2, 3, 4}, 7), gamma = mixed({4}, 8), beta = mixed({4}, 9);
  const Matrix sum = plain::add(Matrix(kX, 6, 4), Matrix(r, 6, 4));
  expect_block(
      {kX, r, gamma, beta},
      [](GraphModule& m, const Values& v) { return m.residual_rms_norm(v[0], v[1], v[2], v[3], 1e-3); },
      {plain::rms_norm(sum, gamma, beta, 1e-3).literal({2, 3, 4})});
}
TEST(ModuleRow, rms_norm) {
  const Literal gamma = mixed({4}, 8), beta = mixed({4}, 9);
  expect_block({kX, gamma, beta},
               [](GraphModule& m, const Values& v) { return m.rms_norm(v[0], v[1], v[2], 1e-3); },
               {plain::rms_norm(Matrix(kX, 6, 4), gamma, beta, 1e-3).literal({2, 3, 4})});
}
TEST(ModuleRow, attention) {
  const Literal q = mixed({2, 3, 4}, 1), k = mixed({2, 3, 4}, 2), v = mixed({2, 3, 4}, 3);
  expect_block({q, k, v},
               [](GraphModule& m, const Values& x) {
                 return m.attention(x[0], x[1], x[2], {}, 2, 2, MaskKind::causal);
               },
               {plain::causal_attention(q, k, v, 2, 3, 2, 2, 2)});
  // A window as wide as the sequence is the causal mask, one of 0 shows each query its own key only.
  const auto windowed = [](int64_t window) {
    return [window](GraphModule& m, const Values& x) {
      return m.attention(x[0], x[1], x[2], {}, 2, 2, MaskKind::sliding_window, window);
    };
  };
  expect_block({q, k, v}, windowed(2), {plain::causal_attention(q, k, v, 2, 3, 2, 2, 2)});
  expect_block({q, k, v}, windowed(0), {v});
  GraphModule m = GraphModule::hir("m");
  const Value x = m.input("x", Shape(DType::f32, {1, 1, 2}));
  EXPECT_EQ(message_of([&] { m.attention(x, x, x, {}, 1, 2, MaskKind::custom); }),
            "attention: mask_kind custom needs a mask");
  EXPECT_EQ(message_of([&] { m.attention(x, x, x, x, 1, 2, MaskKind::causal); }),
            "attention: mask_kind causal takes no mask");
}
TEST(ModuleRow, depthwise_conv1d_causal) {
  // One channel, kernel [1, 10], left pad 5: y[t] = x[t-1] + 10 x[t].
  expect_block({f64({1, 2, 1}, {1, 2}), f64({1, 1, 1, 2}, {1, 10}), f64({1, 1, 1}, {5})},
               [](GraphModule& m, const Values& v) { return m.depthwise_conv1d_causal(v[0], v[1], v[2], 2); },
               {f64({1, 2, 1}, {15, 21})});
  GraphModule m = GraphModule::hir("m");
  const Value x = m.input("x", Shape(DType::f32, {1, 2, 1})),
              w = m.input("w", Shape(DType::f32, {1, 1, 1, 2}));
  EXPECT_EQ(message_of([&] { m.depthwise_conv1d_causal(x, w, x, 3); }),
            "depthwise_conv1d_causal: kernel_size 3 for weight: f32[1,1,1,2]; its last axis is the kernel");
}
TEST(ModuleRow, gated_delta_net) {
  const Literals in = {f64({1, 1, 1, 1}, {2}), f64({1, 1, 1, 1}, {0.5}), f64({1, 1, 1, 1}, {3}),
                       f64({1, 1, 1}, {-0.1}), f64({1, 1, 1}, {0.7})};
  const double s = 0.7 * 0.5 * 3;
  expect_block(
      in, [](GraphModule& m, const Values& v) { return m.gated_delta_net(v[0], v[1], v[2], v[3], v[4], 1); },
      {f64({1, 1, 1, 1}, {2 * s}), f64({1, 1, 1, 1}, {s})});
}
TEST(ModuleRow, gated_delta_net_carry) {
  const Literals in = {f64({1, 1, 1, 1}, {2}), f64({1, 1, 1, 1}, {0.5}), f64({1, 1, 1, 1}, {3}),
                       f64({1, 1, 1}, {-0.1}), f64({1, 1, 1}, {0.7}),    f64({1, 1, 1, 1}, {4})};
  const double old = 4 * std::exp(-0.1), s = old + 0.7 * 0.5 * (3 - old * 0.5);
  expect_block(in,
               [](GraphModule& m, const Values& v) {
                 return m.gated_delta_net_carry(v[0], v[1], v[2], v[3], v[4], v[5], 1);
               },
               {f64({1, 1, 1, 1}, {2 * s}), f64({1, 1, 1, 1}, {s})});
}
TEST(ModuleRow, rope) {
  expect_block({f64({1, 2, 2}, {1, 2, 3, 4}), f64({2, 1}, {1, 0}), f64({2, 1}, {0, 1})},
               [](GraphModule& m, const Values& v) { return m.rope(v[0], v[1], v[2], 2, 2); },
               {f64({1, 2, 2}, {1, 2, -4, 3})});
}
TEST(ModuleRow, hir_mir) {
  expect_block({f64({2}, {1, 4})}, [](GraphModule& m, const Values& v) { return m.hir_mir("sqrt", {v[0]}); },
               {f64({2}, {1, 2})});
}
TEST(ModuleRow, named) {
  const Graph g = small().into_graph();
  const ir::Node& n = g.node(g.outputs()[0]);
  EXPECT_EQ(n.name, "first");
  EXPECT_EQ(n.origin->label, "first");
  EXPECT_EQ(n.origin->block, "first");
}
TEST(ModuleRow, name) { EXPECT_EQ(small().name(), "small"); }
TEST(ModuleRow, lower) {
  const GraphModule mir = small().lower();
  EXPECT_EQ(mir.lower().stage(), Stage::Mir);
  EXPECT_TRUE(mir.lower().as_graph() == mir.as_graph());
}
TEST(ModuleRow, into_hir) {
  EXPECT_EQ(small().into_hir().graph.name(), "small");
  EXPECT_EQ(message_of([] { small().lower().into_hir(); }),
            "as_hir: module 'small' is at MIR stage; lowering does not go back");
}
TEST(ModuleRow, into_mir) {
  EXPECT_TRUE(small().into_mir().graph == GraphModule::from_lir(small().into_lir()).into_mir().graph);
}
TEST(ModuleRow, into_lir) {
  const Lir lir = small().into_lir();
  const Plan& p = lir.plan;
  int64_t end = 0;
  for (const Plan::Slot& s : p.slots) {  // one after another, aligned, none overlapping
    EXPECT_EQ(s.offset % 64, 0);
    EXPECT_GE(s.offset, end);
    end = s.offset + s.bytes;
  }
  EXPECT_GE(p.arena_bytes, end);
  EXPECT_EQ(p.slots.size(), lir.graph.len());
  EXPECT_EQ(p.schedule.size(), lir.graph.len() - 3);
  ASSERT_EQ(p.params.size(), 2u);
  EXPECT_EQ(p.params[0].name, "w");
  EXPECT_EQ(p.params[0].bytes, 4 * 5 * 8);
  EXPECT_EQ(p.slot(lir.graph.outputs()[0]).offset, p.outputs[0].offset);
  GraphModule dynamic = GraphModule::hir("dynamic");
  dynamic.finish_hir(dynamic.input("x", parse_shape("f32[n]")));
  EXPECT_EQ(message_of([&] { dynamic.into_lir(); }),
            "plan: graph 'dynamic' has symbolic sizes: n; bind them first");
}
TEST(ModuleRow, into_graph) { EXPECT_EQ(small().into_graph().name(), "small"); }
TEST(ModuleRow, as_hir) { EXPECT_EQ(small().as_hir().graph.len(), 4u); }
TEST(ModuleRow, as_mir) {
  EXPECT_EQ(message_of([] { small().as_mir(); }),
            "as_mir: module 'small' is at HIR stage; call lower() first");
  EXPECT_EQ(small().lower().as_mir().graph.name(), "small");
}
TEST(ModuleRow, as_lir) {
  EXPECT_EQ(message_of([] { small().as_lir(); }),
            "as_lir: module 'small' is at HIR stage; call into_lir() first");
}
TEST(ModuleRow, as_graph) {
  EXPECT_EQ(message_of([] { small().as_graph(); }),
            "as_graph: module 'small' is at HIR stage; call lower() first");
}
TEST(ModuleRow, inspect) {
  const std::string hir = small().inspect(), lir = GraphModule::from_lir(small().into_lir()).inspect();
  EXPECT_TRUE(hir.starts_with("module @small at HIR stage, policy direct\n  blocks: linear 1\n")) << hir;
  EXPECT_NE(lir.find("output first: f64[3,5] at "), std::string::npos) << lir;
}
TEST(ModuleRow, to_text) {
  const test::Scratch scratch;
  for (const GraphModule& m : {small(), small().with_fusion_policy(FusionPolicy::fusable), small().lower(),
                               GraphModule::from_lir(small().into_lir())}) {
    const GraphModule back = GraphModule::parse(m.to_text());
    EXPECT_EQ(back.stage(), m.stage());
    EXPECT_EQ(back.to_text(), m.to_text());
    m.save(scratch.path("m"));
    EXPECT_EQ(GraphModule::load(scratch.path("m")).to_text(), m.to_text());
    std::ostringstream out;
    out << m;
    EXPECT_EQ(out.str(), m.to_text());
  }
  EXPECT_EQ(GraphModule::parse("graph() {\n return\n}").stage(), Stage::Mir);
  EXPECT_EQ(message_of([] { GraphModule::parse("grph() {\n return\n}"); }),
            "parse: expected 'graph', found 'grph'");
}

TEST(GraphRow, define) {
  const GraphModule m =
      Graph::define("m", [](GraphModule& b) { return b.input("x", Shape(DType::f64, {1})); });
  EXPECT_EQ(m.into_graph().interpret({{"x", f64({1}, {3})}}).begin()->second.real_at(0), 3);
}
TEST(GraphRow, hir) { EXPECT_EQ(Graph::hir("m").stage(), Stage::Hir); }
TEST(GraphRow, module) { EXPECT_TRUE(small().into_graph().module().as_graph() == small().into_graph()); }
TEST(GraphRow, from_hir) { EXPECT_TRUE(Graph::from_hir(small().as_hir()) == small().into_graph()); }
TEST(GraphRow, from_lir) { EXPECT_TRUE(Graph::from_lir(small().into_lir()) == small().into_graph()); }
TEST(GraphRow, inspect_module) { EXPECT_EQ(Graph::inspect_module(small()), small().inspect()); }

}  // namespace
}  // namespace rlx
