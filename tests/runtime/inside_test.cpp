// Loops and branches as those who look at a run see them: the steps of their bodies, with where they are.
#include <gtest/gtest.h>

#include <set>

#include "rlx/base/json.h"
#include "rlx/ir/sample.h"
#include "rlx/runtime/finite_check.h"
#include "rlx/runtime/profile.h"
#include "rlx/runtime/report.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using test::error_of;
using test::graph;

std::string refusal(const ir::Graph& g, const NamedLiterals& inputs, const CompileOptions& options) {
  CompileOptions plain = options;
  plain.fuse = false;
  CompiledGraph f = compile(g, {}, plain);
  FiniteCheck check;
  f.observe(&check);
  return error_of([&] { f.run(inputs); });
}

// 0.4 less in each step, so that the argument of the logarithm is negative from the eighth on.
constexpr const char* kFalling = R"(graph @g(c: f32[8,4], d: f32[4]) {
  r = scan(c, d, body=graph @step(c: f32[8,4], d: f32[4]) {
    next = sub(c, d)
    bad = log(next)
    fine = abs(next)
    zero = sub(fine, fine)
    some = mul(bad, zero)
    kept = add(next, some)
    return kept
  }, length=%, carries=1, consts=1)
  return r
})";

ir::Graph falling(int64_t length) {
  std::string text = kFalling;
  text.replace(text.find('%'), 1, cat(length));
  return graph(text);
}

NamedLiterals of_three() {
  return {{"c", Literal::full(Shape(DType::f32, {8, 4}), 3)},
          {"d", Literal::full(Shape(DType::f32, {4}), 0.4)}};
}

TEST(FiniteCheck, names_the_first_operator_in_a_loop_and_its_step) {
  const std::string error = refusal(falling(20), of_three(), {.threads = 1});
  EXPECT_NE(error.find("check-nan: scan r, step 7: bad log ("), std::string::npos) << error;
}

TEST(FiniteCheck, looks_into_loops_whatever_runs_them) {
  const std::string by_reference = refusal(falling(20), of_three(), {.device = "ref"});
  EXPECT_NE(by_reference.find("scan r, step 7: bad log ("), std::string::npos) << by_reference;
}

// Long enough to be cut by rows; row 7, which another thread has than row 0, is the first to fall below zero.
TEST(FiniteCheck, finds_the_first_step_where_threads_share_the_rows) {
  NamedLiterals inputs = of_three();
  std::vector<float> c(32, 1e6f);
  c[0] = 3, c[28] = 2.1f;
  inputs["c"] = Literal::of<float>({8, 4}, c);
  CompiledGraph f = compile(falling(4000), {}, {.threads = 2, .fuse = false});
  ASSERT_NE(f.plan().steps[0].note.find("2 threads"), std::string::npos) << f.plan().steps[0].note;
  const std::string error = refusal(falling(4000), inputs, {.threads = 2});
  EXPECT_NE(error.find("scan r, step 5, rows from 4 on: bad log ("), std::string::npos) << error;
}

TEST(FiniteCheck, looks_into_a_loop_over_single_numbers) {
  const ir::Graph g = graph(R"(graph @g(c: f32[]) {
    r = scan(c, body=graph @step(c: f32[]) {
      one = full(value=1, shape=f32[])
      next = sub(c, one)
      bad = log(next)
      zero = sub(next, next)
      some = mul(bad, zero)
      kept = add(next, some)
      return kept
    }, length=10, carries=1)
    return r
  })");
  CompiledGraph f = compile(g, {}, {.threads = 1, .fuse = false});
  ASSERT_EQ(f.plan().steps[0].kernel, "scan_numbers");
  const std::string error = refusal(g, {{"c", Literal::of<float>({}, {2.5})}}, {.threads = 1});
  EXPECT_NE(error.find("scan r, step 2: bad log ("), std::string::npos) << error;
}

TEST(FiniteCheck, names_every_level) {
  const ir::Graph g = graph(R"(graph @g(p: bool[], c: f32[4]) {
    r = if(p, c, then_body=graph @yes(c: f32[4]) {
      w = scan(c, body=graph @step(c: f32[4]) {
        n = neg(c)
        s = sqrt(n)
        return s
      }, length=2, carries=1)
      return w
    }, else_body=graph @no(c: f32[4]) { n = neg(c) return n })
    return r
  })");
  const std::string error =
      refusal(g, {{"p", Literal::of<bool>({}, {true})}, {"c", Literal::full(Shape(DType::f32, {4}), -4)}},
              {.threads = 1});
  EXPECT_NE(error.find("if r: scan w, step 1: s sqrt ("), std::string::npos) << error;
}

