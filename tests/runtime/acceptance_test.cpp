// Where the system we re-create went wrong or was never tested, as named tests through the whole road on the CPU: what is compiled,
// with and without fusion, says what the interpreter says.
#include <gtest/gtest.h>

#include <cmath>

#include "rlx/backend/plan.h"
#include "rlx/ir/leaves.h"
#include "rlx/ir/sample.h"
#include "rlx/ir/text.h"
#include "rlx/runtime/stages.h"
#include "tests/support/graphs.h"
#include "tests/support/random_program.h"

namespace rlx {
namespace {

using test::graph;

NamedLiterals samples(const ir::Graph& g, uint64_t seed = 5) {
  NamedLiterals out;
  for (const ir::NodeId id : g.leaves())
    out.emplace(ir::leaf_name(g.node(id)), ir::sample_literal(cat(g.node(id).shapes[0]), seed + id));
  return out;
}

void expect_as_interpreted(const ir::Graph& g, const NamedLiterals& leaves, double tolerance) {
  SCOPED_TRACE(cat(g));
  const NamedLiterals want = ir::interpret(g, leaves);
  NamedLiterals weights, inputs;
  for (const ir::NodeId id : g.leaves()) {
    const std::string& name = ir::leaf_name(g.node(id));
    (g.node(id).is<ir::Param>() ? weights : inputs).emplace(name, leaves.at(name));
  }
  for (const bool fuse : {false, true}) {
    SCOPED_TRACE(fuse ? "fused" : "not fused");
    CompiledGraph f = compile(g, weights, {.fuse = fuse});
    for (const auto& [name, value] : f.run(inputs)) {
      SCOPED_TRACE(name);
      test::expect_close(value, want.at(name), tolerance);
    }
    EXPECT_TRUE(backend::verify_plan(f.plan()).empty());
  }
}

void expect_as_interpreted(std::string_view text, double tolerance = 2e-5) {
  const ir::Graph g = graph(text);
  expect_as_interpreted(g, samples(g), tolerance);
}

// Its fused block dropped causal masks below 64 rows, and guessed the layout when rows were as many as heads.
TEST(CausalAttention, of_packed_operands_at_every_length) {
  for (const auto& [batch, rows] :
       {std::pair{1, 1}, {1, 2}, {2, 4}, {1, 63}, {2, 32}, {1, 64}, {1, 65}, {2, 64}}) {
    expect_as_interpreted(cat("graph @g(x: f32[", batch, ",", rows, R"(,16], param w: f32[16,48]) {
      p = matmul(x, w)
      q = narrow(p, axis=2, start=0, len=16)
      k = narrow(p, axis=2, start=16, len=16)
      v = narrow(p, axis=2, start=32, len=16)
      y:2 = attention(q, k, v, num_heads=4, mask_kind=causal)
      return y
    })"));
  }
}

TEST(CausalAttention, of_shared_heads_and_windows) {
  for (const int shared : {1, 2, 4, 8}) {
    for (const char* const mask : {"causal", "sliding_window, window=5"}) {
      expect_as_interpreted(cat("graph @g(q: f32[2,9,64], k: f32[2,9,", 64 / shared, "], v: f32[2,9,",
                                64 / shared, "]) { y:2 = attention(q, k, v, num_heads=8, num_kv_heads=",
                                8 / shared, ", mask_kind=", mask, ") return y }"));
    }
  }
}

TEST(CausalAttention, of_wide_heads) {
  for (const int lanes : {64, 80, 128, 256}) {
    expect_as_interpreted(cat("graph @g(q: f32[1,6,", 2 * lanes, "], k: f32[1,6,", 2 * lanes,
                              "], v: f32[1,6,", 2 * lanes,
                              "]) { y:2 = attention(q, k, v, num_heads=2, mask_kind=causal) return y }"));
  }
}

// Rows in one piece, and one after the other with the state handed on.
TEST(GatedDeltaNet, in_one_piece_equals_step_by_step) {
  const ir::Graph whole = graph(
      R"(graph @g(q: f32[2,12,2,8], k: f32[2,12,2,8], v: f32[2,12,2,8], g: f32[2,12,2], b: f32[2,12,2]) {
    y:2 = gated_delta_net(q, k, v, g, b)
    return y, y#1
  })");
  const ir::Graph step =
      graph(R"(graph @s(q: f32[2,1,2,8], k: f32[2,1,2,8], v: f32[2,1,2,8], g: f32[2,1,2], b: f32[2,1,2],
      state: f32[2,2,8,8]) {
    y:2 = gated_delta_net_carry(q, k, v, g, b, state)
    return y, next=y#1
  })");
  NamedLiterals in;
  for (const ir::NodeId id : whole.leaves()) {
    const bool gate = whole.node(id).shapes[0].rank() == 3;
    in.emplace(ir::leaf_name(whole.node(id)),
               ir::sample_literal(cat(whole.node(id).shapes[0], gate ? " in -0.5..0.0" : ""), 3 + id));
  }
  const NamedLiterals want = compile(whole).run(in);
  const auto at = [](const Literal& x, int64_t t) {
    Literal row = Literal::zeros(x.shape().with_dim(1, 1));
    const AxisView a = axis_view(x.shape(), 1);
    for (int64_t o = 0; o < a.outer; ++o) {
      for (int64_t i = 0; i < a.inner; ++i)
        row.mutable_data<float>()[size_t(o * a.inner + i)] =
            x.data<float>()[size_t((o * a.length + t) * a.inner + i)];
    }
    return row;
  };
  CompiledGraph f = compile(step, {}, {.states = {{"state", "next"}}});
  for (int64_t t = 0; t < 12; ++t) {
    NamedLiterals row;
    for (const auto& [name, value] : in) row.emplace(name, at(value, t));
    test::expect_close(f.run(row).begin()->second, at(want.begin()->second, t), 1e-4);
  }
  test::expect_close(f.save_states().at("state"), std::next(want.begin())->second, 1e-4);
}

