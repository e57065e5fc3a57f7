#include "rlx/runtime/report.h"

#include <gtest/gtest.h>

#include "rlx/base/json.h"
#include "rlx/ir/sample.h"
#include "rlx/runtime/finite_check.h"
#include "rlx/runtime/profile.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using test::error_of;
using test::graph;

ir::Graph layer() {
  return graph(R"(graph @layer(x: f32[n,16], param w: f32[16,8], param b: f32[8]) {
    h = matmul(x, w)
    a = add(h, b)
    y = gelu(a)
    z = softmax(y, axis=1)
    return z
  })");
}
NamedLiterals weights() {
  return {{"w", ir::sample_literal("f32[16,8]", 1)}, {"b", ir::sample_literal("f32[8]", 2)}};
}

TEST(Report, names_every_step_with_its_kernel_and_what_declined) {
  CompiledGraph f = compile(layer(), weights(), {.threads = 1});
  const Report r = f.report({{"x", parse_shape("f32[4,16]")}});
  EXPECT_EQ(r.graph, "layer");
  EXPECT_EQ(r.names.size(), r.plan.steps.size());
  EXPECT_TRUE(r.reference_steps().empty());
  const std::string text = r.text();
  for (const auto& step : r.plan.steps) EXPECT_NE(text.find(step.kernel), std::string::npos) << text;
  EXPECT_NE(text.find("joined"), std::string::npos) << text;
  EXPECT_NE(text.find("largest live set"), std::string::npos) << text;
}

TEST(Report, reads_back_as_json_with_the_same_facts) {
  CompiledGraph f = compile(layer(), weights(), {.threads = 1});
  Report r = f.report({{"x", parse_shape("f32[4,16]")}});
  const Json document = Json::parse(r.json(), "report");
  EXPECT_EQ(document.at("format").string(), "rlx.report");
  EXPECT_EQ(document.at("plan").at("steps").size(), r.plan.steps.size());
  EXPECT_EQ(document.at("memory").at("total").integer(), r.memory.total());
  EXPECT_EQ(document.at("plan").at("steps").at(size_t(0)).at("kernel").string(), r.plan.steps[0].kernel);
}

TEST(Report, names_the_steps_of_the_reference_rule) {
  CompiledGraph f = compile(layer(), weights(), {.device = "ref"});
  const Report r = f.report({{"x", parse_shape("f32[4,16]")}});
  EXPECT_EQ(r.reference_steps().size(), r.plan.steps.size());
  EXPECT_NE(r.text().find("run by the reference rule"), std::string::npos);
}

TEST(Report, names_steps_of_the_reference_rule_in_loops_too) {
  const ir::Graph g = graph(R"(graph @g(c: c64[3], xs: c64[4,3]) {
    r = scan(c, xs, body=graph @step(c: c64[3], x: c64[3]) {
      s = add(c, x)
      p = cumprod(s, axis=0)
      return p
    }, length=4, carries=1)
    return r
  })");
  const Report r = compile(g).report();
  ASSERT_EQ(r.reference_steps().size(), 1u) << r.text();
  EXPECT_EQ(r.reference_steps()[0].size(), 3u);
  EXPECT_NE(r.text().find("run by the reference rule, slowly: r scan: p cumprod\n"), std::string::npos)
      << r.text();
}

TEST(MemoryTimeline, is_the_sum_of_what_is_in_use_and_never_above_the_arena) {
  CompiledGraph f = compile(layer(), weights(), {.threads = 1, .fuse = false});
  const Report r = f.report({{"x", parse_shape("f32[64,16]")}});
  const auto live = memory_timeline(r.plan);
  ASSERT_EQ(live.size(), r.plan.steps.size());
  for (size_t s = 0; s < live.size(); ++s) {
    int64_t expected = 0;
    for (const auto& b : r.plan.buffers) {
      const bool arena =
          b.kind == backend::BufferKind::activation || b.kind == backend::BufferKind::workspace;
      if (arena && b.first <= int(s) && int(s) <= b.last) expected += b.bytes;
    }
    EXPECT_EQ(live[s], expected);
    EXPECT_LE(live[s], r.plan.arena_bytes);
  }
}

