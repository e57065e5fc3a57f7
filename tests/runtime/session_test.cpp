#include "rlx/runtime/session.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "rlx/ir/sample.h"
#include "rlx/runtime/devices.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using test::error_of;
using test::graph;

ir::Graph linear() {
  return graph(R"(graph @linear(x: f32[2,3], param w: f32[3,2]) {
    y = matmul(x, w)
    return y
  })");
}
const Literal kX = Literal::of<float>({2, 3}, {1, 0, 0, 0, 1, 0});
const Literal kW = Literal::of<float>({3, 2}, {1, 2, 3, 4, 5, 6});

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& v) {
  return std::as_bytes(std::span(v));
}

TEST(Session, knows_its_device_precision_and_policy) {
  const Session plain;
  EXPECT_NE(plain.device(), "auto");
  EXPECT_NE(plain.device(), "ref");
  EXPECT_EQ(plain.precision(), Precision::f32);
  EXPECT_TRUE(plain.policy().changes_nothing());
  EXPECT_EQ(Session("cpu", Precision::bf16).policy().compute, DType::bf16);
  EXPECT_NE(error_of([] { Session("tpu"); }).find("unknown device 'tpu'"), std::string::npos);
  EXPECT_EQ(available_devices().back(), "ref");
}

TEST(Session, compiles_graphs_programs_and_modules_to_the_same_numbers) {
  const Session session("cpu");
  const NamedLiterals weights = {{"w", kW}}, inputs = {{"x", kX}};
  const Literal expected = session.compile(linear(), weights).run(inputs).at("y");
  EXPECT_EQ(session.compile(Program{Graph(linear()), weights}).run(inputs).at("y"), expected);
  EXPECT_EQ(compile(Program{Graph(linear()), weights}).run(inputs).at("y"), expected);
  EXPECT_EQ(session.compile_with(linear(), weights, {.threads = 1}).run(inputs).at("y"), expected);
  GraphModule m = GraphModule::hir("linear");
  const auto x = m.input("x", parse_shape("f32[2,3]"));
  const auto w = m.param("w", parse_shape("f32[3,2]"));
  m.finish_hir(m.linear(x, w));
  const auto only = [](const NamedLiterals& out) { return out.begin()->second; };
  EXPECT_EQ(only(session.compile_module(m, weights).run(inputs)), expected);
  EXPECT_EQ(only(session.compile_hir(m.into_hir(), weights).run(inputs)), expected);
  EXPECT_EQ(only(session.compile_module(m.lower(), weights).run(inputs)), expected);
}

// The original dropped the session's policy when options were given.
TEST(Session, honours_its_policy_in_compile_with) {
  const Session halves("cpu", Precision::bf16);
  const auto stores_halves = [](const CompiledGraph& f) {
    for (const ir::Node* n : f.graph().nodes()) {
      for (const Shape& s : n->shapes) {
        if (s.dtype() == DType::bf16) return true;
      }
    }
    return false;
  };
  EXPECT_TRUE(stores_halves(halves.compile(linear(), {{"w", kW}})));
  EXPECT_TRUE(stores_halves(halves.compile_with(linear(), {{"w", kW}}, {.threads = 1})));
  EXPECT_FALSE(stores_halves(halves.compile_with(linear(), {{"w", kW}}, {.precision = PrecisionPolicy{}})));
  EXPECT_FALSE(stores_halves(Session("cpu").compile(linear(), {{"w", kW}})));
  Session changed("cpu");
  EXPECT_EQ(&changed.with_policy(PrecisionPolicy::all(DType::bf16)), &changed);
  EXPECT_TRUE(stores_halves(changed.compile(linear(), {{"w", kW}})));
  EXPECT_FALSE(stores_halves(changed.with_policy({}).compile(linear(), {{"w", kW}})));
  const Literal y = halves.compile(linear(), {{"w", kW}}).run({{"x", kX}}).at("y");
  EXPECT_EQ(y.dtype(), DType::f32);
  test::expect_close(y, Literal::of<float>({2, 2}, {1, 2, 3, 4}), 1e-2);
}

TEST(Session, gives_errors_as_values) {
  Attempt<CompiledGraph> none = try_compile(ir::Graph("nothing"));
  ASSERT_FALSE(none);
  EXPECT_NE(none.error()->message().find("has no outputs"), std::string::npos);
  EXPECT_THROW(none.value(), Error);
  Attempt<CompiledGraph> some = try_compile(linear(), {{"w", kW}});
  ASSERT_TRUE(some);
  EXPECT_EQ(some.error(), nullptr);
  EXPECT_FALSE(some->try_run({}));
  Attempt<NamedLiterals> y = some->try_run({{"x", kX}});
  ASSERT_TRUE(y);
  EXPECT_EQ(y->at("y"), Literal::of<float>({2, 2}, {1, 2, 3, 4}));
}