// Weights lie in memory once, whatever clones and sizes there are.
TEST(Weights, are_shared_by_clones_and_sizes) {
  const ir::Graph g = graph("graph @g(x: f32[n,64], param w: f32[64,64]) { y = matmul(x, w) return y }");
  CompiledGraph f = compile(g, {{"w", ir::sample_literal("f32[64,64]", 1)}});
  f.run({{"x", ir::sample_literal("f32[32,64]", 2)}});
  const int64_t packed = f.packed_weight_bytes();
  CompiledGraph other = f.clone();
  for (const int64_t n : {32, 40, 48}) other.run({{"x", ir::sample_literal(cat("f32[", n, ",64]"), 2)}});
  EXPECT_EQ(other.packed_weight_bytes(), packed);
}

TEST(Casting, between_every_pair_of_types_equals_the_interpreter) {
  for (int from = 0; from < kDTypeCount; ++from) {
    for (int to = 0; to < kDTypeCount; ++to) {
      ir::Graph made("cast");
      const ir::Value x = made.input("x", Shape(DType(from), {9}));
      ir::Expr y;
      try {
        y = ops::cast({&made, x}, DType(to));
      } catch (const Error&) {
        continue;  // no such conversion
      }
      made.set_outputs({y});
      const double edges[] = {0, 1, -1, 0.5, 2.5, 3e9, -3e9, 300, 70000};
      const Literal value = Literal::reals(Shape(DType::f64, {9}), edges).cast(DType(from));
      EXPECT_EQ(compile(made).run(NamedLiterals{{"x", value}}).begin()->second,
                ir::interpret(made, NamedLiterals{{"x", value}}).begin()->second)
          << dtype_name(DType(from)) << " to " << dtype_name(DType(to));
    }
  }
}

// A product with bias and activation, in every way to write it.
TEST(FusedProduct, of_every_shape_of_bias_and_order_of_operands) {
  for (const char* const bias : {"f32[]", "f32[1]", "f32[8]", "f32[1,8]", "f32[4,1]", "f32[4,8]"}) {
    for (const char* const sum : {"add(h, b)", "add(b, h)"}) {
      expect_as_interpreted(cat("graph @g(x: f32[4,16], param w: f32[16,8], param b: ", bias,
                                ") { h = matmul(x, w) a = ", sum, " y = relu(a) return y }"));
    }
  }
}

