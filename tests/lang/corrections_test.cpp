// What blocks and modules mean where an earlier system computed something else; see docs/corrections.md.
#include "rlx/ir/build_def.h"
#include "rlx/lang/module.h"
#include "rlx/transform/transform.h"
#include "tests/lang/plain.h"
#include "tests/lang/rows.h"
#include "tests/support/errors.h"

namespace rlx {
namespace {

using namespace test;
using plain::Matrix;

bool has_fused(const ir::Graph& g) {
  for (const ir::Node* n : g.nodes()) {
    if (n->op->name.starts_with("fused_")) return true;
  }
  return false;
}

TEST(Hir, comparisons_are_bool_at_every_stage) {
  GraphModule m = GraphModule::hir("m");
  const Value x = m.input("x", Shape(DType::f32, {2})), y = m.input("y", Shape(DType::f32, {2}));
  m.set_hir_outputs({m.builders().eq(x, y), m.builders().lt(x, y)});
  EXPECT_TRUE(m.as_hir().graph.verify().empty());
  const Graph lowered = m.into_graph();
  for (const Value v : lowered.outputs()) EXPECT_EQ(lowered.shape(v).dtype(), DType::bool_);
}

TEST(Hir, the_gated_net_takes_a_symbolic_number_of_rows_under_both_policies) {
  const Literal x = mixed({3, 4}, 1), up = mixed({4, 5}, 2), gate = mixed({4, 5}, 3), down = mixed({5, 4}, 4);
  for (const FusionPolicy policy : {FusionPolicy::direct, FusionPolicy::fusable}) {
    GraphModule m = GraphModule::hir("m").with_fusion_policy(policy);
    const Value in = m.input("x", parse_shape("f64[rows,4]")), u = m.param("up", up.shape()),
                g = m.param("gate", gate.shape()), d = m.param("down", down.shape());
    m.finish_hir(m.swiglu_ffn(in, u, g, d));
    expect_close(ir::interpret(m.into_graph(), Literals{x, up, gate, down})[0],
                 plain::swiglu(Matrix(x, 3, 4), Matrix(up, 4, 5), Matrix(gate, 4, 5), Matrix(down, 5, 4))
                     .literal({3, 4}),
                 1e-12);
  }
}

// Which half holds the gate is one fact, also where the block stands inside another.
TEST(Hir, large_blocks_follow_the_policy) {
  const auto decoder = [](FusionPolicy policy) {
    GraphModule m = GraphModule::hir("m").with_fusion_policy(policy);
    Values v;
    for (const char* type : {"f64[1,2,4]", "f64[4]", "f64[4]", "f64[4,4]", "f64[4,4]", "f64[4,4]", "f64[4,4]",
                             "f64[4]", "f64[4]", "f64[4,6]", "f64[4,6]", "f64[6,4]", "f64[2,1]", "f64[2,1]"})
      v.push_back(m.input(cat("x", v.size()), parse_shape(type)));
    m.finish_hir(m.llama_decoder_block(v, 2, 2, 2, 1e-5, MaskKind::causal));
    return m.into_graph();
  };
  EXPECT_TRUE(has_fused(decoder(FusionPolicy::direct)));
  EXPECT_FALSE(has_fused(decoder(FusionPolicy::fusable)));
}

struct Identity {
  static constexpr std::string_view name = "corrections_identity", summary = "", doc = "y = x",
                                    operands = "x";
  using Attrs = ir::NoAttrs;
  static Shapes infer(ir::Infer& c, Attrs&) { return {c.in(0)}; }
  static Literals reference(const ir::Eval& c, const Attrs&) { return {c.in(0)}; }
};

TEST(CustomOp, without_a_derivative_does_not_end_the_walk_in_silence) {
  Graph g("g");
  const Value x = g.input("x", Shape(DType::f64, {2}));
  g.set_outputs({g.sum(ir::make<Identity>(g, {}, {x}), {}, false)});
  EXPECT_EQ(message_of([&] { transform::grad(g, {"x"}); }),
            "grad: no derivative rule for op 'corrections_identity'; wrap its operands in stop_gradient");
  EXPECT_EQ(message_of([&] { transform::jvp(g, {"x"}); }),
            "jvp: no derivative rule for op 'corrections_identity'; wrap its operands in stop_gradient");
}

TEST(Hir, rope_refuses_an_odd_number_of_turned_lanes) {
  GraphModule m = GraphModule::hir("m");
  const Value x = m.input("x", Shape(DType::f32, {1, 2, 4})), t = m.input("t", Shape(DType::f32, {2, 2}));
  EXPECT_EQ(message_of([&] { m.rope(x, t, t, 4, 3); }),
            "rope: n_rot is 3; it must be even and at most head_dim 4");
}

}  // namespace
}  // namespace rlx