TEST(PickDevice, takes_one_whose_kernels_run_everything) { EXPECT_NE(pick_device(linear()), "ref"); }

TEST(TypedValues, of_wrong_length_name_or_type_are_refused_and_nothing_changes) {
  CompiledGraph f = compile(linear(), {{"w", kW}});
  const std::vector<float> five(5), six = {7, 7, 7, 7, 7, 7};
  const std::vector<int32_t> integers(6);
  EXPECT_EQ(error_of([&] { f.set_param_typed("w", bytes_of(five), DType::f32); }),
            "set_param_typed: 'w' is f32[3,2], which is 24 bytes; got 20");
  EXPECT_EQ(error_of([&] { f.set_param_typed("v", bytes_of(six), DType::f32); }),
            "set_param_typed: 'v' is not a param; did you mean 'w'; known: w");
  EXPECT_EQ(
      error_of([&] { f.set_param_typed("w", bytes_of(integers), DType::i32); }),
      "set_param_typed: 'w' is f32[3,2], the value is i32; only f16, bf16 and f32 stand for each other");
  EXPECT_EQ(f.run({{"x", kX}}).at("y"), Literal::of<float>({2, 2}, {1, 2, 3, 4}));
  f.set_param_typed("w", bytes_of(six), DType::f32);
  EXPECT_EQ(f.run({{"x", kX}}).at("y"), Literal::of<float>({2, 2}, {7, 7, 7, 7}));
}

TEST(TypedValues, that_are_wrong_are_told_at_once) {
  CompiledGraph f = compile(graph("graph @g(x: f32[2], y: i32[2], z: f32[2]) { return x, y, z }"));
  const std::vector<float> two = {1, 2}, one = {1};
  const TypedInput values[] = {{"x", bytes_of(one), DType::f32},
                               {"y", bytes_of(two), DType::f32},
                               {"other", bytes_of(two), DType::f32}};
  EXPECT_EQ(
      error_of([&] { f.run_typed(values); }),
      "run_typed: 'x' is f32[2], which is 8 bytes; got 4; 'y' is i32[2], the value is f32; only f16, bf16 and f32 stand for "
      "each other; 'other' is not an input; input 'z' (f32[2]) is missing; graph 'g' takes x, y, z");
}

TEST(TypedValues, widen_halves_and_come_back_in_the_declared_type) {
  CompiledGraph f = compile(linear(), {{"w", kW}});
  const Literal half = kX.cast(DType::f16), brain = kW.cast(DType::bf16);
  f.set_param_typed("w", brain.bytes(), DType::bf16);
  const TypedInput in[] = {{"x", half.bytes(), DType::f16}};
  const auto out = f.run_typed(in);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].dtype, DType::f32);
  const float expected[] = {1, 2, 3, 4};
  ASSERT_EQ(out[0].bytes.size(), sizeof expected);
  EXPECT_EQ(std::memcmp(out[0].bytes.data(), expected, sizeof expected), 0);
  // A declared half takes f32.
  CompiledGraph g = compile(graph("graph @g(x: f16[2]) { y = add(x, x) return y }"));
  const std::vector<float> x = {1, 2};
  const TypedInput wide[] = {{"x", bytes_of(x), DType::f32}};
  EXPECT_EQ(g.run_typed(wide)[0].dtype, DType::f16);
}

TEST(TypedValues, keep_wide_and_whole_numbers_exact) {
  CompiledGraph f =
      compile(graph(R"(graph @g(a: f64[2], b: i64[2], c: i32[2], d: u32[2]) { return a, b, c, d })"));
  const std::vector<double> a = {0.1, 1e300};
  const std::vector<int64_t> b = {int64_t(1) << 62, -1};
  const std::vector<int32_t> c = {-5, 7};
  const std::vector<uint32_t> d = {4000000000u, 1};
  const TypedInput in[] = {{"a", bytes_of(a), DType::f64},
                           {"b", bytes_of(b), DType::i64},
                           {"c", bytes_of(c), DType::i32},
                           {"d", bytes_of(d), DType::u32}};
  const auto out = f.run_typed(in);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(out[i].dtype, in[i].dtype);
    EXPECT_EQ(std::memcmp(out[i].bytes.data(), in[i].bytes.data(), in[i].bytes.size()), 0) << i;
  }
}

