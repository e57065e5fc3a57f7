// Whole programs: what the interpreter says, the CPU says too, with and without fusion.
#include <gtest/gtest.h>

#include "rlx/backend/cpu/isa.h"
#include "rlx/backend/cpu/nodes/device.h"
#include "rlx/backend/plan.h"
#include "rlx/passes/fuse.h"
#include "rlx/passes/legalise.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/transform/transform.h"
#include "tests/support/graphs.h"
#include "tests/support/random_network.h"
#include "tests/support/random_program.h"
#include "tests/support/run_on.h"
#include "tests/support/whole_program.h"

namespace rlx {
namespace {

NamedLiterals named(const ir::Graph& g, const Literals& leaves) {
  NamedLiterals out;
  size_t i = 0;
  for (const ir::NodeId id : g.leaves()) out.emplace(g.node(id).name, leaves[i++]);
  return out;
}

void expect_as_interpreted(const ir::Graph& g, const NamedLiterals& inputs, const NamedLiterals& weights,
                           double tolerance) {
  NamedLiterals leaves = inputs;
  leaves.insert(weights.begin(), weights.end());
  const NamedLiterals want = ir::interpret(g, leaves);
  const std::pair<std::string, CompileOptions> ways[] = {{"as it is", {.optimise = false}},
                                                         {"optimised", {.fuse = false}},
                                                         {"fused", {}},
                                                         {"fused, one thread", {.threads = 1}}};
  for (const auto& [way, options] : ways) {
    SCOPED_TRACE(way);
    for (const auto& [name, value] : compile(g, weights, options).run(inputs)) {
      SCOPED_TRACE(name);
      test::expect_close(value, want.at(name), tolerance);
    }
  }
}

TEST(Programs, of_random_operators_equal_the_interpreter) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const test::RandomProgram p(seed, 14);
    SCOPED_TRACE(cat(p.graph()));
    expect_as_interpreted(p.graph(), named(p.graph(), p.leaves()), {}, 1e-9);
    if (testing::Test::HasFailure()) break;
  }
}

// Every type, sizes around the widths of vectors and none, at every level and in memory that was NaN: exact numbers.
TEST(Programs, of_whole_numbers_are_exact) {
  const cpu::Isa before = cpu::current_isa();
  const auto levels = cpu::available_isas();
  for (uint64_t seed = 0; seed < 2000 && !testing::Test::HasFailure(); ++seed) {
    test::WholeProgram p(seed, 8 + int(seed % 20));
    const ir::Graph g = p.graph();
    SCOPED_TRACE(cat("seed ", seed, "\n", g));
    const Literals want = ir::interpret(g, p.leaves());
    cpu::use_isa(levels[seed % levels.size()]);
    const int threads = 1 + int(seed / 4 % 3);
    std::vector<bool> fixed;
    NamedLiterals inputs, weights;
    for (const ir::NodeId id : g.leaves()) {
      fixed.push_back(g.node(id).is<ir::Param>());
      (fixed.back() ? weights : inputs).emplace(g.node(id).name, p.leaves()[fixed.size() - 1]);
    }
    const ir::Graph plain = passes::legalise(g, cpu::device()).graph;
    const ir::Graph fused = passes::fuse(plain, cpu::device()).graph;
    for (const ir::Graph* program : {&plain, &fused})
      test::expect_close(
          test::run_on(cpu::device(), *program, p.leaves(), {.threads = threads, .fixed = fixed}), want, 0);
    const NamedLiterals got = compile(g, weights, {.threads = threads}).run(inputs);
    for (size_t i = 0; i < want.size(); ++i) test::expect_close(got.at(cat("o", i)), want[i], 0);
  }
  cpu::use_isa(before);
}

TEST(Programs, of_random_networks_equal_the_interpreter) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const test::RandomNetwork p(seed, 16);
    SCOPED_TRACE(cat(p.graph()));
    expect_as_interpreted(p.graph(), p.inputs(), p.weights(), 1e-4);
    if (testing::Test::HasFailure()) break;
  }
}

TEST(Programs, of_gradients_equal_the_interpreter) {
  for (uint64_t seed = 1000; seed < 1060; ++seed) {
    const test::RandomProgram p(seed, 10);
    ir::Graph g = p.graph();
    ir::Graph scalar = g;
    const ir::Expr last{&scalar, scalar.outputs()[0]};
    scalar.set_outputs({ops::reduce_sum(last, {})});
    const ir::Graph grad = transform::value_and_grad(scalar, {"x0", "x1", "x2"});
    SCOPED_TRACE(cat(grad));
    expect_as_interpreted(grad, named(grad, p.leaves()), {}, 1e-8);
    if (testing::Test::HasFailure()) break;
  }
}

std::vector<std::string> kernels(const ir::Graph& g, const NamedLiterals& weights) {
  CompiledGraph f = compile(g, weights);
  std::vector<std::string> out;
  for (const backend::Plan::Step& s : f.plan().steps) out.push_back(s.kernel);
  return out;
}

