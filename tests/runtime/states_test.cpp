// Which inputs and outputs make a state, and what a run that fails leaves.
#include <gtest/gtest.h>

#include "rlx/runtime/compiled_graph.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using test::error_of;
using test::graph;

std::string error_with(const char* text, std::vector<StatePair> states) {
  return error_of([&] { compile(graph(text), {}, {.states = std::move(states)}); });
}

TEST(StatePairs, of_one_output_or_one_input_are_refused) {
  const char* const text = "graph @g(a: f32[2], b: f32[2]) { c = add(a, b) d = neg(a) return c, d }";
  EXPECT_EQ(
      error_with(text, {{"a", "c"}, {"b", "c"}}),
      "compile: output 'c' becomes state 'a' and state 'b'; return the value under a name for each; graph 'g' "
      "takes a, b and returns c, d");
  EXPECT_EQ(error_with(text, {{"a", "c"}, {"a", "d"}}),
            "compile: state 'a' is in two pairs; graph 'g' takes a, b and returns c, d");
}

TEST(StatePairs, may_take_one_value_under_two_names) {
  CompiledGraph f = compile(graph("graph @g(a: f32[1], b: f32[1]) { k = add(a, b) return c=k, d=k }"), {},
                            {.states = {{"a", "c"}, {"b", "d"}}});
  f.load_states({{"a", Literal::of<float>({1}, {1})}, {"b", Literal::of<float>({1}, {2})}});
  f.run(NamedLiterals{});
  f.run(NamedLiterals{});
  EXPECT_EQ(f.save_states().at("a"), Literal::of<float>({1}, {6}));
  EXPECT_EQ(f.save_states().at("b"), Literal::of<float>({1}, {6}));
}

TEST(StatePairs, that_are_wrong_are_told_at_once) {
  EXPECT_EQ(
      error_with("graph @g(x: f32[2], s: f32[3], param w: f32[2]) { y = add(x, w) t = neg(s) return y, t }",
                 {{"x", "t"}, {"q", "y"}, {"s", "zz"}, {"w", "other"}}),
      "compile: state 'x' is f32[2] and becomes f32[3]; both must be of one type; state 'q' is no input; "
      "state 's' becomes 'zz', which is no output; state 'w' is a param; states are inputs; state 'w' becomes "
      "'other', which is no output; graph 'g' takes x, s and returns y, t");
}

constexpr const char* kCache = R"(graph @cache(rows: f32[room,2], x: f32[n,2], at: i32[2]) {
  next = dynamic_update_slice(rows, x, at)
  sum = reduce(next, axes=[0])
  return next, sum
})";

TEST(StatePairs, that_grow_are_told_what_to_do) {
  EXPECT_EQ(
      error_with("graph @g(s: f32[past,2], x: f32[n,2]) { t = concat(s, x, axis=0) return t }", {{"s", "t"}}),
      "compile: state 's' is f32[past,2] and becomes f32[n+past,2]; both must be of one type; what grows is a state "
      "of the most rows, into which dynamic_update_slice writes; graph 'g' takes s, x and returns t");
}

// The size of a state is bound, that of what is written stays open: a plan for each, one state for all.
TEST(States, of_a_bound_size_serve_every_open_one) {
  CompiledGraph f = compile(graph(kCache).bind({{"room", 4}}), {}, {.states = {{"rows", "next"}}});
  const auto write = [](CompiledGraph& c, int row, const std::vector<float>& x) {
    const int32_t at[2] = {row, 0};
    const Outputs out = c.run({{"x", view(x.data(), {int64_t(x.size()) / 2, 2})}, {"at", view(at, {2})}});
    return out[0].as<float>()[0] + out[0].as<float>()[1];
  };
  EXPECT_EQ(write(f, 0, {1, 2, 3, 4}), 10);
  EXPECT_EQ(write(f, 2, {5, 6}), 21);
  EXPECT_EQ(f.state_length("rows"), 3);
  const NamedLiterals saved = f.save_states();
  EXPECT_EQ(saved.at("rows"), Literal::of<float>({4, 2}, {1, 2, 3, 4, 5, 6, 0, 0}));
  CompiledGraph fork = f.clone();
  EXPECT_EQ(write(fork, 3, {7, 8}), 36);
  f.truncate_state("rows", 1);
  EXPECT_EQ(write(f, 1, {1, 1, 1, 1, 1, 1}), 9);
  EXPECT_EQ(fork.state_length("rows"), 4);
  f.load_states(saved);
  EXPECT_EQ(write(f, 3, {0, 1}), 22);
}

constexpr const char* kSums = R"(graph @sums(h: f32[batch,2], x: f32[batch,2]) {
  n = add(h, x)
  y = reduce(n, axes=[0,1])
  return n, y
})";
const CompileOptions kSummed = {.states = {{"h", "n"}}};

float run_sums(CompiledGraph& f, int64_t rows) {
  const std::vector<float> ones(size_t(2 * rows), 1);
  return f.run({{"x", view(ones.data(), {rows, 2})}})[0].as<float>()[0];
}

