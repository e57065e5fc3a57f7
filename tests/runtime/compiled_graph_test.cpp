#include "rlx/runtime/compiled_graph.h"

#include <gtest/gtest.h>

#include <thread>

#include "rlx/backend/plan.h"
#include "rlx/runtime/devices.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using test::error_of;
using test::graph;

ir::Graph linear() {
  return graph(R"(graph @linear(x: f32[n,3], param w: f32[3,2]) {
    y = matmul(x, w)
    return y
  })");
}
const Literal kWeights = Literal::of<float>({3, 2}, {1, 2, 3, 4, 5, 6});

TEST(CompiledGraph, runs_on_borrowed_inputs_at_any_size) {
  CompiledGraph f = compile(linear(), {{"w", kWeights}});
  const float x[] = {1, 0, 0, 0, 1, 0};
  const Outputs two = f.run({{"x", view(x, {2, 3})}});
  EXPECT_EQ(two.view("y").shape(), parse_shape("f32[2,2]"));
  EXPECT_EQ(two[0].as<const float>()[3], 4);
  const Outputs one = f.run({{"x", view(x, {1, 3})}});
  EXPECT_EQ(one.take().at("y"), Literal::of<float>({1, 2}, {1, 2}));
}

TEST(CompiledGraph, tells_everything_wrong_with_the_inputs_at_once) {
  CompiledGraph f = compile(graph("graph @two(first: f32[2], second: i32[2]) { return first, second }"));
  const float x[] = {1, 2, 3};
  EXPECT_EQ(
      error_of([&] { f.run({{"first", view(x, {3})}, {"secnd", view(x, {2})}}); }),
      "run: 'first' is f32[2], the value is f32[3]; 'secnd' is not an input; did you mean 'second'; input 'second' "
      "(i32[2]) is missing; graph 'two' takes first, second");
}

// view(0) is no name.
template <class T>
concept SeenByZero = requires(const T t) { t.view(0); };

TEST(CompiledGraph, tells_that_an_output_is_not_there) {
  CompiledGraph f = compile(linear(), {{"w", kWeights}});
  const float x[] = {1, 0, 0};
  const Outputs out = f.run({{"x", view(x, {1, 3})}});
  EXPECT_EQ(error_of([&] { out[1]; }), "outputs: there is no output 1; there are 1, counted from 0");
  EXPECT_EQ(error_of([&] { out.view("z"); }), "outputs: there is no output 'z'; there are y");
  EXPECT_FALSE(SeenByZero<Outputs>);
}

TEST(CompiledGraph, wants_its_params_and_refuses_others) {
  CompiledGraph f = compile(linear());
  const float x[] = {1, 0, 0};
  EXPECT_EQ(error_of([&] { f.run({{"x", view(x, {1, 3})}}); }),
            "run: no value for param 'w'; set it with set_param");
  EXPECT_EQ(error_of([&] { f.set_param("v", kWeights); }), "set_param: 'v' is not a param; did you mean 'w'");
  EXPECT_EQ(error_of([&] { f.set_param("w", Literal::zeros(parse_shape("f32[2,3]"))); }),
            "set_param: 'w' is f32[3,2], the value is f32[2,3]");
  f.set_param("w", kWeights);
  EXPECT_EQ(f.run({{"x", view(x, {1, 3})}})[0].as<float>()[1], 2);
  f.set_param("w", Literal::full(parse_shape("f32[3,2]"), 7));
  EXPECT_EQ(f.run({{"x", view(x, {1, 3})}})[0].as<float>()[1], 7);
}

TEST(CompiledGraph, keeps_states_between_runs_and_clones_take_copies) {
  const ir::Graph g = graph("graph @count(x: f32[2], s: f32[2]) { n = add(s, x) y = mul(n, x) return y, n }");
  CompiledGraph f = compile(g, {}, {.states = {{"s", "n"}}});
  ASSERT_EQ(f.inputs().size(), 1u);
  ASSERT_EQ(f.outputs().size(), 1u);
  ASSERT_EQ(f.states().size(), 1u);
  EXPECT_EQ(f.states()[0].name, "s");
  EXPECT_EQ(f.states()[0].shape, parse_shape("f32[2]"));
  const float x[] = {1, 2};
  f.run({{"x", view(x, {2})}});
  CompiledGraph other = f.clone();
  EXPECT_EQ(f.run({{"x", view(x, {2})}})[0].as<float>()[1], 8);
  EXPECT_EQ(f.state("s").as<float>()[1], 4);
  EXPECT_EQ(other.state("s").as<float>()[1], 2);
  EXPECT_EQ(error_of([&] { f.state("t"); }), "state: there is no state 't'; there are s");
}

TEST(CompiledGraph, writes_into_the_callers_memory) {
  CompiledGraph f = compile(linear(), {{"w", kWeights}});
  const float x[] = {1, 0, 0};
  float y[2] = {};
  const TensorView place = view(y, {1, 2});
  f.run_into(std::vector<Input>{{"x", view(x, {1, 3})}}, std::span(&place, 1));
  EXPECT_EQ(y[1], 2);
  const TensorView wrong = view(y, {2, 1});
  EXPECT_EQ(error_of([&] { f.run_into(std::vector<Input>{{"x", view(x, {1, 3})}}, std::span(&wrong, 1)); }),
            "run_into: output 'y' is f32[1,2], its place is f32[2,1]");
}

TEST(CompiledGraph, runs_in_many_threads_as_clones) {
  const CompiledGraph f = compile(linear(), {{"w", kWeights}});
  std::vector<std::thread> threads;
  std::vector<float> got(8);
  for (size_t t = 0; t < got.size(); ++t) {
    threads.emplace_back([&, t] {
      CompiledGraph mine = f.clone();
      for (int i = 0; i < 200; ++i) {
        const float x[] = {float(t), 0, 0};
        got[t] = mine.run({{"x", view(x, {1, 3})}})[0].as<float>()[1];
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (size_t t = 0; t < got.size(); ++t) EXPECT_EQ(got[t], 2 * float(t));
}

TEST(CompiledGraph, refuses_fewer_threads_than_none) {
  EXPECT_EQ(error_of([] { compile(linear(), {{"w", kWeights}}, {.threads = -2}); }),
            "compile: -2 threads; 1 or more expected, or 0 for all that the process may use");
}

TEST(CompiledGraph, refuses_to_keep_no_plan) {
  for (const int64_t n : {0, -1}) {
    EXPECT_EQ(error_of([&] { compile(linear(), {{"w", kWeights}}, {.plans_kept = n}); }),
              cat("compile: ", n, " plans kept; 1 or more expected"));
  }
}

TEST(CompiledGraph, refuses_an_unknown_device_and_a_graph_without_outputs) {
  EXPECT_EQ(error_of([] { compile(linear(), {}, {.device = "tpu"}); }),
            cat("device: unknown device 'tpu'; known: ", join(device_names()), ", auto"));
  EXPECT_EQ(error_of([] { compile(ir::Graph("nothing")); }),
            "compile: graph 'nothing' has no outputs; name them with set_outputs");
}

}  // namespace
}  // namespace rlx
