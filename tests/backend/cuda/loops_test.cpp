// Loops as one kernel and their gradients: sums that leave them, which kernel takes them, and, where there is a GPU, what the interpreter gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "rlx/backend/builder.h"
#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/ir/sample.h"
#include "rlx/ops/control/scan.h"
#include "rlx/runtime/pipeline.h"
#include "rlx/transform/transform.h"
#include "tests/backend/cuda/on_device.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

/// A recurrent net with a bias and a sequence; the states of all steps count.
std::string net(int64_t rows, int64_t width, int64_t length, const std::string& step,
                const std::string& order = "") {
  const std::string state = cat("f32[", rows, ",", width, "]"), square = cat("f32[", width, ",", width, "]"),
                    vector = cat("f32[", width, "]");
  return cat("graph @f(h: ", state, ", w: ", square, ", b: ", vector, ", x: f32[", length, ",", rows, ",",
             width, "]) {\n  y:2 = scan(h, w, b, x, body=graph @step(h: ", state, ", w: ", square,
             ", b: ", vector, ", x: ", state, ") {\n    ", step, "\n    return n, n\n  }, length=", length,
             ", carries=1, consts=2", order,
             ")\n  a = reduce(y) s = mul(y#1, y#1) c = reduce(s) t = add(a, c)", "\n  return t\n}");
}
const char* const kTanh = "m = matmul(h, w) s = add(m, b) z = add(s, x) n = tanh(z)";
// The state goes on beside the product: elements on both sides of it in the gradient.
const char* const kLeaky = "m = matmul(h, w) s = add(m, x) z = tanh(s) q = mul(h, b) n = add(z, q)";

ir::Graph gradient(const std::string& text) {
  return transform::value_and_grad(test::graph(text), {"h", "w", "b", "x"});
}

// So small that states and gradients of many steps stay near 1: what differs where they grow is how sums are rounded.
Literals small_leaves(const ir::Graph& g) {
  Literals out;
  for (const ir::NodeId id : g.leaves()) {
    const Shape& s = g.node(id).shapes[0];
    std::vector<double> x = ir::sample_literal(cat(s), out.size() + 11).to_reals();
    for (double& v : x) v *= 0.25 / (s.rank() == 2 ? std::sqrt(double(s.dim(1).value())) : 1);
    out.push_back(Literal::reals(s, x));
  }
  return out;
}

ir::Graph ready(const ir::Graph& g, const cuda::Device& device) {
  std::vector<passes::Remark> remarks;
  return runtime::specialise(runtime::optimise(g, {}), device, {}, remarks);
}

std::vector<std::string> loops_of(const ir::Graph& g, const char* architecture) {
  const cuda::Device device(architecture, nullptr);
  const auto program = backend::Builder(device, 1).build(ready(g, device));
  for (const std::string& wrong : backend::verify_plan(program->plan())) ADD_FAILURE() << wrong;
  if (cuda::compiler_problem().empty()) device.functions().compile_waiting();
  std::vector<std::string> out;
  for (const auto& s : program->plan().steps) {
    if (s.kernel.starts_with("scan")) out.push_back(s.kernel);
  }
  return out;
}

// Carries of the loops, in order.
std::vector<int> carries_of(const ir::Graph& g) {
  std::vector<int> out;
  for (const ir::Node* n : g.nodes()) {
    if (n->is<ops::Scan>()) out.push_back(n->as<ops::Scan>().carries);
  }
  return out;
}

TEST(CudaLoops, sums_of_gradients_leave_the_loop) {
  const cuda::Device device("sm_90a", nullptr);
  for (const char* step : {kTanh, kLeaky}) {
    for (const char* order : {"", ", reverse=true"}) {
      const ir::Graph g = ready(gradient(net(3, 5, 6, step, order)), device);
      EXPECT_EQ(carries_of(g), (std::vector<int>{1, 3}))
          << step;  // the state; its gradient, those of w and b
      const auto cut = cuda::with_sums_behind_loops(g, device);
      ASSERT_TRUE(cut) << step;
      for (const auto& wrong : cut->verify()) ADD_FAILURE() << cat(wrong);
      EXPECT_EQ(carries_of(*cut), (std::vector<int>{1, 1})) << step;
      const Literals in = small_leaves(g), want = ir::interpret(g, in), got = ir::interpret(*cut, in);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i) test::expect_close(got[i], want[i], 1e-5);
    }
  }
}

// A step of operators drawn by lot: the product and what else there is, the last one is the state.
std::string drawn_step(uint64_t seed) {
  auto draw = [state = seed * 977 + 5](uint64_t limit) mutable {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % limit;
  };
  std::vector<std::string> known = {"m", "h", "b", "x"};
  std::string out = draw(2) ? "m = matmul(h, w)" : "p = tanh(h) m = matmul(p, w)";
  const uint64_t last = 1 + draw(4);
  for (uint64_t i = 0; i <= last; ++i) {
    const std::string name = i == last ? "n" : cat("v", i),
                      from = i == last ? "m" : known[draw(known.size())];
    const char* const one[] = {"tanh", "sigmoid", "sin"};
    const char* const two[] = {"add", "sub", "mul"};
    out += draw(3) == 0 && i < last
               ? cat(" ", name, " = ", one[draw(3)], "(", from, ")")
               : cat(" ", name, " = ", two[draw(3)], "(", from, ", ", known[draw(known.size())], ")");
    known.push_back(name);
  }
  return out;
}

