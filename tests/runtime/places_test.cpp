// Results in the caller's memory: places that would give wrong values are refused, all at once, before anything is touched.
#include <gtest/gtest.h>

#include "rlx/runtime/compiled_graph.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using test::error_of;
using test::graph;

const char* const kTwo =
    "graph @g(x: f32[3,3]) { y = transpose(x, perm=[1,0]) z = matmul(y, x) return z, y }";

std::string error_into(CompiledGraph& f, const std::vector<Input>& in, const std::vector<TensorView>& out) {
  return error_of([&] { f.run_into(in, out); });
}

TEST(Places, without_memory_are_refused) {
  CompiledGraph f = compile(graph("graph @g(x: f32[2]) { y = exp(x) return y }"));
  const float x[2] = {1, 2};
  EXPECT_EQ(error_into(f, {{"x", view(x, {2})}}, {view<float>(nullptr, {2})}),
            "run_into: output 'y' has no memory, it needs 8 bytes");
  CompiledGraph empty = compile(graph("graph @g(x: f32[n]) { y = exp(x) return y }"));
  EXPECT_EQ(error_into(empty, {{"x", view<float>(nullptr, {0})}}, {view<float>(nullptr, {0})}), "no error");
}

TEST(Places, that_overlap_an_input_or_each_other_are_refused) {
  CompiledGraph f = compile(graph(kTwo));
  float x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, out[18] = {};
  const std::vector<Input> in = {{"x", view(x, {3, 3})}};
  EXPECT_EQ(
      error_into(f, in, {view(out, {3, 3}), view(x, {3, 3})}),
      "run_into: the memory of output 'y' is also that of input 'x'; every output needs memory that nothing else uses");
  EXPECT_EQ(
      error_into(f, in, {view(out, {3, 3}), view(out + 8, {3, 3})}),
      "run_into: the memory of output 'y' is also that of output 'z'; every output needs memory that nothing else "
      "uses");
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(error_into(f, in, {view(out, {3, 3}), view(out + 9, {3, 3})}), "no error");  // side by side
  EXPECT_EQ(out[9 + 1], 4);
}

TEST(Places, that_overlap_a_state_are_refused) {
  CompiledGraph f = compile(graph("graph @g(x: f32[2], s: f32[2]) { n = add(s, x) y = neg(n) return y, n }"),
                            {}, {.states = {{"s", "n"}}});
  const float x[2] = {1, 2};
  EXPECT_NE(error_into(f, {{"x", view(x, {2})}}, {f.state("s")}).find("output 'y' is also that of state 's'"),
            std::string::npos);
}

TEST(Places, and_inputs_that_are_wrong_are_told_at_once) {
  CompiledGraph f = compile(graph(kTwo));
  float x[9] = {}, out[4] = {};
  EXPECT_EQ(
      error_into(f, {{"x", view(x, {3, 3})}},
                 {view(out, {2, 2}), view<float>(nullptr, {3, 3}), view(x, {1})}),
      "run_into: 3 places for 2 outputs; output 'z' is f32[3,3], its place is f32[2,2]; output 'y' has no memory, "
      "it needs 36 bytes; the memory of place 2 is also that of input 'x'; every output needs memory that nothing "
      "else uses");
  EXPECT_EQ(
      error_into(f, {}, {view(out, {2, 2})}),
      "run: input 'x' (f32[3,3]) is missing; 1 places for 2 outputs; output 'z' is f32[3,3], its place is f32[2,2]; "
      "graph 'g' takes x");
}

// The sizes were checked by the run before; the memory was not.
TEST(Inputs, without_memory_are_refused_in_every_run) {
  CompiledGraph f = compile(graph("graph @g(x: f32[2]) { y = exp(x) return y }"));
  const float x[2] = {1, 2};
  f.run({{"x", view(x, {2})}});
  EXPECT_EQ(error_of([&] { f.run({{"x", view<float>(nullptr, {2})}}); }),
            "run: 'x' has no memory; graph 'g' takes x");
}

// A run writes results and states while it reads inputs.
TEST(Inputs, that_lie_in_results_or_states_are_refused) {
  CompiledGraph f = compile(graph("graph @g(x: f32[2,2]) { y = matmul(x, x) return y }"));
  float x[4] = {1, 2, 3, 4}, place[4] = {};
  const Outputs out = f.run({{"x", view(x, {2, 2})}});
  const std::vector<Input> fed = {{"x", out.view("y")}};
  EXPECT_EQ(
      error_of([&] { f.run(fed); }),
      "run: the memory of input 'x' is that of output 'y', which the run writes; copy it (Outputs::take), give "
      "results places of their own (run_into), or make the two a state; graph 'g' takes x");
  f.run_into(fed, std::vector{view(place, {2, 2})});
  EXPECT_EQ(place[0], 7 * 7 + 10 * 15);

  // Memory of results that is given back, since the new ones are larger, is not read.
  CompiledGraph twice = compile(graph("graph @g(x: f32[n]) { y = concat(x, x, axis=0) return y }"));
  const Outputs four = twice.run({{"x", view(x, {2})}});
  float eight[8] = {};
  const std::vector<Input> larger = {{"x", four.view("y")}};
  EXPECT_NE(error_of([&] { twice.run(larger); }).find("is that of output 'y'"), std::string::npos);
  twice.run_into(larger, std::vector{view(eight, {8})});
  EXPECT_EQ(std::vector<float>(eight, eight + 8), (std::vector<float>{1, 2, 1, 2, 1, 2, 1, 2}));

  CompiledGraph g = compile(graph("graph @g(x: f32[2], s: f32[2]) { n = add(s, x) y = neg(x) return y, n }"),
                            {}, {.states = {{"s", "n"}}});
  const TensorView s = g.state("s");
  const std::string why =
      "the memory of input 'x' is that of state 's', which the run writes; copy it (save_states)";
  EXPECT_EQ(error_of([&] { g.run({{"x", s}}); }), "run: " + why + "; graph 'g' takes x");
  EXPECT_EQ(error_into(g, {{"x", s}}, {view(place, {2})}), "run_into: " + why);
  CompiledGraph other = g.clone();
  EXPECT_EQ(error_of([&] { other.run({{"x", s}}); }), "no error");  // it has a copy of its own
}

TEST(Inputs, that_disagree_on_sizes_and_misfit_are_told_at_once) {
  CompiledGraph f = compile(
      graph(
          "graph @g(x: f32[n,2], y: f32[n,2], z: f32[2*n], s: f32[1]) { a = add(x, y) t = neg(s) return a, z, t }"),
      {}, {.states = {{"s", "t"}}});
  const float v[8] = {};
  EXPECT_EQ(
      error_of([&] {
        f.run({{"x", view(v, {3, 2})}, {"y", view(v, {4, 2})}, {"z", view(v, {7})}, {"s", view(v, {1})}});
      }),
      "run: 'z' is f32[2*n], the value is f32[7]; 's' is a state, which runs keep; set it with load_states or "
      "state(\"s\"); symbol 'n' would be both 3 and 4 (y: f32[n,2] given f32[4,2]); graph 'g' takes x, y, z");
}

}  // namespace
}  // namespace rlx
