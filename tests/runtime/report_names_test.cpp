// What reports, traces and checks call things, and shares of limits.
#include <gtest/gtest.h>

#include "rlx/base/json.h"
#include "rlx/ir/sample.h"
#include "rlx/runtime/finite_check.h"
#include "rlx/runtime/profile.h"
#include "rlx/runtime/report.h"
#include "rlx/runtime/stages.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using test::graph;

TEST(ReportNames, checks_and_traces_use_the_names_of_nodes) {
  CompiledGraph f = compile(graph(R"(graph @g(x: f32[4]) {
    a = neg(exp(x))
    c = log(a)
    return c
  })"),
                            {}, {.threads = 1, .fuse = false});
  const Literal x = Literal::of<float>({4}, {1, 2, 3, 4});
  FiniteCheck check;
  f.observe(&check);
  try {
    f.run({{"x", view(x)}});
    ADD_FAILURE() << "no NaN was found";
  } catch (const Error& e) {
    EXPECT_EQ(e.node(), "c log");
  }
  Profile profile;
  f.observe(&profile);
  f.run({{"x", view(x)}});
  f.observe(nullptr);
  const Json trace = Json::parse(profile.trace_json(), "trace");
  const JsonView events = trace.at("traceEvents");
  EXPECT_EQ(events.at(events.size() - 1).at("name").string(), "c log");
}

// %6 of a pass is not %6 of the next one: the report says what a reader finds in the graph.
TEST(ReportNames, remarks_name_what_stands_in_the_graph) {
  CompiledGraph f = compile(graph(R"(graph @g(x: f32[4,8], r: f32[4,8], b: f32[8], param n: f32[8]) {
    h = layer_norm(add(add(x, r), b), n)
    return h
  })"),
                            {{"n", Literal::full(parse_shape("f32[8]"), 1)}}, {.threads = 1});
  const std::string text = f.report().text();
  EXPECT_NE(text.find("joined  add(add(x, r), b): 2 operators joined"), std::string::npos) << text;
  EXPECT_EQ(text.find("takes no operators in front"), std::string::npos) << text;  // only when asked for
  EXPECT_EQ(text.find("nothing:"), std::string::npos) << text;
}

TEST(Stages, tell_why_nodes_were_not_joined) {
  const ir::Graph g = graph(
      R"(graph @g(x: f32[8,16], param wq: f32[16,16], param wk: f32[16,16], param wv: f32[16,16], param s: f32[16]) {
    q = matmul(x, wq)
    k = matmul(x, wk)
    v = matmul(x, wv)
    c = relu(v)
    a = add(x, c)
    h = layer_norm(a, s)
    d = exp(x)
    e = softmax(d, axis=1)
    return q, k, h, e
  })");
  const runtime::Stages stages = runtime::compile_in_stages(g, {.threads = 1});
  ASSERT_TRUE(stages.report);
  const auto told = [&](std::string_view node, std::string_view text) {
    for (const passes::Remark& r : stages.report->remarks) {
      if (r.node == node && r.text.find(text) != std::string::npos) return true;
    }
    return false;
  };
  EXPECT_TRUE(told("q", "one of 2 products of x that were joined"));
  EXPECT_TRUE(told("v", "an elementwise operator reads its result"));
  EXPECT_TRUE(told("a", "not joined with h: the sum is joined with 2 other operators"));
  EXPECT_TRUE(told("h", "not joined with a: the sum is joined with 2 other operators"));
  EXPECT_TRUE(told("d", "not joined with e: softmax is a step of its own"));
  EXPECT_TRUE(told("e", "not joined with d: softmax is a step of its own"));
}

// What lies in caches is held against caches, and products of bytes against products of bytes.
TEST(RooflineShare, knows_where_operands_lie_and_how_wide_they_are) {
  const MachineLimits limits{.operations_per_second = 100,
                             .bytes_per_second = 10,
                             .in_cache = {{8, 80}, {16, 40}},
                             .narrow_operations = {{DType::i8, 400}, {DType::f16, 50}}};
  EXPECT_EQ(limits.bytes_per_second_of(4), 80);
  EXPECT_EQ(limits.bytes_per_second_of(20), 40);
  EXPECT_EQ(limits.bytes_per_second_of(64), 10);
  EXPECT_EQ(limits.operations_per_second_of(DType::u8), 400);
  EXPECT_EQ(limits.operations_per_second_of(DType::f16), 100);  // converted, where that is faster
  EXPECT_EQ(roofline_share(limits, {.operations = 0, .bytes = 8}, 0.2), 0.5);
  EXPECT_EQ(roofline_share(limits, {.operations = 400, .bytes = 0}, 2, DType::i8), 0.5);
}

}  // namespace
}  // namespace rlx