TEST(RunSlots, takes_values_by_position) {
  CompiledGraph f = compile(graph("graph @g(a: f32[2], b: f32[2]) { y = sub(a, b) return y }"));
  const float a[] = {5, 6}, b[] = {1, 2};
  const TensorView values[] = {view(a, {2}), view(b, {2})};
  EXPECT_EQ(f.run_slots(values)[0].as<float>()[1], 4);
  EXPECT_EQ(error_of([&] { f.run_slots(std::span(values, 1)); }),
            "run_slots: 1 values for 2 inputs of graph 'g'");
  const Input named[] = {{"a", values[0]}, {"b", values[1]}};
  const auto raw = f.run_raw(named);
  EXPECT_EQ(reinterpret_cast<const float*>(raw[0])[0], 4);
}

TEST(Handles, feed_inputs_and_follow_outputs) {
  CompiledGraph f = compile(
      graph("graph @g(x: f32[2], s: f32[2]) { s_next = add(s, x) y = mul(s_next, x) return y, s_next }"));
  f.bind_handle("s", Literal::of<float>({2}, {10, 20}));
  f.bind_handle("out1", Literal::of<float>({2}, {0, 0}));
  const NamedLiterals x = {{"x", Literal::of<float>({2}, {1, 2})}};
  EXPECT_EQ(f.run(x).at("y"), Literal::of<float>({2}, {11, 44}));
  EXPECT_EQ(f.read_handle("out1"), Literal::of<float>({2}, {11, 22}));
  // A value that is given comes before the handle.
  NamedLiterals both = x;
  both.emplace("s", Literal::of<float>({2}, {0, 0}));
  EXPECT_EQ(f.run(both).at("y"), Literal::of<float>({2}, {1, 4}));
  EXPECT_EQ(f.read_handle("s"), Literal::of<float>({2}, {10, 20}));
  EXPECT_EQ(error_of([&] { f.bind_handle("nothing", kX); }),
            "bind_handle: 'nothing' is no input and no output of graph 'g'; it has x, s, y, s_next");
  EXPECT_EQ(error_of([&] { f.bind_handle("s", kX); }), "bind_handle: 's' is f32[2], the value is f32[2,3]");
  f.release_handle("s");
  EXPECT_NE(error_of([&] { f.run(x); }).find("input 's'"), std::string::npos);
}

TEST(Handles, of_open_sizes_are_checked_when_they_are_bound) {
  CompiledGraph f = compile(graph("graph @g(x: f32[n,2]) { y = neg(x) return y }"));
  EXPECT_EQ(error_of([&] { f.bind_handle("x", Literal::of<float>({2, 3}, {1, 2, 3, 4, 5, 6})); }),
            "bind_handle: 'x' is f32[n,2], the value is f32[2,3]");
  f.bind_handle("x", Literal::of<float>({1, 2}, {1, 2}));
  EXPECT_EQ(f.run(NamedLiterals{}).at("y"), Literal::of<float>({1, 2}, {-1, -2}));
}

TEST(ActiveExtent, runs_the_first_rows_of_symbolic_inputs_and_leaves_others_alone) {
  CompiledGraph f = compile(graph(R"(graph @g(x: f32[n,2], b: f32[4]) {
    h = reduce(b, kind=sum, axes=[0])
    y = add(x, h)
    return y
  })"));
  const Literal x = Literal::of<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
                b = Literal::of<float>({4}, {1, 1, 1, 1});
  f.set_active_extent(std::pair<int64_t, int64_t>{2, 4});
  EXPECT_EQ(f.run({{"x", x}, {"b", b}}).at("y"), Literal::of<float>({2, 2}, {5, 6, 7, 8}));
  float place[4] = {};
  f.bind_handle("b", b);
  f.bind_handle("y", x);
  f.run_into(std::vector<Input>{{"x", view(x)}}, std::vector{view(place, {2, 2})});
  EXPECT_EQ(place[3], 8);
  EXPECT_EQ(f.read_handle("y"), Literal::of<float>({2, 2}, {5, 6, 7, 8}));
  f.release_handle("b");
  f.release_handle("y");
  f.set_active_extent(std::nullopt);
  EXPECT_EQ(f.run({{"x", x}, {"b", b}}).at("y").shape(), parse_shape("f32[4,2]"));
  EXPECT_EQ(error_of([&] { f.set_active_extent(std::pair<int64_t, int64_t>{5, 4}); }),
            "set_active_extent: 5 of 4 rows; 0 to 4 expected");
  f.set_active_extent(std::pair<int64_t, int64_t>{2, 5});
  EXPECT_EQ(error_of([&] { f.run({{"x", x}, {"b", b}}); }),
            "set_active_extent: no input has 5 rows along a symbolic first axis; 'x' has 4");
}