TEST(FusedProduct, with_other_readers_and_outputs_between) {
  expect_as_interpreted(R"(graph @g(x: f32[4,16], param w: f32[16,8], param b: f32[8]) {
    h = matmul(x, w) a = add(h, b) y = gelu(a) return y, a, h
  })");
  expect_as_interpreted(R"(graph @g(x: f32[4,16], param w: f32[16,8], param b: f32[8]) {
    h = matmul(x, w) a = add(h, b) y = gelu(a) z = mul(a, h) return y, z
  })");
}

TEST(FusedProduct, with_params_declared_late) {
  ir::Graph g("late");
  const ir::Expr x{&g, g.input("x", parse_shape("f32[4,16]"))};
  const ir::Expr w{&g, g.param("w", parse_shape("f32[16,8]"))};
  const ir::Expr h = ops::matmul(x, w);
  const ir::Expr b{&g, g.param("b", parse_shape("f32[8]"))};
  g.set_outputs({ops::relu(ops::add(h, b))});
  expect_as_interpreted(g, samples(g), 2e-5);
}

TEST(FusedProduct, with_a_gate_first_or_last) {
  for (const char* const product : {"mul(s, u)", "mul(u, s)"}) {
    expect_as_interpreted(cat(R"(graph @g(x: f32[4,16], param a: f32[16,8], param b: f32[16,8]) {
      g = matmul(x, a) u = matmul(x, b) s = silu(g) y = )",
                              product, " return y }"));
  }
}

TEST(ResidualNorm, with_residuals_that_broadcast) {
  for (const char* const residual : {"f32[2,3,16]", "f32[1,3,16]", "f32[16]", "f32[2,1,1]"}) {
    expect_as_interpreted(
        cat("graph @g(x: f32[2,3,16], r: ", residual,
            ", param s: f32[16], param t: f32[16]) { h = add(x, r) y = layer_norm(h, s, t, axis=2) "
            "return y, h }"));
  }
}

TEST(Regions, with_operands_of_every_broadcast_shape) {
  for (const char* const other :
       {"f32[]", "f32[1]", "f32[5]", "f32[4,1]", "f32[1,5]", "f32[3,1,5]", "f32[3,4,5]"}) {
    expect_as_interpreted(cat("graph @g(x: f32[3,4,5], o: ", other,
                              ") { a = mul(x, o) b = tanh(a) c = sub(b, o) y = exp(c) return y }"));
    expect_as_interpreted(cat("graph @g(p: bool", std::string(other).substr(3),
                              ", x: f32[3,4,5]) { n = neg(x) w = where(p, x, n) y = exp(w) return y }"));
  }
}

TEST(Regions, as_diamonds_merging_chains_and_long_chains) {
  expect_as_interpreted("graph @g(x: f32[7]) { a = sin(x) b = exp(a) c = neg(a) y = add(b, c) return y }");
  expect_as_interpreted(
      "graph @g(x: f32[7], z: f32[7]) { a = sin(x) b = tanh(a) c = cos(z) d = neg(c) y = mul(b, d) e = abs(y) return e }");
  std::string text = "graph @g(x: f32[7]) {\n  a0 = sin(x)\n";
  for (int i = 1; i < 150; ++i)
    text += cat("  a", i, " = ", i % 3 == 0 ? "sin" : i % 3 == 1 ? "tanh" : "neg", "(a", i - 1, ")\n");
  expect_as_interpreted(text + "  return a149\n}");
}

TEST(Regions, of_mixed_types) {
  expect_as_interpreted(R"(graph @g(x: f32[6], i: i32[6], h: f16[6], d: f64[6], b: bool[6]) {
    xi = cast(x, to=i32)
    s = add(xi, i)
    f = cast(s, to=f32)
    e = mul(f, x)
    w = cast(h, to=f32)
    t = add(e, w)
    u = where(b, t, x)
    v = cast(u, to=f64)
    y = add(v, d)
    return y, s
  })",
                        1e-4);
}