// The original counted weights twice.
TEST(EstimateMemory, counts_each_weight_once_and_agrees_with_the_report) {
  const MemoryUse use = estimate_memory(layer(), {{"x", parse_shape("f32[4,16]")}}, {.threads = 1});
  EXPECT_EQ(use.inputs, 4 * 16 * 4);
  EXPECT_EQ(use.outputs, 4 * 8 * 4);
  EXPECT_EQ(use.states, 0);
  CompiledGraph f = compile(layer(), weights(), {.threads = 1});
  const MemoryUse real = f.report({{"x", parse_shape("f32[4,16]")}}).memory;
  EXPECT_EQ(use.weights, real.weights);
  EXPECT_EQ(use.packed, real.packed);
  EXPECT_EQ(use.arena, real.arena);
  // The product's weight is read packed, or as it is: not both.
  EXPECT_EQ(use.weights > 8 * 4, use.packed == 0);
}

TEST(EstimateMemory, refuses_types_that_inputs_cannot_have) {
  const auto of = [](const char* graph_text, const char* x) {
    return test::error_of([&] { estimate_memory(graph(graph_text), {{"x", parse_shape(x)}}); });
  };
  constexpr const char* kFixed = "graph @g(x: f32[2], w: f32[2]) { y = add(x, w) return y }";
  EXPECT_EQ(of(kFixed, "f32[9]"), "estimate_memory: 'x' is f32[2], told as f32[9]; graph 'g' takes x, w");
  EXPECT_EQ(of(kFixed, "f32[2]"), "no error");
}

// Of all sizes that were ever run a report holds what was tried for those that it is about.
TEST(Report, has_the_remarks_of_its_own_sizes_however_many_were_run) {
  CompiledGraph f = compile(layer(), weights(), {.threads = 1, .plans_kept = 2});
  const size_t first = f.report({{"x", parse_shape("f32[1,16]")}}).remarks.size();
  EXPECT_GT(first, 0u);
  for (int64_t rows = 2; rows < 9; ++rows) f.run({{"x", ir::sample_literal(cat("f32[", rows, ",16]"), 3)}});
  EXPECT_EQ(f.report().remarks.size(), first);
}

TEST(EstimateMemory, and_reports_refuse_names_that_no_input_has) {
  const std::map<std::string, Shape> two = {{"x", parse_shape("f32[4,16]")}, {"xx", parse_shape("f32[4]")}};
  const std::string why = "'xx' is not an input; did you mean 'x'; graph 'layer' takes x";
  EXPECT_EQ(test::error_of([&] { estimate_memory(layer(), two); }), "estimate_memory: " + why);
  CompiledGraph f = compile(layer(), weights());
  EXPECT_EQ(test::error_of([&] { f.report(two); }), "plan: " + why);
}

TEST(Profile, has_a_span_for_every_step_of_every_run) {
  CompiledGraph f = compile(layer(), weights(), {.threads = 1});
  const Literal x = ir::sample_literal("f32[4,16]", 3);
  Profile profile(MachineLimits{1e9, 1e9});
  f.observe(&profile);
  for (int i = 0; i < 3; ++i) f.run({{"x", view(x)}});
  f.observe(nullptr);
  Report r = f.report();
  EXPECT_EQ(profile.size(), 3 * r.plan.steps.size());
  r.add_times(profile);
  ASSERT_EQ(r.seconds.size(), r.plan.steps.size());
  for (const double s : r.seconds) EXPECT_GT(s, 0);
  for (const double share : r.roofline) EXPECT_GT(share, 0);
  const Json trace = Json::parse(profile.trace_json(), "trace");
  EXPECT_EQ(trace.at("traceEvents").size(), 1 + profile.size());
  const JsonView event = trace.at("traceEvents").at(size_t(1));
  EXPECT_EQ(event.at("ph").string(), "X");
  EXPECT_GT(event.at("dur").real(), 0);
  EXPECT_EQ(event.at("args").at("kernel").string(), r.plan.steps[0].kernel);
  EXPECT_NE(error_of([&] { profile.medians(99); }).find("the plan has 99"), std::string::npos);
}

