// On a GPU: every operator's every sample and its gradients through the whole pipeline, random programs and their gradients,
// equal to the interpreter; loops, states, replays.
#include <gtest/gtest.h>

#include <thread>

#include "rlx/ops/all.h"
#include "rlx/runtime/page.h"
#include "rlx/runtime/report.h"
#include "rlx/transform/transform.h"
#include "tests/backend/cuda/on_device.h"
#include "tests/support/gradient_case.h"
#include "tests/support/graphs.h"
#include "tests/support/random_program.h"
#include "tests/support/views.h"

namespace rlx {
namespace {

using test::expect_as_interpreted;
using test::named;
using OnDevice = test::OnDevice;

class EveryOperator : public testing::TestWithParam<const ir::OpDef*> {};
INSTANTIATE_TEST_SUITE_P(Cuda, EveryOperator, testing::ValuesIn(test::ops_of(ops::table())), test::OpName());

TEST_P(EveryOperator, runs_on_the_gpu) {
  if (const std::string why = cuda::device_problem(); !why.empty()) GTEST_SKIP() << why;
  const ir::OpDef& op = *GetParam();
  if (op.traits.leaf) return;
  for (size_t i = 0; i < op.samples().size(); ++i) {
    const auto c = test::make_case(op, i);
    SCOPED_TRACE(cat("sample ", i, "\n", c.graph));
    try {
      // An operator that is taken apart rounds narrow numbers behind each part.
      const bool narrow = !c.leaves.empty() && dtype_size(c.leaves[0].dtype()) == 2 && op.is_composite();
      expect_as_interpreted(c.graph, named(c.graph, c.leaves), narrow ? 1e-2 : 0);
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

TEST_P(EveryOperator, has_gradients_that_run_on_the_gpu) {
  if (const std::string why = cuda::device_problem(); !why.empty()) GTEST_SKIP() << why;
  const ir::OpDef& op = *GetParam();
  if (op.traits.leaf || op.traits.block || op.traits.zero_gradient) return;
  for (size_t i = 0; i < op.samples().size(); ++i) {
    const auto c = test::gradient_case(test::make_case(op, i));
    if (!c) continue;
    SCOPED_TRACE(cat("sample ", i, "\n", c->graph));
    const NamedLiterals leaves = named(c->graph, c->leaves);
    double largest = 0;  // a chain of some dozens of roundings, as on the CPU
    for (const auto& [name, value] : leaves) largest = std::max(largest, test::tolerance(value));
    try {
      expect_as_interpreted(c->graph, leaves, 50 * largest);
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

TEST_P(EveryOperator, reads_views_on_the_gpu) {
  if (const std::string why = cuda::device_problem(); !why.empty()) GTEST_SKIP() << why;
  const ir::OpDef& op = *GetParam();
  test::for_each_view(op, [&](const test::SampleCase& c, const Literals&, const std::string& which) {
    SCOPED_TRACE(which);
    // A norm of equal numbers divides the rounding of their mean by almost nothing.
    if (op.name.starts_with("layer_norm") && which.find(" repeated ") != std::string::npos) return;
    try {
      const bool narrow = dtype_size(c.leaves[0].dtype()) == 2 && op.is_composite();
      expect_as_interpreted(c.graph, named(c.graph, c.leaves), narrow ? 1e-2 : 0);
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
  });
}

// A hundred programs each, and the gradients of twenty of them; ten and two under compute-sanitizer.
class RandomProgramsOnDevice : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Cuda, RandomProgramsOnDevice, testing::Range<uint64_t>(0, 20));

TEST_P(RandomProgramsOnDevice, equal_the_interpreter) {
  if (const std::string why = cuda::device_problem(); !why.empty()) GTEST_SKIP() << why;
  for (uint64_t seed = GetParam() * 100; seed < GetParam() * 100 + (test::is_sanitized() ? 10 : 100);
       ++seed) {
    const test::RandomProgram p(seed, 14);
    SCOPED_TRACE(cat(p.graph()));
    expect_as_interpreted(p.graph(), named(p.graph(), p.leaves()), 1e-9);
    if (seed % 5 == 0 && !HasFailure()) {
      const test::RandomProgram q(seed + 10000, 10);
      ir::Graph scalar = q.graph();
      const ir::Expr last{&scalar, scalar.outputs()[0]};
      scalar.set_outputs({ops::reduce_sum(last, {})});
      const ir::Graph grad = transform::value_and_grad(scalar, {"x0", "x1", "x2"});
      SCOPED_TRACE(cat(grad));
      expect_as_interpreted(grad, named(grad, q.leaves()), 1e-8);
    }
    if (HasFailure()) break;
  }
}

Literal ramp(const char* type, uint64_t seed) { return ir::sample_literal(type, seed); }

TEST_F(OnDevice, larger_rows_and_columns_equal_the_interpreter) {
  const char* const texts[] = {
      "graph @f(x: f32[70,1000]) { m = reduce(x, kind=max, axes=[1], keep_dim=true) d = sub(x, m) e = exp(d) "
      "s = reduce(e, kind=sum, axes=[1], keep_dim=true) y = div(e, s) return y }",
      "graph @f(x: bf16[33,384]) { y = softmax(x, axis=1) return y }",
      "graph @f(x: f32[40,5000]) { a = tanh(x) y = reduce(a, kind=sum, axes=[1]) return y }",
      "graph @f(x: f32[300,500]) { a = tanh(x) y = reduce(a, kind=sum, axes=[0]) return y }",
      "graph @f(x: f32[200000]) { a = tanh(x) y = reduce(a, kind=mean, axes=[0]) return y }",
      "graph @f(x: f32[4096,40]) { a = tanh(x) y = reduce(a, kind=max, axes=[0]) z = reduce(a, kind=sum, axes=[0]) return y, z }",
      "graph @f(x: f32[3,20000]) { m = reduce(x, kind=mean, axes=[1], keep_dim=true) d = sub(x, m) q = tanh(d) "
      "v = reduce(q, kind=sum, axes=[1], keep_dim=true) y = mul(q, v) return y }",
      "graph @f(x: f32[17,65]) { t = transpose(x, perm=[1,0]) y = exp(t) return y }",
      "graph @f(x: f32[100,70], w: f32[70,90]) { h = matmul(x, w) y = gelu(h) return y }",
      "graph @f(x: f64[5,40,30], w: f64[5,30,20]) { y = matmul(x, w) return y }",
      "graph @f(x: bf16[64,128], w: bf16[128,64]) { y = matmul(x, w) return y }",
      "graph @f(x: f16[3,2,33,31], w: f16[2,31,7]) { y = matmul(x, w) return y }",
  };
  for (const char* text : texts) {
    const ir::Graph g = test::graph(text);
    Literals leaves;
    for (const ir::NodeId id : g.leaves())
      leaves.push_back(ramp(cat(g.node(id).shapes[0]).c_str(), leaves.size() + 5));
    SCOPED_TRACE(cat(g));
    for (const bool fuse : {false, true}) expect_as_interpreted(g, named(g, leaves), 1e-9, fuse);
  }
}

TEST_F(OnDevice, attention_of_several_tiles_equals_the_interpreter) {
  const std::pair<const char*, const char*> kinds[] = {
      {"", ""},
      {"", ", mask_kind=causal"},
      {"", ", mask_kind=sliding_window, window=20, attn_logit_softcap=5.0"},
      {", m: f32[2,150]", ", has_mask=true"},
      {", m: bool[2,1,140,150]", ", mask_kind=causal, has_mask=true"},
      {", m: bias", ", has_bias=true"},
  };
  for (const char* type : {"bf16", "f16", "f32"}) {
    for (const auto& [operand, attributes] : kinds) {
      const bool extra = *operand != 0;
      const std::string of = type;
      // A bias has the type of the heads.
      const std::string given =
          std::string(operand) == ", m: bias" ? ", m: " + of + "[2,4,140,150]" : operand;
      const ir::Graph g =
          test::graph(cat("graph @f(q: ", of, "[2,140,128], k: ", of, "[2,150,64], v: ", of, "[2,150,64]",
                          given, ") { y:2 = attention(q, k, v", extra ? ", m" : "",
                          ", num_heads=4, num_kv_heads=2", attributes, ") return y, l=y#1 }"));
      Literals leaves;
      for (const ir::NodeId id : g.leaves())
        leaves.push_back(ramp(cat(g.node(id).shapes[0]).c_str(), leaves.size() + 5));
      SCOPED_TRACE(cat(g));
      expect_as_interpreted(g, named(g, leaves), 1e-9);
    }
  }
}

TEST_F(OnDevice, states_stay_and_clones_have_their_own) {
  const ir::Graph g =
      test::graph("graph @f(x: f32[3], s: f32[3]) { t = add(s, x) y = mul(t, t) return y, t }");
  const auto names = g.output_names();
  CompiledGraph f = compile(g, {}, {.device = "cuda", .states = {{"s", names[1]}}});
  const Literal x = Literal::full(parse_shape("f32[3]"), 2);
  f.run({{"x", view(x)}});
  EXPECT_EQ(f.state("s").as<float>()[0], 2);
  CompiledGraph other = f.clone();
  f.state("s").as<float>()[1] = 10;
  EXPECT_EQ(f.run({{"x", view(x)}})[0].as<float>()[1], 144);
  EXPECT_EQ(other.run({{"x", view(x)}})[0].as<float>()[1], 16);
  EXPECT_EQ(f.state("s").as<float>()[0], 4);
}

TEST_F(OnDevice, an_index_out_of_range_is_an_error_that_says_where) {
  const ir::Graph g = test::graph("graph @f(t: f32[4,2], i: i32[3]) { y = gather(t, i, axis=0) return y }");
  CompiledGraph f = compile(g, {}, {.device = "cuda"});
  const float t[8] = {};
  const int32_t good[3] = {0, 3, 1}, bad[3] = {0, 4, 1};
  f.run({{"t", view(t, {4, 2})}, {"i", view(good, {3})}});
  try {
    f.run({{"t", view(t, {4, 2})}, {"i", view(bad, {3})}});
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "gather: element 1 of indices is out of range; it must be at least 0 and below 4");
  }
  f.run({{"t", view(t, {4, 2})}, {"i", view(good, {3})}});
}

TEST_F(OnDevice, results_are_the_same_in_every_run) {
  const ir::Graph g = test::graph(
      "graph @f(x: f32[333,700], w: f32[700,120]) { h = matmul(x, w) s = reduce(h, kind=sum, axes=[0]) return s, h }");
  const NamedLiterals leaves = {{"x", ramp("f32[333,700]", 3)}, {"w", ramp("f32[700,120]", 4)}};
  CompiledGraph f = compile(g, {}, {.device = "cuda"});
  const NamedLiterals first = f.run(leaves);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(f.run(leaves), first);
}

TEST_F(OnDevice, a_page_has_the_texts_of_kernels) {
  const ir::Graph g = test::graph("graph @f(x: f32[40,50]) { y = softmax(x, axis=1) return y }");
  const std::string page = html_page(runtime::compile_in_stages(g, {.device = "cuda"}));
  EXPECT_NE(page.find("<details><summary>0 region</summary><pre>extern &quot;C&quot; __global__"),
            std::string::npos)
      << page;
}

TEST_F(OnDevice, programs_of_several_threads_run_at_once) {
  const ir::Graph g = test::graph(
      "graph @f(x: f32[20,30], w: f32[30,40], s: f32[20,40]) { h = matmul(x, w) a = tanh(h) t = add(s, a) "
      "y = reduce(t, kind=sum, axes=[1]) return y, t }");
  const Literal x = ramp("f32[20,30]", 1), w = ramp("f32[30,40]", 2);
  CompiledGraph f = compile(g, {}, {.device = "cuda", .states = {{"s", g.output_names()[1]}}});
  constexpr int kThreads = 4, kRuns = 5;
  std::vector<CompiledGraph> own;
  for (int i = 0; i < kThreads; ++i) own.push_back(f.clone());
  std::vector<NamedLiterals> last(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        for (int run = 0; run < kRuns; ++run) last[size_t(i)] = own[size_t(i)].run({{"x", x}, {"w", w}});
      });
    }
  }
  NamedLiterals alone;
  for (int run = 0; run < kRuns; ++run) alone = f.run({{"x", x}, {"w", w}});
  for (const NamedLiterals& results : last) EXPECT_EQ(results, alone);
}

TEST_F(OnDevice, a_profile_has_the_times_of_the_device) {
  const ir::Graph g = test::graph(
      "graph @f(x: f32[40,50], i: i32[3]) { y = softmax(x, axis=1) z = gather(y, i, axis=0) return z, y }");
  const NamedLiterals inputs = {{"x", ramp("f32[40,50]", 1)}, {"i", Literal::of<int32_t>({3}, {0, 39, 1})}};
  CompiledGraph f = compile(g, {}, {.device = "cuda"});
  f.run(inputs);
  struct Told final : backend::Observer {
    void took(double seconds) override { times.push_back(seconds); }
    std::vector<double> times;
  } told;
  f.observe(&told);
  f.run(inputs);
  EXPECT_EQ(told.times.size(), f.plan().steps.size());
  for (const double t : told.times) EXPECT_GT(t, 0);
  Profile profile;
  f.observe(&profile);
  for (int i = 0; i < 3; ++i) f.run(inputs);
  f.observe(nullptr);
  Report report = f.report();
  report.add_times(profile);
  for (const double seconds : report.seconds) EXPECT_GT(seconds, 0);
}

}  // namespace
}  // namespace rlx