TEST(ControlFlow, takes_the_side_that_the_predicate_says_and_no_other) {
  for (const char* const p : {"true", "false"}) {
    const ir::Graph g = graph(cat("graph @g(x: f32[3]) { p = constant(value=bool[]{", p, R"(})
      y = if(p, x, then_body=graph @a(x: f32[3]) { e = exp(x) return e }, else_body=graph @b(x: f32[3]) { n = neg(x) l = log(n) return l })
      return y
    })"));
    expect_as_interpreted(g, {{"x", Literal::of<float>({3}, {1, 2, 3})}}, 1e-5);
  }
}

TEST(ControlFlow, loops_as_often_as_the_data_say) {
  const ir::Graph g = graph(R"(graph @g(i: i32[], z: f32[2]) {
    r:2 = while(i, z, cond=graph @more(i: i32[], z: f32[2]) {
      n = constant(value=i32[]{5})
      p = compare(i, n, kind=lt)
      return p
    }, body=graph @step(i: i32[], z: f32[2]) {
      one = constant(value=i32[]{1})
      j = add(i, one)
      y = sin(z)
      return j, y
    }, carries=2)
    return r, r#1
  })");
  for (const int32_t start : {0, 3, 5, 9}) {
    expect_as_interpreted(
        g, {{"i", Literal::of<int32_t>({}, {start})}, {"z", Literal::of<float>({2}, {1, 2})}}, 1e-6);
  }
}

TEST(Lowering, of_general_products_over_any_axes) {
  expect_as_interpreted(
      "graph @g(a: f32[2,3,4], b: f32[3,4,2,5]) { y = dot_general(a, b, lhs_contracting=[2,0], rhs_contracting=[1,2], "
      "lhs_batch=[1], rhs_batch=[0]) return y }");
}

TEST(Lowering, of_group_norm_with_a_large_mean) {
  const ir::Graph g = graph(
      "graph @g(x: f32[2,4,5,5], param s: f32[4], param t: f32[4]) { y = group_norm(x, s, t, num_groups=2) return y }");
  NamedLiterals in = samples(g);
  for (float& v : in.at("x").mutable_data<float>()) v += 1000;
  expect_as_interpreted(g, in, 2e-3);
}

TEST(Reduction, over_every_set_of_axes) {
  for (int set = 1; set < 8; ++set) {
    std::vector<std::string> axes;
    for (int a = 0; a < 3; ++a) {
      if (set >> a & 1) axes.push_back(cat(a));
    }
    for (const char* const keep : {"true", "false"}) {
      expect_as_interpreted(cat("graph @g(x: f32[3,4,5]) { y = reduce(x, kind=mean, axes=[", join(axes),
                                "], keep_dim=", keep, ") z = exp(y) return z }"));
    }
  }
}

// Every text of a compilation reads back to the graph it was printed from.
TEST(Stages, print_to_texts_that_read_back) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const test::RandomProgram p(seed, 15);
    const runtime::Stages s = runtime::compile_in_stages(p.graph(), {});
    ASSERT_TRUE(s.report);
    for (const auto& stage : s.stages) {
      EXPECT_EQ(ir::parse_graph(ir::to_text(stage.graph), ops::table()), stage.graph) << stage.name;
    }
    EXPECT_EQ(s.report->json(),
              runtime::compile_in_stages(p.graph(), {}).report->json());  // the same every time
  }
}

TEST(Plans, of_random_programs_hold_no_overlap_and_stay_near_their_lower_bound) {
  int64_t arena = 0, live = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const test::RandomProgram p(seed, 30);
    for (const bool fuse : {false, true}) {
      const backend::Plan plan = compile(p.graph(), {}, {.fuse = fuse}).plan();
      for (const std::string& wrong : backend::verify_plan(plan)) ADD_FAILURE() << seed << ": " << wrong;
      arena += plan.arena_bytes;
      live += plan.live_bytes;
    }
  }
  EXPECT_LE(double(arena), 1.05 * double(live));
}

}  // namespace
}  // namespace rlx
