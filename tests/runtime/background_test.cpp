// Runs in the background: who owns what they use, what is refused meanwhile, and how they stop.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "rlx/ir/sample.h"
#include "rlx/runtime/report.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using namespace std::chrono_literals;
using test::error_of;
using test::graph;

// Some tenths of a second, or as long as it takes to be stopped.
ir::Graph loop(int64_t turns) {
  return graph(cat(R"(graph @loop(x: f32[64,64]) {
    y = while(x, carries=1, max_iterations=)",
                   turns, R"(, cond=graph @more(a: f32[64,64]) {
      t = full(shape=bool[], value=1)
      return t
    }, body=graph @turn(a: f32[64,64]) {
      p = matmul(a, a)
      q = tanh(p)
      return q
    })
    return y
  })"));
}
const NamedLiterals kX = {{"x", ir::sample_literal("f32[64,64]", 1)}};

TEST(Background, a_run_keeps_its_object_until_it_has_ended) {
  const NamedLiterals expected = compile(loop(300)).run(kX);
  std::future<NamedLiterals> result;
  {
    CompiledGraph f = compile(loop(300));
    result = f.run_async(kX);
  }
  EXPECT_EQ(result.get(), expected);
  {
    CompiledGraph f = compile(loop(300));
    f.commit_no_wait(kX);
    f.commit_no_wait(kX);
  }
}

TEST(Background, an_object_that_is_moved_takes_its_runs_along) {
  const NamedLiterals expected = compile(loop(300)).run(kX);
  CompiledGraph f = compile(loop(300));
  std::future<NamedLiterals> result = f.run_async(kX);
  CompiledGraph g = std::move(f);
  EXPECT_EQ(result.get(), expected);
  g.commit_no_wait(kX);
  CompiledGraph h = compile(loop(300));
  std::future<NamedLiterals> other = h.run_async(kX);
  h = std::move(g);
  EXPECT_EQ(other.get(), expected);
  EXPECT_EQ(h.sync_pending(), expected);
  EXPECT_EQ(h.run(kX), expected);
}

TEST(Background, nothing_else_is_done_with_the_object_meanwhile) {
  CompiledGraph f = compile(loop(1 << 30));
  std::stop_source stop;
  std::future<NamedLiterals> result = f.run_async(kX, stop.get_token());
  const std::string busy = ": a run is on its way in the background; wait for its results first";
  EXPECT_EQ(error_of([&] { f.run(kX); }), "run" + busy);
  EXPECT_EQ(error_of([&] { f.run_into({}, {}); }), "run_into" + busy);
  EXPECT_EQ(error_of([&] { f.run_async(kX); }), "run_async" + busy);
  EXPECT_EQ(error_of([&] { f.commit_no_wait(kX); }), "commit_no_wait" + busy);
  EXPECT_EQ(error_of([&] { f.start({}); }), "start" + busy);
  EXPECT_EQ(error_of([&] { f.state("s"); }), "state" + busy);
  EXPECT_EQ(error_of([&] { f.clone(); }), "clone" + busy);
  EXPECT_EQ(error_of([&] { f.plan(); }), "plan" + busy);
  EXPECT_EQ(error_of([&] { f.report(); }), "report" + busy);
  EXPECT_EQ(error_of([&] { f.set_params({}); }), "set_param" + busy);
  EXPECT_EQ(error_of([&] { f.observe(nullptr); }), "observe" + busy);
  EXPECT_EQ(error_of([&] { f.bind_handle("x", kX.at("x")); }), "bind_handle" + busy);
  EXPECT_EQ(error_of([&] { f.set_active_extent(std::nullopt); }), "set_active_extent" + busy);
  stop.request_stop();
  EXPECT_NE(error_of([&] { result.get(); }).find("run: stopped before"), std::string::npos);
  EXPECT_EQ(error_of([&] { f.plan(); }), "no error");
}

TEST(Background, queued_runs_are_synced_before_others) {
  CompiledGraph f = compile(loop(3));
  f.commit_no_wait(kX);
  EXPECT_EQ(error_of([&] { f.run(kX); }),
            "run: runs were queued; take their results with sync_pending first");
  const NamedLiterals queued = f.sync_pending();
  EXPECT_EQ(f.run(kX), queued);
}

TEST(Background, a_stop_ends_a_loop_between_its_turns) {
  CompiledGraph f = compile(loop(1 << 30));  // hours
  std::stop_source stop;
  std::future<NamedLiterals> result = f.run_async(kX, stop.get_token());
  std::this_thread::sleep_for(20ms);
  stop.request_stop();
  EXPECT_NE(error_of([&] { result.get(); }).find("run: stopped before"), std::string::npos);
}

// Rows of the carries are shared out among threads, each of which runs the loop.
TEST(Background, a_stop_ends_a_loop_that_threads_share) {
  CompiledGraph f = compile(graph(R"(graph @g(c: f32[64,64], param w: f32[64,64]) {
    r = scan(c, w, length=1000000000, carries=1, consts=1, body=graph @turn(c: f32[64,64], w: f32[64,64]) {
      p = matmul(c, w)
      q = tanh(p)
      return q
    })
    return r
  })"),
                            {{"w", ir::sample_literal("f32[64,64]", 2)}}, {.threads = 2});
  NamedLiterals in = {{"c", ir::sample_literal("f32[64,64]", 1)}};
  std::stop_source stop;
  std::future<NamedLiterals> result = f.run_async(std::move(in), stop.get_token());
  std::this_thread::sleep_for(20ms);
  stop.request_stop();
  EXPECT_NE(error_of([&] { result.get(); }).find("run: stopped before"), std::string::npos);
}

}  // namespace
}  // namespace rlx
