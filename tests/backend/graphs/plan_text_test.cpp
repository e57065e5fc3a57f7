// Plans print to texts that read back.
#include <gtest/gtest.h>

#include "rlx/backend/builder.h"
#include "rlx/backend/cpu/nodes/device.h"
#include "rlx/backend/reference.h"
#include "rlx/passes/fuse.h"
#include "rlx/passes/legalise.h"
#include "tests/support/graphs.h"
#include "tests/support/random_program.h"

namespace rlx::backend {
namespace {

using test::graph;

Plan plan_of(const ir::Graph& g, const Interface& interface = {}) {
  return Builder(cpu::device(), 2)
      .build(passes::fuse(passes::legalise(g, cpu::device()).graph, cpu::device()).graph, interface)
      ->plan();
}

void expect_read_back(const Plan& plan) {
  const std::string text = plan.text();
  const Plan back = Plan::parse(text);
  EXPECT_EQ(back.text(), text);
  EXPECT_EQ(join(verify_plan(back), "\n"), "") << text;
}

TEST(PlanText, says_where_every_value_lies) {
  const Plan p = Builder(cpu::device(), 1)
                     .build(graph(R"(graph @g(x: f32[4,8], s: f32[4,8], param w: f32[8,8]) {
    h = matmul(x, w)
    t = transpose(h, perm=[1,0])
    u = exp(t)
    n = add(s, h)
    return n, u
  })"),
                            {.fixed = {false, false, true}, .donated = {{1, 0}}})
                     ->plan();
  const std::string text = p.text();
  for (
      const char* part :
      {"plan of g: 3 steps, ", "  leaf s: 128 bytes, number 1, ",
       "  output n: 128 bytes in the place of s, number 0, ", "h f32[8,4] [1, 8]", " w f32[8,8] packed",
       "\n    n add, node 6, 32 operations, 384 bytes, scratch \"workspace of step 2\", result 0 over operand 0"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  expect_read_back(p);
}

TEST(PlanText, of_bodies_odd_names_and_values_in_the_place_of_others_reads_back) {
  expect_read_back(plan_of(graph(R"(graph @"a loop"("x y": f32[8,16], xs: f32[5,8,16], param w: f32[16,16]) {
    r:2 = scan("x y", w, xs, body=graph @step(c: f32[8,16], w: f32[16,16], x: f32[8,16]) {
      h = matmul(c, w)
      n = tanh(add(h, x))
      return n, n
    }, length=5, carries=1, consts=1)
    return "x y"=r, "quoted \"#1\""=r#1
  })"),
                           {.fixed = {false, false, true}}));
  // A chain in one buffer, a concatenation made in its parts, a value given out twice, nothing at all.
  expect_read_back(Builder(cpu::device(), 1)
                       .build(graph(R"(graph @chain(x: f32[16,16], e: f32[0,3]) {
    a = exp(x)
    b = neg(a)
    c = sin(b)
    d = concat(c, x, axis=0)
    f = reduce(e, axes=[0])
    return d, again=d, x, f, c
  })"))
                       ->plan());
  expect_read_back(plan_of(graph("graph @none(x: f32[2]) { return x }")));
}

TEST(PlanText, says_what_the_reference_rule_runs) {
  const Plan p = Builder(ref(), 1).build(graph("graph @g(x: f32[4,8]) { y = exp(x) return y }"))->plan();
  EXPECT_NE(p.text().find(", by the reference rule\n"), std::string::npos) << p.text();
  EXPECT_TRUE(runs_by_rule(Plan::parse(p.text()).steps.at(0)));
  expect_read_back(p);
}

TEST(PlanText, of_random_programs_reads_back) {
  for (uint64_t seed = 0; seed < 200 && !testing::Test::HasFailure(); ++seed) {
    const test::RandomProgram p(seed, 14);
    SCOPED_TRACE(cat(p.graph()));
    expect_read_back(plan_of(p.graph()));
  }
}

// A plan that is edited is read as it is written, and verify_plan says what is wrong with it.
TEST(PlanText, of_a_plan_that_cannot_run_is_found_out) {
  std::string text =
      plan_of(
          graph(
              "graph @p(x: f32[8,8], w: f32[8,8]) { m = matmul(x, w) n = matmul(w, x) y = matmul(m, n) return y }"))
          .text();
  const size_t at = text.find("activation n: 256 bytes at ");
  ASSERT_NE(at, std::string::npos) << text;
  const size_t offset = text.find(" at ", at) + 4, end = text.find(',', offset);
  const size_t other = text.find("activation m: 256 bytes at ") + 27;
  text.replace(offset, end - offset, text.substr(other, text.find(',', other) - other));
  EXPECT_NE(join(verify_plan(Plan::parse(text)), "\n").find("n and m overlap"), std::string::npos) << text;
}

TEST(PlanText, that_is_none_is_told_with_its_line) {
  const std::string good = plan_of(graph("graph @g(x: f32[4,8]) { y = softmax(x, axis=1) return y }")).text();
  const auto error = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from << "\n" << text;
    if (at != std::string::npos) text.replace(at, from.size(), to);
    return test::error_of([&] { Plan::parse(text); });
  };
  EXPECT_EQ(
      error("plan of", "a plan of"),
      "plan: line 1: 'plan of' behind 0 spaces expected, found 'a plan of g: 1 steps, arena 0 bytes, lar'");
  EXPECT_EQ(error("leaf x: 128", "leaf x: many"),
            "plan: line 2: a number expected, found 'many bytes, number 0, steps 0 to 0'");
  EXPECT_EQ(error("leaf x", "heap x"),
            "plan: line 2: a kind of buffer expected, found 'heap x: 128 bytes, number 0, steps 0 to '");
  EXPECT_EQ(error("(x f32", "(z f32"), "plan: line 4: a buffer of the plan expected, found 'z f32[4,8])'");
  EXPECT_EQ(error("x f32[4,8])", "x f32[4,8] [1])"),
            "plan: line 4: 2 strides of f32[4,8] expected, found ')'");
  EXPECT_EQ(error(" 1 steps", " 2 steps").substr(0, 53),
            "plan: line 6: 2 steps, of which 1 are there, expected");
  for (size_t cut = 0; cut + 1 < good.size(); ++cut)
    EXPECT_NE(test::error_of([&] { Plan::parse(std::string_view(good).substr(0, cut)); }), "no error") << cut;
}

}  // namespace
}  // namespace rlx::backend