TEST(Background, runs_are_the_same_as_plain_ones) {
  CompiledGraph f = compile(linear(), {{"w", kW}});
  const NamedLiterals expected = f.run({{"x", kX}});
  EXPECT_EQ(f.run_async({{"x", kX}}).get(), expected);
  const NamedLiterals twice = {{"x", Literal::of<float>({2, 3}, {2, 0, 0, 0, 2, 0})}};
  f.commit_no_wait({{"x", kX}});
  f.commit_no_wait(twice);
  const Literal last = f.sync_pending().at("y");
  EXPECT_EQ(last, Literal::of<float>({2, 2}, {2, 4, 6, 8}));
  EXPECT_EQ(error_of([&] { f.sync_pending(); }),
            "sync_pending: nothing was queued; commit_no_wait queues a run");
  const NamedLiterals sets[] = {{{"x", kX}}, twice, {{"x", kX}}};
  const auto all = f.run_pipelined(sets);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1].at("y"), last);
  EXPECT_EQ(all[2], expected);
}

TEST(Ahead, runs_are_the_same_as_plain_ones_in_their_order) {
  const ir::Graph g = graph("graph @g(x: f32[2], s: f32[2]) { n = add(s, x) y = neg(n) return y, n }");
  CompiledGraph f = compile(g, {}, {.states = {{"s", "n"}}});
  float x[2] = {1, 2};
  f.start(std::vector<Input>{{"x", view(x, {2})}});
  x[0] = 10;
  f.start(std::vector<Input>{{"x", view(x, {2})}});
  EXPECT_EQ(error_of([&] { f.start(std::vector<Input>{{"x", view(x, {2})}}); }),
            "start: 2 runs are on their way; finish one first");
  EXPECT_EQ(error_of([&] { f.run({{"x", view(x, {2})}}); }),
            "run: 2 runs were started and not finished; finish them first");
  const Outputs first = f.finish();
  const TensorView y = first[0];
  EXPECT_EQ(y.as<float>()[0], -1);
  const Outputs second = f.finish();
  EXPECT_EQ(second[0].as<float>()[0], -11);
  EXPECT_EQ(second[0].as<float>()[1], -4);
  EXPECT_EQ(y.as<float>()[0], -1);  // of the one before, still there
  EXPECT_EQ(error_of([&] { f.finish(); }), "finish: no run was started");
  EXPECT_EQ(f.state("s").as<float>()[0], 11);
  EXPECT_EQ(f.run({{"x", view(x, {2})}})[0].as<float>()[0], -21);
}

TEST(Ahead, sizes_may_change_from_run_to_run_and_errors_start_nothing) {
  CompiledGraph f = compile(graph("graph @g(x: f32[n]) { y = neg(x) return y }"));
  const float x[5] = {1, 2, 3, 4, 5};
  f.start(std::vector<Input>{{"x", view(x, {2})}});
  EXPECT_NE(error_of([&] { f.start({}); }).find("input 'x'"), std::string::npos);
  f.start(std::vector<Input>{{"x", view(x, {5})}});
  EXPECT_EQ(f.finish()[0].elements(), 2);
  const Outputs last = f.finish();
  EXPECT_EQ(last[0].elements(), 5);
  EXPECT_EQ(last[0].as<float>()[4], -5);
}

TEST(Background, errors_come_where_results_are_asked_for) {
  CompiledGraph f = compile(linear(), {{"w", kW}});
  f.commit_no_wait({});
  f.commit_no_wait({{"x", kX}});
  EXPECT_NE(error_of([&] { f.sync_pending(); }).find("input 'x'"), std::string::npos);
  EXPECT_EQ(f.run({{"x", kX}}).at("y"), Literal::of<float>({2, 2}, {1, 2, 3, 4}));
}

TEST(Background, stops_when_asked) {
  CompiledGraph f = compile(linear(), {{"w", kW}});
  std::stop_source stop;
  stop.request_stop();
  auto result = f.run_async({{"x", kX}}, stop.get_token());
  EXPECT_NE(error_of([&] { result.get(); }).find("run: stopped before"), std::string::npos);
  EXPECT_EQ(f.run({{"x", kX}}).at("y"), Literal::of<float>({2, 2}, {1, 2, 3, 4}));
}