// In f64, where sums in another order are the same but for the last bits.
TEST(CudaLoops, drawn_steps_give_the_same_behind_the_changes) {
  const cuda::Device device("sm_90a", nullptr);
  int cut = 0, joined = 0;
  for (uint64_t seed = 0; seed < 150 && !HasFailure(); ++seed) {
    std::string text = net(3, 5, 4, drawn_step(seed));
    for (size_t at = 0; (at = text.find("f32", at)) != text.npos;) text.replace(at, 3, "f64");
    const ir::Graph g = ready(gradient(text), device);
    const Literals in = small_leaves(g), want = ir::interpret(g, in);
    for (const bool sums : {true, false}) {
      const auto after = sums ? cuda::with_sums_behind_loops(g, device) : cuda::with_joined_sides(g, device);
      if (!after) continue;
      ++(sums ? cut : joined);
      SCOPED_TRACE(cat("seed ", seed, "\n", g, "\nbecame\n", *after));
      for (const auto& wrong : after->verify()) ADD_FAILURE() << cat(wrong);
      const Literals got = ir::interpret(*after, in);
      for (size_t i = 0; i < want.size(); ++i) test::expect_close(got[i], want[i], 1e-11);
    }
  }
  EXPECT_GE(cut, 50);
  EXPECT_GE(joined, 10);
}

TEST(CudaLoops, sums_that_a_step_reads_or_that_would_grow_stay) {
  const cuda::Device device("sm_90a", nullptr);
  const auto changed = [&](const std::string& text) {
    return cuda::with_sums_behind_loops(test::graph(text), device).has_value();
  };
  const auto loop = [](const std::string& step, const std::string& more = "") {
    return cat(
        "graph @f(s: f32[4], k: f32[4], x: f32[6,3,4]) {\n  y:2 = scan(s, k, x, body=graph @step(s: f32[4], k: ",
        "f32[4], x: f32[3,4]) {\n    ", step, "\n  }, length=6, carries=1, consts=1", more,
        ")\n  return y, y#1\n}");
  };
  EXPECT_TRUE(changed(loop("r = reduce(x, axes=[0]) n = add(s, r) return n, r")));
  EXPECT_FALSE(changed(loop("r = reduce(x, axes=[0]) n = add(s, r) return n, s")));
  EXPECT_FALSE(changed(loop("r = reduce(x, axes=[0]) n = add(s, r) return n, n")));
  EXPECT_FALSE(changed(loop("r = reduce(x, axes=[0]) n = mul(s, r) return n, r")));
  EXPECT_FALSE(changed(loop("r = reduce(x, axes=[0], kind=max) n = add(s, r) return n, r")));
  // Nine times the bytes of the sequence would be stacked.
  EXPECT_FALSE(changed(loop(
      "e = expand(x, shape=(9, 3, 4)) q = exp(e) r = reduce(q, axes=[0, 1]) n = add(s, r) return n, r")));
}

TEST(CudaLoops, a_gradient_is_two_kernels) {
  for (const char* step : {kTanh, kLeaky}) {
    const ir::Graph g = gradient(net(3, 8, 6, step));
    EXPECT_EQ(loops_of(g, "sm_90a"), (std::vector<std::string>{"scan_product", "scan_product"})) << step;
    EXPECT_EQ(loops_of(g, "sm_80"), (std::vector<std::string>{"scan", "scan"})) << step;
  }
}

// A block has one row of the state: columns of it are elsewhere.
TEST(CudaLoops, a_state_that_is_read_turned_is_taken_step_by_step) {
  EXPECT_EQ(
      loops_of(test::graph(
                   "graph @f(h: f32[8,8], w: f32[8,8]) {\n  y = scan(h, w, body=graph @step(h: f32[8,8], w: "
                   "f32[8,8]) {\n    m = matmul(h, w) t = transpose(h, perm=[1,0]) s = add(m, t) n = "
                   "tanh(s)\n    return n\n  }, length=9, carries=1, consts=1)\n  return y\n}"),
               "sm_90a"),
      std::vector<std::string>{"scan"});
}

class LoopsOnDevice : public test::OnDevice {
 protected:
  void compare(const std::string& text) {
    SCOPED_TRACE(text);
    const ir::Graph g = gradient(text);
    test::expect_as_interpreted(g, test::named(g, small_leaves(g)), 1e-4);
  }
};

TEST_F(LoopsOnDevice, gradients_of_nets_as_one_kernel) {
  for (const int64_t width : {1, 5, 64, 255, 256}) {
    for (const char* order : {"", ", reverse=true"}) {
      compare(net(3, width, 6, kTanh, order));
      compare(net(2, width, 5, kLeaky, order));
    }
  }
  compare(net(3, 8, 1, kTanh));
  for (uint64_t seed = 0; seed < 20; ++seed) compare(net(2, 12, 4, drawn_step(seed)));
}

}  // namespace
}  // namespace rlx
