// Loops and branches whose data decide: kernels compile without a GPU; on one, a recorded program follows its data.
#include <gtest/gtest.h>

#include "rlx/backend/builder.h"
#include "rlx/ir/sample.h"
#include "rlx/ops/all.h"
#include "tests/backend/cuda/on_device.h"

namespace rlx {
namespace {

using ir::Expr;

// v = v 1.5 + 1, n = n + 1 while n is below a limit; at most `most` times. Above 10, v is halved in a branch first.
ir::Graph loop_graph(std::optional<int64_t> most) {
  const Shape vector(DType::f32, {4}), number = Shape::scalar(DType::f32);
  const auto leaves = [&](ir::Graph& g) {
    return std::vector<Expr>{
        {&g, g.input("v", vector)}, {&g, g.input("n", number)}, {&g, g.input("limit", number)}};
  };
  ir::Graph test("test"), body("body"), high("high"), low("low");
  const auto t = leaves(test);
  test.set_outputs({ops::less(t[1], t[2])});
  const Expr h{&high, high.input("v", vector)}, l{&low, low.input("v", vector)};
  high.set_outputs({ops::mul(h, ops::scalar_like(h, 0.5))});
  low.set_outputs({ops::mul(l, ops::scalar_like(l, 1))});
  const auto b = leaves(body);
  const Expr large = ops::less(ops::scalar_like(b[1], 10), ops::reduce_max(b[0], {0}));
  const Expr v = ops::if_else(large, {b[0]}, high, low)[0];
  const Expr grown = ops::add(ops::mul(v, ops::scalar_like(v, 1.5)), ops::scalar_like(v, 1));
  body.set_outputs({grown, ops::add(b[1], ops::scalar_like(b[1], 1))});
  ir::Graph g("loop");
  const auto x = leaves(g);
  const auto out = ops::while_loop(g, {x[0], x[1]}, {x[2]}, test, body, most);
  g.set_outputs({out[0], out[1]}, {"v", "n"});
  return g;
}

// Of every step that a flag lets run: v = v 1.5 + x, and the sum of v before it. The flag is one of a sequence, or carried: v stays small.
ir::Graph gated_graph(ops::ScanGate gate, bool reverse) {
  constexpr int64_t kLength = 7;
  const bool carried = gate == ops::ScanGate::carry;
  const Shape vector(DType::f32, {5}), flag = Shape::scalar(DType::bool_);
  ir::Graph body("body"), g("gated");
  const auto leaf = [](ir::Graph& to, const char* name, const Shape& s) {
    return Expr{&to, to.input(name, s)};
  };
  std::vector<Expr> operands;
  if (carried) leaf(body, "go", flag), operands.push_back(leaf(g, "go", flag));
  const Expr v = leaf(body, "v", vector);
  operands.push_back(leaf(g, "v", vector));
  if (!carried) leaf(body, "go", flag), operands.push_back(leaf(g, "go", Shape(DType::bool_, {kLength})));
  const Expr x = leaf(body, "x", vector);
  operands.push_back(leaf(g, "x", Shape(DType::f32, {kLength, 5})));
  const Expr next = ops::add(ops::mul(v, ops::scalar_like(v, 1.5)), x), sum = ops::reduce_sum(v, {0});
  if (carried) {
    body.set_outputs({ops::less(ops::reduce_max(next, {0}), ops::scalar_like(next, 4)), next, sum});
  } else {
    body.set_outputs({next, sum});
  }
  ir::Values values(operands.begin(), operands.end());
  const auto out = ops::make_all<ops::Scan>(g,
                                            {.body = std::make_shared<const ir::Graph>(body),
                                             .length = kLength,
                                             .carries = carried ? 2 : 1,
                                             .reverse = reverse,
                                             .gate = gate},
                                            values);
  g.set_outputs({out[carried ? 1 : 0], out.back()}, {"v", "sums"});
  return g;
}

TEST(CudaControl, loops_and_branches_need_no_host_where_the_driver_records_them) {
  for (const char* architecture : {"sm_90a", "sm_80"}) {
    const cuda::Device device(architecture, nullptr);
    const auto program = backend::Builder(device, 1).build(loop_graph(std::nullopt));
    ASSERT_EQ(program->plan().steps.size(), 1u);
    EXPECT_EQ(program->plan().steps[0].note, "a conditional node");
    EXPECT_FALSE(program->needs_host());
    if (cuda::compiler_problem().empty()) {
      EXPECT_GT(device.functions().compile_waiting(), 2u);
    }
  }
}

using ControlOnDevice = test::OnDevice;

// The first run is launched, the second recorded; later ones repeat it with other numbers.
TEST_F(ControlOnDevice, recorded_loops_follow_their_data) {
  for (const std::optional<int64_t> most : {std::optional<int64_t>(), std::optional<int64_t>(9)}) {
    const ir::Graph g = loop_graph(most);
    CompiledGraph f = compile(g, {}, {.device = "cuda"});
    for (const float limit : {3.0f, 7.0f, 0.0f, 40.0f, 1.0f, 9.0f}) {
      const NamedLiterals leaves = {{"v", ir::sample_literal("f32[4]", uint64_t(limit) + 1)},
                                    {"n", Literal::scalar(DType::f32, 0)},
                                    {"limit", Literal::scalar(DType::f32, limit)}};
      SCOPED_TRACE(cat("limit ", limit));
      const NamedLiterals want = ir::interpret(g, leaves);
      for (const auto& [name, value] : f.run(leaves)) test::expect_close(value, want.at(name), 1e-5);
    }
  }
}

// Steps that are left out leave no trace in what was recorded with others.
TEST_F(ControlOnDevice, recorded_loops_leave_out_other_steps_each_time) {
  for (const auto gate : {ops::ScanGate::carry, ops::ScanGate::sequence}) {
    for (const bool reverse : {false, true}) {
      const ir::Graph g = gated_graph(gate, reverse);
      CompiledGraph f = compile(g, {}, {.device = "cuda"});
      for (uint64_t seed = 1; seed < 7; ++seed) {
        const NamedLiterals leaves = {
            {"go", ir::sample_literal(gate == ops::ScanGate::carry ? "bool[]" : "bool[7]", seed)},
            {"v", ir::sample_literal("f32[5]", seed)},
            {"x", ir::sample_literal("f32[7,5]", seed + 9)}};
        SCOPED_TRACE(cat("seed ", seed));
        const NamedLiterals want = ir::interpret(g, leaves);
        for (const auto& [name, value] : f.run(leaves)) test::expect_close(value, want.at(name), 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace rlx
