// Plans that are sound pass; one that is spoiled in any one way does not, and the message says how.
#include <gtest/gtest.h>

#include "rlx/backend/builder.h"
#include "rlx/backend/cpu/nodes/device.h"
#include "rlx/backend/plan.h"
#include "rlx/backend/reference.h"
#include "tests/support/graphs.h"

namespace rlx::backend {
namespace {

using test::graph;

struct Made {
  std::shared_ptr<const Executable> program;
  Plan plan;
};
Made made(std::string_view text, const Interface& interface = {}) {
  Made out;
  out.program = Builder(cpu::device(), 1).build(graph(text), interface);
  out.plan = out.program->plan();
  EXPECT_EQ(join(verify_plan(out.plan)), "") << out.plan.text();
  return out;
}

int buffer_named(const Plan& p, std::string_view name) {
  for (size_t i = 0; i < p.buffers.size(); ++i) {
    if (p.buffers[i].name == name) return int(i);
  }
  ADD_FAILURE() << "no buffer " << name << "\n" << p.text();
  return 0;
}
Plan::Buffer& buffer(Plan& p, std::string_view name) { return p.buffers[size_t(buffer_named(p, name))]; }

void expect_wrong(const Plan& p, std::string_view part) {
  EXPECT_NE(join(verify_plan(p), "\n").find(part), std::string::npos) << "not told: " << part << "\n"
                                                                      << join(verify_plan(p), "\n") << "\n"
                                                                      << p.text();
}

// m and n are made, both live until s; t takes the place of s; then y is made of t and m.
constexpr auto kProducts = R"(graph @p(x: f32[8,8], w: f32[8,8]) {
  m = matmul(x, w)
  n = matmul(w, x)
  s = matmul(m, n)
  t = exp(s)
  y = matmul(t, m)
  return y
})";

TEST(VerifyPlan, finds_buffers_that_overlap_or_lie_wrong) {
  const Plan good = made(kProducts).plan;
  Plan p = good;
  buffer(p, "n").offset = buffer(p, "m").offset;
  expect_wrong(p, "n and m overlap and are in use at the same time");
  p = good;
  buffer(p, "m").offset += 4;
  expect_wrong(p, "is not a multiple of 64");
  p = good;
  buffer(p, "m").offset = p.arena_bytes;
  expect_wrong(p, cat("m: ends at ", p.arena_bytes + 256, ", the arena at ", p.arena_bytes));
  p = good;
  p.live_bytes -= 64;
  expect_wrong(p, "the largest live set is said to be");
  p = good;
  p.arena_bytes = 64;
  expect_wrong(p, ", the arena at 64");
}

TEST(VerifyPlan, finds_places_outside_of_their_buffer_and_numbers_of_none) {
  const Plan good = made(kProducts).plan;
  Plan p = good;
  p.steps[0].in[0].offset = 4;
  expect_wrong(p, "step 0: operand x touches bytes 4 to 260 of 256");
  p = good;
  p.steps[0].out[0].layout.strides = {-8, 1};
  expect_wrong(p, "step 0: result m touches bytes -224 to 32 of 256");
  p = good;
  p.steps[1].in[0].buffer = 99;
  expect_wrong(p, "step 1: there is no buffer 99");
  p = good;
  p.steps[1].out[0].buffer = -1;
  expect_wrong(p, "step 1: there is no buffer -1");
  p = good;
  p.steps[1].workspace = 1000;
  expect_wrong(p, "step 1: there is no buffer 1000");
}

TEST(VerifyPlan, finds_what_is_read_before_it_is_written_or_after_it_is_gone) {
  const Plan good = made(kProducts).plan;
  Plan p = good;
  std::swap(p.steps[0], p.steps[2]);
  expect_wrong(p, "step 0: operand m was never written");
  p = good;
  buffer(p, "m").last = 2;
  expect_wrong(p, "step 4: operand m is in use from step 0 to 2");
  p = good;
  p.steps[4].in[1] = p.steps[3].in[0];  // s, where t is by now
  expect_wrong(p, "step 4: operand s was overwritten by t");
  p = good;
  p.steps.erase(p.steps.begin() + 4);
  expect_wrong(p, "output y is never written");
}

// Nothing but the order of steps and places changes: lifetimes are made to fit.
TEST(VerifyPlan, finds_a_value_that_was_overwritten_though_no_lifetimes_overlap) {
  const Plan good = made(R"(graph @p(x: f32[8,8], w: f32[8,8]) {
    m = matmul(x, w)
    t = exp(m)
    n = matmul(t, w)
    y = matmul(n, x)
    return y
  })")
                        .plan;
  Plan p = good;
  p.steps[3].in[1] = p.steps[1].in[0];  // m instead of x
  for (Plan::Buffer& b : p.buffers) {
    if (&b == &p.buffers[size_t(p.steps[3].in[1].buffer)]) b.last = 3;
  }
  expect_wrong(p, "step 3: operand m was overwritten by t");
}