TEST(States, of_open_sizes_take_those_of_the_first_run_and_keep_them) {
  CompiledGraph f = compile(graph(kSums), {}, kSummed);
  EXPECT_EQ(cat(f.states()[0].shape), "f32[batch,2]");
  EXPECT_EQ(error_of([&] { f.state("h"); }),
            "state: 'h' is f32[batch,2] and has no size yet; a run or load_states gives it one");
  EXPECT_TRUE(f.save_states().empty());
  CompiledGraph other = f.clone();
  EXPECT_EQ(run_sums(f, 2), 4);
  EXPECT_EQ(run_sums(f, 2), 8);
  EXPECT_EQ(cat(f.state("h").shape()), "f32[2,2]");
  const std::string refused = error_of([&] { run_sums(f, 3); });
  EXPECT_NE(refused.find("state 'h' is f32[2,2] until load_states sets another size"), std::string::npos)
      << refused;
  EXPECT_EQ(run_sums(f, 2), 12) << "a run that was refused changes nothing";
  EXPECT_EQ(run_sums(other, 3), 6);
  EXPECT_EQ(f.state_length("h"), 2);
  f.truncate_state("h", 1);
  EXPECT_EQ(run_sums(f, 2), 10);
}

TEST(States, of_open_sizes_are_set_to_other_sizes) {
  CompiledGraph f = compile(graph(kSums), {}, kSummed);
  run_sums(f, 2);
  CompiledGraph fork = f.clone();
  const NamedLiterals three = {{"h", Literal::full(Shape(DType::f32, {3, 2}), 1)}};
  f.load_states(three);
  EXPECT_EQ(run_sums(f, 3), 12);
  EXPECT_EQ(run_sums(fork, 2), 8);
  fork.load_states(f.save_states());
  EXPECT_EQ(run_sums(fork, 3), 18);
  EXPECT_NE(error_of([&] { run_sums(f, 2); }), "");
  EXPECT_EQ(error_of([&] { f.load_states({{"h", Literal::zeros(Shape(DType::f32, {3}))}}); }),
            "load_states: state 'h' is f32[batch,2], the value is f32[3]");
  CompiledGraph seen = fork.clone();  // of a state that its holder may be writing
  fork.state("h").as<float>()[0] += 1;
  CompiledGraph copy = fork.clone();
  EXPECT_EQ(run_sums(copy, 3), 25);
  EXPECT_EQ(run_sums(seen, 3), 24);
}

// A plan for other sizes is a look, no run.
TEST(States, of_open_sizes_stay_as_they_are_when_other_sizes_are_planned) {
  CompiledGraph f = compile(graph(kSums), {}, kSummed);
  const auto planned = [&](int64_t rows) { f.plan({{"x", Shape(DType::f32, {rows, 2})}}); };
  planned(4);
  EXPECT_EQ(run_sums(f, 4), 8);
  f.plan({{"h", Shape(DType::f32, {1, 2})}});
  EXPECT_NE(error_of([&] { run_sums(f, 1); }), "");
  EXPECT_EQ(run_sums(f, 4), 16);
}

TEST(States, that_nothing_tells_the_size_of_are_asked_for) {
  CompiledGraph f = compile(graph(kCache), {}, {.states = {{"rows", "next"}}});
  const float x[2] = {1, 2};
  const int32_t at[2] = {1, 0};
  const auto run = [&] { return f.run({{"x", view(x, {1, 2})}, {"at", view(at, {2})}})[0].as<float>()[1]; };
  EXPECT_EQ(
      error_of(run),
      "run: state 'rows' is f32[room,2], and nothing tells room; set it with load_states; graph 'cache' "
      "takes x, at");
  f.load_states({{"rows", Literal::zeros(Shape(DType::f32, {4, 2}))}});
  EXPECT_EQ(run(), 2);
  EXPECT_EQ(f.state_length("rows"), 2);
}

TEST(States, of_one_symbol_agree) {
  CompiledGraph f =
      compile(graph(R"(graph @g(a: f32[n], b: f32[n]) { c = add(a, b) d = neg(a) return c, d })"), {},
              {.states = {{"a", "c"}, {"b", "d"}}});
  const auto zeros = [](int64_t n) { return Literal::zeros(Shape(DType::f32, {n})); };
  EXPECT_NE(error_of([&] { f.load_states({{"a", zeros(2)}, {"b", zeros(3)}}); }), "");
  EXPECT_TRUE(f.save_states().empty());
  f.load_states({{"a", Literal::of<float>({2}, {1, 2})}});  // b follows in the run
  f.run(NamedLiterals{});
  EXPECT_EQ(f.save_states().at("b"), Literal::of<float>({2}, {-1, -2}));
  EXPECT_NE(error_of([&] { f.load_states({{"a", zeros(3)}}); }), "");
}

// What the states hold after the error is not said; that the object goes on from values that are set is.
TEST(States, are_set_again_after_a_run_that_failed) {
  CompiledGraph f = compile(
      graph("graph @g(s: f32[2], i: i32[1], t: f32[3]) { n = add(s, s) y = gather(t, i) return n, y }"), {},
      {.states = {{"s", "n"}}});
  const int32_t wrong[1] = {9}, right[1] = {1};
  const float t[3] = {5, 6, 7};
  const NamedLiterals before = {{"s", Literal::of<float>({2}, {1, 2})}};
  f.load_states(before);
  EXPECT_NE(error_of([&] { f.run({{"i", view(wrong, {1})}, {"t", view(t, {3})}}); }).find("9"),
            std::string::npos);
  f.load_states(before);
  EXPECT_EQ(f.run({{"i", view(right, {1})}, {"t", view(t, {3})}})[0].as<float>()[0], 6);
  EXPECT_EQ(f.save_states().at("s"), Literal::of<float>({2}, {2, 4}));
}

}  // namespace
}  // namespace rlx