// A result of the branch takes the place of an operand that the other one still reads.
TEST(FiniteCheck, leaves_operands_of_branches_that_results_replace) {
  const ir::Graph g = graph(R"(graph @g(p: bool[], x: f32[4], y: f32[4]) {
    a = exp(x)
    r:2 = if(p, a, y, then_body=graph @t(a: f32[4], y: f32[4]) {
      u = add(y, y)
      return u, a
    }, else_body=graph @e(a: f32[4], y: f32[4]) {
      return a, y
    })
    z = mul(r, r)
    return z, kept=r#1
  })");
  const NamedLiterals inputs = {{"p", Literal::full(Shape::scalar(DType::bool_), 1)},
                                {"x", ir::sample_literal("f32[4]", 1)},
                                {"y", ir::sample_literal("f32[4]", 2)}};
  for (const char* device : {"ref", "cpu"}) {
    CompiledGraph f = compile(g, {}, {.device = device});
    const NamedLiterals want = f.run(inputs);
    FiniteCheck check;
    f.observe(&check);
    EXPECT_EQ(f.run(inputs), want) << device;
  }
}

// Looking changes no bits: one part after the other, or all at once.
TEST(FiniteCheck, leaves_the_bits_as_they_are) {
  const ir::Graph g = graph(R"(graph @g(c: f32[9,16], w: f32[16,16]) {
    r = scan(c, w, body=graph @step(c: f32[9,16], w: f32[16,16]) {
      h = matmul(c, w)
      n = tanh(h)
      return n
    }, length=64, carries=1, consts=1)
    return r
  })");
  CompiledGraph f = compile(g, {}, {.threads = 2});
  ASSERT_NE(f.plan().steps[0].note.find("2 threads"), std::string::npos) << f.plan().steps[0].note;
  const NamedLiterals inputs = {{"c", ir::sample_literal("f32[9,16]", 1)},
                                {"w", ir::sample_literal("f32[16,16]", 2)}};
  const NamedLiterals plain = f.run(inputs);
  FiniteCheck check;
  f.observe(&check);
  EXPECT_EQ(f.run(inputs), plain);
}

// ---- profile ----

struct Slice {
  std::string name;
  int64_t track;
  double begin, end;
};

std::vector<Slice> slices(const Json& trace) {
  std::vector<Slice> out;
  for (const JsonView e : trace.at("traceEvents").items()) {
    if (e.at("ph").string() != "X") continue;
    const double begin = e.at("ts").real();
    out.push_back(
        {std::string(e.at("name").string()), e.at("tid").integer(), begin, begin + e.at("dur").real()});
  }
  return out;
}

std::vector<Slice> named(const std::vector<Slice>& all, std::string_view name, int64_t track) {
  std::vector<Slice> out;
  std::copy_if(all.begin(), all.end(), std::back_inserter(out),
               [&](const Slice& s) { return s.name == name && s.track == track; });
  return out;
}

bool lies_in(const Slice& inner, const Slice& outer) {
  constexpr double kRounding = 1e-6;  // of microseconds
  return outer.begin <= inner.begin + kRounding && inner.end <= outer.end + kRounding;
}

constexpr const char* kLoop = R"(graph @g(c: f32[4], xs: f32[%,4]) {
  r = scan(c, xs, body=graph @step(c: f32[4], x: f32[4]) {
    s = add(c, x)
    n = tanh(s)
    return n
  }, length=%, carries=1)
  return r
})";

CompiledGraph loop(int64_t length) {
  std::string text = kLoop;
  for (size_t at; (at = text.find('%')) != std::string::npos;) text.replace(at, 1, cat(length));
  return compile(graph(text), {}, {.threads = 1, .fuse = false});
}

NamedLiterals loop_inputs(int64_t length) {
  return {{"c", ir::sample_literal("f32[4]", 1)}, {"xs", ir::sample_literal(cat("f32[", length, ",4]"), 2)}};
}

TEST(Profile, nests_the_steps_of_a_loop_in_its_slice) {
  CompiledGraph f = loop(3);
  Profile profile;
  f.observe(&profile);
  f.run(loop_inputs(3));
  const auto all = slices(Json::parse(profile.trace_json(), "trace"));
  const auto loops = named(all, "r scan", 1), steps = named(all, "n tanh", 1),
             third = named(all, "step 2", 1);
  ASSERT_EQ(loops.size(), 1u);
  ASSERT_EQ(steps.size(), 3u);
  ASSERT_EQ(third.size(), 1u);
  for (const Slice& s : steps) EXPECT_TRUE(lies_in(s, loops[0]));
  EXPECT_TRUE(lies_in(steps[2], third[0]));
  EXPECT_TRUE(lies_in(third[0], loops[0]));
}