// Sums of few axes are no convolutions with channels, whoever asks whether they are.
TEST(Programs, add_scalars_to_vectors) {
  for (const char* text : {"graph(a: f32[], b: f32[], c: f32[]) { return add(add(a, b), c) }",
                           "graph(a: f32[1], b: f32[], c: f32[1]) { return relu(add(add(a, b), c)) }",
                           "graph(a: f32[4], b: f32[], c: f32[4]) { return add(add(a, b), c) }",
                           "graph(a: f32[3,4], b: f32[], c: f32[4]) { return add(add(a, b), c) }",
                           "graph(a: f32[3,4], b: f32[3,1], c: f32[4]) { return relu(add(add(a, b), c)) }",
                           "graph(a: f32[1,2,3,2,2], b: f32[2,2], c: f32[]) { return add(add(a, b), c) }"}) {
    SCOPED_TRACE(text);
    const ir::Graph g = test::graph(text);
    NamedLiterals inputs;
    uint64_t seed = 0;
    for (const ir::NodeId id : g.leaves())
      inputs.emplace(g.node(id).name, ir::sample_literal(cat(g.node(id).shapes[0]), ++seed));
    expect_as_interpreted(g, inputs, {}, 1e-6);
  }
}

TEST(Programs, join_bias_and_activation_to_their_product) {
  const ir::Graph g = test::graph(R"(graph @ffn(x: f32[4,8], param w: f32[8,16], param b: f32[16]) {
    h = matmul(x, w)
    a = add(h, b)
    y = gelu(a)
    return y
  })");
  const NamedLiterals weights{{"w", ir::sample_literal("f32[8,16]", 1)},
                              {"b", ir::sample_literal("f32[16]", 2)}};
  EXPECT_EQ(kernels(g, weights), std::vector<std::string>({"matmul_epilogue_f32"}));
  const Literal x = ir::sample_literal("f32[4,8]", 3);
  NamedLiterals all = weights;
  all.emplace("x", x);
  test::expect_close(compile(g, weights).run({{"x", x}}).at("y"), ir::interpret(g, all).at("y"), 2e-5);
}

TEST(Programs, join_a_gate_and_a_residual_to_their_products) {
  const ir::Graph g =
      test::graph(R"(graph @swiglu(x: f32[4,8], param g: f32[8,16], param u: f32[8,16], param d: f32[16,8]) {
    a = matmul(x, g)
    b = matmul(x, u)
    s = silu(a)
    h = mul(s, b)
    o = matmul(h, d)
    y = add(o, x)
    return y
  })");
  NamedLiterals weights{{"g", ir::sample_literal("f32[8,16]", 1)},
                        {"u", ir::sample_literal("f32[8,16]", 2)},
                        {"d", ir::sample_literal("f32[16,8]", 3)}};
  EXPECT_EQ(kernels(g, weights),
            std::vector<std::string>({"matmul_gemm", "matmul_epilogue_f32", "matmul_epilogue_f32"}));
  const Literal x = ir::sample_literal("f32[4,8]", 4);
  NamedLiterals all = weights;
  all.emplace("x", x);
  test::expect_close(compile(g, weights).run({{"x", x}}).at("y"), ir::interpret(g, all).at("y"), 2e-5);
}

TEST(Programs, sum_what_a_product_and_its_bias_give) {
  const ir::Graph g = test::graph(R"(graph @total(x: f32[4,8], param w: f32[8,16], param b: f32[16]) {
    m = matmul(x, w)
    a = add(m, b)
    return reduce(a)
  })");
  const NamedLiterals weights{{"w", ir::sample_literal("f32[8,16]", 1)},
                              {"b", ir::sample_literal("f32[16]", 2)}};
  NamedLiterals all = weights;
  all.emplace("x", ir::sample_literal("f32[4,8]", 4));
  const std::string name = g.output_name(0);
  test::expect_close(compile(g, weights).run({{"x", all.at("x")}}).at(name), ir::interpret(g, all).at(name),
                     2e-5);
}

TEST(Programs, run_a_chain_of_elements_as_one_region) {
  const ir::Graph g = test::graph(R"(graph @adam(p: f32[100], m: f32[100], v: f32[100]) {
    e = full(shape=f32[], value=1e-8)
    r = sqrt(v)
    d = add(r, e)
    q = div(m, d)
    y = sub(p, q)
    return y
  })");
  EXPECT_EQ(kernels(g, {}), std::vector<std::string>({"region"}));
}

TEST(Programs, make_what_depends_on_weights_once) {
  const ir::Graph g = test::graph(R"(graph @once(x: f32[2,3], param w: f32[3,3]) {
    s = exp(w)
    y = matmul(x, s)
    return y
  })");
  EXPECT_EQ(kernels(g, {{"w", ir::sample_literal("f32[3,3]", 1)}}),
            std::vector<std::string>({"matmul_gemm"}));
  CompiledGraph f = compile(g, {{"w", Literal::zeros(parse_shape("f32[3,3]"))}});
  const Literal x = Literal::full(parse_shape("f32[2,3]"), 1);
  EXPECT_EQ(f.run({{"x", x}}).at("y"), Literal::full(parse_shape("f32[2,3]"), 3));
  f.set_param("w", Literal::full(parse_shape("f32[3,3]"), std::log(2.0)));
  test::expect_close(f.run({{"x", x}}).at("y"), Literal::full(parse_shape("f32[2,3]"), 6), 1e-5);
}

}  // namespace
}  // namespace rlx