TEST(RooflineShare, is_the_time_at_the_limits_over_the_time_taken) {
  const MachineLimits limits{100, 10};
  EXPECT_EQ(roofline_share(limits, {.operations = 100, .bytes = 1}, 2), 0.5);   // bound by operations: 1 s
  EXPECT_EQ(roofline_share(limits, {.operations = 100, .bytes = 40}, 8), 0.5);  // bound by bytes: 4 s
}

TEST(FiniteCheck, names_the_operator_that_makes_nan_and_not_those_behind_it) {
  const ir::Graph g = graph(R"(graph @g(x: f32[4]) {
    a = add(x, x)
    bad = log(a)
    b = exp(bad)
    y = mul(b, x)
    return y
  })");
  CompiledGraph f = compile(g, {}, {.threads = 1, .fuse = false});
  FiniteCheck check;
  f.observe(&check);
  const float good[] = {1, 2, 3, 4}, wrong[] = {1, 2, -3, 4}, nan[] = {1, NAN, 3, 4};
  f.run({{"x", view(good, {4})}});
  const std::string error = error_of([&] { f.run({{"x", view(wrong, {4})}}); });
  EXPECT_NE(error.find("check-nan: log"), std::string::npos) << error;
  EXPECT_NE(error.find("element 2"), std::string::npos) << error;
  f.run({{"x", view(nan, {4})}});  // it came from outside
}

// What is known before the first run is computed outside of it, and what is made of weights once for all runs.
TEST(FiniteCheck, names_operators_that_make_nan_of_weights_and_constants) {
  const ir::Graph of_weights =
      graph("graph @g(x: f32[2], param w: f32[2]) { bad = log(w) y = add(x, bad) return y }");
  const ir::Graph of_constants = graph(R"(graph @g(x: f32[2]) {
    c = constant(value=f32[2]{1.0, -1.0})
    bad = log(c)
    y = add(x, bad)
    return y
  })");
  const NamedLiterals x = {{"x", Literal::of<float>({2}, {1, 2})}};
  const float good[] = {1, 2}, wrong[] = {1, -2};
  for (const bool from_weights : {true, false}) {
    CompiledGraph f = compile(from_weights ? of_weights : of_constants, {}, {.threads = 1, .fuse = false});
    if (from_weights)
      f.set_param("w", Literal::copy_of(parse_shape("f32[2]"), std::as_bytes(std::span(wrong))));
    if (from_weights) f.run(x);  // weights were used before anybody looked
    FiniteCheck check;
    f.observe(&check);
    const std::string error = error_of([&] { f.run(x); });
    EXPECT_NE(error.find("check-nan: log"), std::string::npos) << error;
    EXPECT_NE(error.find("element 1"), std::string::npos) << error;
    if (!from_weights) continue;
    f.set_param("w", Literal::copy_of(parse_shape("f32[2]"), std::as_bytes(std::span(good))));
    f.run(x);
    f.observe(nullptr);
    f.run(x);
  }
}

TEST(FiniteCheck, can_refuse_infinities_too) {
  const ir::Graph g = graph("graph @g(x: f32[2]) { y = exp(x) return y }");
  CompiledGraph f = compile(g, {}, {.threads = 1, .fuse = false});
  const float x[] = {1, 1000};
  FiniteCheck only_nan, finite(FiniteCheck::Wanted::finite);
  f.observe(&only_nan);
  f.run({{"x", view(x, {2})}});
  f.observe(&finite);
  EXPECT_NE(error_of([&] { f.run({{"x", view(x, {2})}}); }).find("infinity at element 1"), std::string::npos);
}

}  // namespace
}  // namespace rlx