TEST(Profile, shows_the_first_steps_of_a_long_loop_and_says_what_it_leaves_out) {
  constexpr int64_t kLength = 100000;
  CompiledGraph f = loop(kLength);
  Profile profile;
  f.observe(&profile);
  const NamedLiterals inputs = loop_inputs(kLength);
  for (int i = 0; i < 2; ++i) f.run(inputs);
  const std::string text = profile.trace_json();
  EXPECT_LT(text.size(), size_t(4) << 20);
  const Json trace = Json::parse(text, "trace");
  const auto all = slices(trace);
  const auto shown = int64_t(named(all, "n tanh", 1).size());
  EXPECT_GT(shown, 100);
  EXPECT_LT(shown, 10000);
  EXPECT_EQ(trace.at("otherData").at("runs of bodies left out").integer(), 2 * kLength - shown);
  EXPECT_NE(text.find(cat(kLength - shown, " of ", kLength, " runs of its bodies")), std::string::npos);
}

TEST(Profile, has_a_track_for_each_thread_with_its_work_on_a_step) {
  const ir::Graph g = graph("graph @g(x: f32[256,256], w: f32[256,256]) { y = matmul(x, w) return y }");
  CompiledGraph f = compile(g, {}, {.threads = 2});
  ASSERT_EQ(f.report().threads, 2);
  const NamedLiterals inputs = {{"x", ir::sample_literal("f32[256,256]", 1)},
                                {"w", ir::sample_literal("f32[256,256]", 2)}};
  f.run(inputs);
  Profile profile;
  f.observe(&profile);
  // Where others work too, the second thread may come when all is done: as often as it takes.
  constexpr int kRounds = 100;
  size_t runs = 0;
  std::set<int64_t> tracks;
  std::vector<Slice> all;
  for (int round = 0; round < kRounds && tracks.size() < 3; ++round) {
    for (int i = 0; i < 20; ++i, ++runs) f.run(inputs);
    const Json trace = Json::parse(profile.trace_json(), "trace");
    for (const JsonView e : trace.at("traceEvents").items()) {
      if (e.at("ph").string() == "M") tracks.insert(e.at("tid").integer());
    }
    all = slices(trace);
  }
  EXPECT_EQ(tracks, (std::set<int64_t>{1, 2, 3}));
  const auto steps = named(all, "y matmul", 1);
  ASSERT_EQ(steps.size(), runs);
  for (const int64_t track : {2, 3}) {
    const auto work = named(all, "y matmul", track);
    EXPECT_FALSE(work.empty()) << track;
    for (const Slice& w : work)
      EXPECT_TRUE(std::any_of(steps.begin(), steps.end(), [&](const Slice& s) { return lies_in(w, s); }));
  }
}

TEST(Report, gives_the_times_of_steps_in_loops) {
  CompiledGraph f = loop(5);
  const NamedLiterals inputs = loop_inputs(5);
  Profile profile(MachineLimits{1e9, 1e9});
  f.observe(&profile);
  for (int i = 0; i < 3; ++i) f.run(inputs);
  f.observe(nullptr);
  Report r = f.report();
  r.add_times(profile);
  ASSERT_EQ(r.seconds.size(), 1u);
  ASSERT_EQ(r.inside.size(), 2u);
  EXPECT_EQ(r.inside.at({0, 0, 1}).seen, 5u);  // of the first run alone
  EXPECT_GT(r.inside.at({0, 0, 1}).seconds, 0);
  EXPECT_NE(r.text().find("0.0.1"), std::string::npos) << r.text();
  EXPECT_NE(r.text().find("median of 5"), std::string::npos) << r.text();
  const Json document = Json::parse(r.json(), "report");
  const JsonView body = document.at("plan").at("steps").at(size_t(0)).at("bodies").at(size_t(0));
  EXPECT_EQ(body.at("steps").at(size_t(1)).at("seen").integer(), 5);
  EXPECT_EQ(body.at("steps").at(size_t(1)).at("name").string(), "n");
}

// One source of remarks: what `rlx opt --explain` says of a product that was joined with others is in the report too.
TEST(Report, says_which_products_were_joined) {
  const ir::Graph g = graph(R"(graph @g(x: f32[4,16], param a: f32[16,8], param b: f32[16,8]) {
    p = matmul(x, a)
    q = matmul(x, b)
    return p, q
  })");
  CompiledGraph f =
      compile(g, {{"a", ir::sample_literal("f32[16,8]", 1)}, {"b", ir::sample_literal("f32[16,8]", 2)}});
  const Report r = f.report();
  EXPECT_NE(r.text().find("one of 2 products of x that were joined"), std::string::npos) << r.text();
  EXPECT_NE(r.json().find("one of 2 products of x that were joined"), std::string::npos) << r.json();
}

}  // namespace
}  // namespace rlx