TEST(States, are_saved_loaded_and_cut) {
  CompiledGraph f =
      compile(graph("graph @g(x: f32[2,2], s: f32[2,2]) { n = add(s, x) y = neg(n) return y, n }"), {},
              {.states = {{"s", "n"}}});
  const NamedLiterals x = {{"x", Literal::of<float>({2, 2}, {1, 2, 3, 4})}};
  f.run(x);
  const NamedLiterals saved = f.save_states();
  f.run(x);
  EXPECT_EQ(f.save_states().at("s"), Literal::of<float>({2, 2}, {2, 4, 6, 8}));
  CompiledGraph other = f.clone();
  other.load_states(saved);
  EXPECT_EQ(other.run(x).at("y"), Literal::of<float>({2, 2}, {-2, -4, -6, -8}));
  EXPECT_EQ(f.save_states().at("s"), Literal::of<float>({2, 2}, {2, 4, 6, 8}));
  f.truncate_state("s", 1);
  EXPECT_EQ(f.save_states().at("s"), Literal::of<float>({2, 2}, {2, 4, 0, 0}));
  f.truncate_state("s", 1, 1);
  EXPECT_EQ(f.save_states().at("s"), Literal::of<float>({2, 2}, {2, 0, 0, 0}));
  EXPECT_EQ(error_of([&] { f.load_states({{"t", kX}, {"s", kX}}); }),
            "load_states: state 's' is f32[2,2], the value is f32[2,3]; there is no state 't'");
  EXPECT_EQ(error_of([&] { f.truncate_state("s", 3); }),
            "truncate_state: 3 rows of 's', which is f32[2,2]; 0 to 2 expected");
}

// Clones read the same memory until one of them writes, whoever that is and by whatever way.
TEST(States, of_clones_part_when_one_of_them_changes) {
  const auto compiled = [] {
    return compile(graph("graph @g(x: f32[2,2], s: f32[2,2]) { n = add(s, x) y = neg(n) return y, n }"), {},
                   {.states = {{"s", "n"}}});
  };
  const NamedLiterals x = {{"x", Literal::of<float>({2, 2}, {1, 2, 3, 4})}};
  const Literal one = Literal::of<float>({2, 2}, {1, 2, 3, 4}),
                two = Literal::of<float>({2, 2}, {2, 4, 6, 8});
  CompiledGraph f = compiled();
  f.run(x);
  CompiledGraph by_run = f.clone(), by_load = f.clone(), by_cut = f.clone(), by_view = f.clone(),
                late = f.clone();
  by_run.run(x);
  by_load.load_states({{"s", two}});
  by_cut.truncate_state("s", 1);
  by_view.state("s").data[0] = std::byte(1);
  EXPECT_EQ(f.save_states().at("s"), one);
  f.run(x);
  f.run(x);
  EXPECT_EQ(late.save_states().at("s"), one);
  EXPECT_EQ(by_run.save_states().at("s"), two);
  EXPECT_EQ(by_load.save_states().at("s"), two);
  EXPECT_EQ(by_cut.state_length("s"), 1);
  EXPECT_EQ(late.state_length("s"), 2);
  EXPECT_EQ(compiled().state_length("s"), 0);
  by_cut.truncate_state("s", 1, 1);
  EXPECT_EQ(by_cut.state_length("s", 1), 1);
  EXPECT_EQ(error_of([&] { f.state_length("s", 2); }), "state_length: axis 2 of 's', which is f32[2,2]");
}

// A view from before is still the object's own, and a clone keeps what it saw.
TEST(States, that_somebody_may_be_writing_are_copied_at_once) {
  CompiledGraph f = compile(graph("graph @g(x: f32[2], s: f32[2]) { n = add(s, x) y = neg(n) return y, n }"),
                            {}, {.states = {{"s", "n"}}});
  const TensorView view = f.state("s");
  CompiledGraph g = f.clone();
  reinterpret_cast<float*>(view.data)[0] = 5;
  EXPECT_EQ(f.state("s").as<float>()[0], 5);
  EXPECT_EQ(g.state("s").as<float>()[0], 0);
}

TEST(States, of_clones_in_many_threads_stay_apart) {
  CompiledGraph f =
      compile(graph("graph @g(x: f32[64], s: f32[64]) { n = add(s, x) y = neg(n) return y, n }"), {},
              {.states = {{"s", "n"}}});
  const NamedLiterals x = {{"x", Literal::full(Shape(DType::f32, {64}), 1)}};
  f.run(x);
  std::vector<CompiledGraph> clones;
  for (int i = 0; i < 8; ++i) clones.push_back(f.clone());
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k <= i; ++k) clones[size_t(i)].run(x);
    });
  }
  f.run(x);
  for (std::thread& t : threads) t.join();
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(clones[size_t(i)].save_states().at("s"), Literal::full(Shape(DType::f32, {64}), 2 + i));
  EXPECT_EQ(f.save_states().at("s"), Literal::full(Shape(DType::f32, {64}), 2));
}

}  // namespace
}  // namespace rlx