TEST(VerifyPlan, finds_results_that_lie_on_operands_or_on_each_other) {
  const Plan good = made(kProducts).plan;
  Plan p = good;
  p.steps[3].in_place.clear();
  expect_wrong(p, "step 3: result t lies on operand s, which the step reads while it writes");
  p = good;
  p.steps[3].in[0].shape = parse_shape("f32[4,8]");
  expect_wrong(p, "step 3: result t lies on operand s, not as it does");
  Plan sort = made(R"(graph @s(x: f32[16]) {
    a:2 = sort(x)
    return a, a#1
  })")
                  .plan;
  sort.steps[0].out[1].buffer = sort.steps[0].out[0].buffer;
  sort.steps[0].out[1].value = 7;
  expect_wrong(sort, "step 0: results output0 and value 7 overlap");
}

TEST(VerifyPlan, finds_leaves_and_constants_that_are_written) {
  const Plan good = made(kProducts).plan;
  for (const char* name : {"x", "w"}) {
    Plan p = good;
    p.steps[4].out[0].buffer = p.steps[4].out[0].value = buffer_named(p, name);
    expect_wrong(p, cat("step 4: result ", name, " is not to be written"));
  }
}

TEST(VerifyPlan, finds_a_workspace_outside_of_its_step) {
  Plan p = made(R"(graph @p(x: f32[64,64], w: f32[64,64]) {
    m = matmul(x, w)
    y = matmul(m, w)
    return y
  })")
               .plan;
  ASSERT_GE(p.steps[1].workspace, 0) << p.text();
  p.steps[0].workspace = p.steps[1].workspace;
  expect_wrong(p, "workspace of step 1 is in use from step 1 to 1");
}

constexpr auto kCounter = R"(graph @state(s: f32[16], x: f32[16]) {
  a = mul(x, s)
  t = add(s, x)
  return y=a, next=t
})";

TEST(VerifyPlan, follows_a_state_into_the_output_that_replaces_it) {
  const Plan good = made(kCounter, {.fixed = {}, .donated = {{.leaf = 0, .output = 1}}}).plan;
  EXPECT_EQ(buffer_named(good, "s"), good.buffers[size_t(buffer_named(good, "next"))].state);
  EXPECT_NE(good.text().find("next: 64 bytes in the place of s"), std::string::npos) << good.text();
  Plan p = good;
  std::swap(p.steps[0], p.steps[1]);
  expect_wrong(p, "step 1: operand s was overwritten by next");
  p = good;
  p.steps[1].in_place.clear();
  expect_wrong(p, "step 1: result next lies on operand s, which the step reads while it writes");
  p = good;
  buffer(p, "next").state = buffer_named(p, "y");
  expect_wrong(p, "next: lies in the memory of buffer ");
  p = good;
  buffer(p, "s").bytes = 32;
  expect_wrong(p, "next: 64 bytes in the memory of s, which has 32");
}

TEST(VerifyPlan, looks_into_bodies) {
  const Plan good = made(R"(graph @loop(c: f32[8,8], w: f32[8,8]) {
    y = scan(c, w, length=3, carries=1, consts=1, body=graph @step(c: f32[8,8], w: f32[8,8]) {
      a = matmul(c, w)
      b = matmul(a, a)
      return b
    })
    return y
  })")
                        .plan;
  Plan p = good;
  ASSERT_EQ(p.steps.at(0).bodies.size(), 1u);
  std::swap(p.steps[0].bodies[0].steps[0], p.steps[0].bodies[0].steps[1]);
  expect_wrong(p, "step 0: step 0: operand a was never written");
}

// A part of a concatenation is written where the whole lies.
TEST(VerifyPlan, knows_values_that_are_written_in_parts) {
  const Plan good = made(R"(graph @join(x: f32[16,16], w: f32[16,16]) {
    a = matmul(x, w)
    b = matmul(w, x)
    c = concat(a, b, axis=0)
    y = matmul(c, w)
    return y
  })")
                        .plan;
  Plan p = good;
  ASSERT_EQ(p.steps.size(), 3u) << p.text();
  std::swap(p.steps[1], p.steps[2]);
  expect_wrong(p, "step 1: operand c was never written");
  p = good;
  p.steps[1].out[0].offset = 0;
  expect_wrong(p, "step 2: operand c was never written");
}

}  // namespace
}  // namespace rlx::backend
