#include <gtest/gtest.h>

#include <ctime>

#include "rlx/transform/transform.h"
#include "tests/support/derivatives.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using test::graph;
using transform::SavePolicy;

const char* kNetwork = R"(graph(x: f64[8,16], param w: f64[16,16], param u: f64[16,4]) {
  h = gelu(matmul(x, w))
  k = tanh(mul(h, h))
  return matmul(k, u)
})";

struct Outcome {
  Literals values, gradients;
  std::map<std::string, int64_t> backward_runs;
};

// Runs forward, then backward on what crossed the cut.
Outcome run(const transform::Partition& cut, const Literals& leaves, const Literals& cotangents,
            size_t outputs) {
  Outcome out;
  const Literals forward = ir::interpret(cut.forward, leaves);
  out.values.assign(forward.begin(), forward.begin() + long(outputs));
  Literals in = leaves;
  in.insert(in.end(), forward.begin() + long(outputs), forward.end());
  in.insert(in.end(), cotangents.begin(), cotangents.end());
  ir::Interpreter interpreter;
  out.gradients = interpreter.run(cut.backward, in);
  out.backward_runs = interpreter.stats().runs_of_op;
  return out;
}

class Partition : public testing::Test {
 protected:
  Partition() : g_(graph(kNetwork)) {
    for (const auto id : g_.leaves()) leaves_.push_back(test::random_like(g_.node(id).shapes[0], id));
    cotangents_ = {test::random_like(parse_shape("f64[8,4]"), 7)};
  }
  Outcome cut(SavePolicy policy, std::optional<int64_t> budget = std::nullopt) {
    cut_ = transform::grad_partitioned(g_, {"w", "u"}, policy, budget);
    for (const auto& e : cut_->forward.verify()) ADD_FAILURE() << cat(e);
    for (const auto& e : cut_->backward.verify()) ADD_FAILURE() << cat(e);
    return run(*cut_, leaves_, cotangents_, 1);
  }
  ir::Graph g_;
  Literals leaves_, cotangents_;
  std::optional<transform::Partition> cut_;
};

TEST_F(Partition, every_policy_gives_the_same_numbers) {
  const Outcome all = cut(SavePolicy::save_all);
  EXPECT_TRUE(cut_->recomputed.empty());
  for (const auto policy : {SavePolicy::save_matmuls, SavePolicy::recompute_all}) {
    const Outcome other = cut(policy);
    EXPECT_TRUE(other.values[0] == all.values[0]);
    for (size_t i = 0; i < all.gradients.size(); ++i) EXPECT_TRUE(other.gradients[i] == all.gradients[i]);
  }
  EXPECT_TRUE(cut_->saved.empty());
}

TEST_F(Partition, saving_all_runs_no_forward_operator_twice) {
  const Outcome all = cut(SavePolicy::save_all);
  EXPECT_EQ(all.backward_runs.count("gelu"), 0u);
  EXPECT_EQ(all.backward_runs.count("tanh"), 0u);
}

TEST_F(Partition, saving_products_recomputes_only_what_lies_between_them) {
  const Outcome out = cut(SavePolicy::save_matmuls);
  // Two gradients of the second product, one of the first: no product of the forward part runs again.
  EXPECT_EQ(out.backward_runs.at("matmul"), 3);
  EXPECT_GE(out.backward_runs.count("gelu") + out.backward_runs.count("tanh"), 1u);
}

TEST_F(Partition, a_budget_is_kept) {
  cut(SavePolicy::save_all);
  const int64_t all = cut_->saved_bytes;
  for (const int64_t budget : {all, all / 2, int64_t(1024), int64_t(0)}) {
    const Outcome out = cut(SavePolicy::fit_bytes, budget);
    EXPECT_LE(cut_->saved_bytes, budget);
    test::expect_close(out.gradients, cut(SavePolicy::save_all).gradients, 1e-12);
  }
}

// x -> sin -> sin ..., each value needed and all of one size.
ir::Graph chain(int64_t length, int64_t width) {
  std::string text = cat("graph(x: f64[", width, "]) {\n  v0 = sin(x)\n");
  for (int64_t i = 1; i < length; ++i) text += cat("  v", i, " = sin(v", i - 1, ")\n");
  return graph(cat(text, "  return reduce(v", length - 1, ")\n}"));
}

TEST(FitBytes, a_chain_given_half_of_what_it_could_save_uses_it) {
  const auto g = chain(64, 4);
  const int64_t all = transform::grad_partitioned(g, {"x"}, SavePolicy::save_all).saved_bytes;
  for (const int64_t budget : {all / 2, all / 4, all * 3 / 4, int64_t(32)}) {
    const auto cut = transform::grad_partitioned(g, {"x"}, SavePolicy::fit_bytes, budget);
    EXPECT_LE(cut.saved_bytes, budget);
    EXPECT_GT(cut.saved_bytes, budget - 32) << "one more value would fit";
  }
}

TEST(FitBytes, is_quick_for_ten_thousand_nodes) {
  const auto g = chain(10'000, 2);
  const auto whole = transform::grad_partitioned(g, {"x"}, SavePolicy::save_all);
  const auto seconds = [&](SavePolicy policy, int64_t budget) {
    const clock_t start = clock();
    transform::grad_partitioned(g, {"x"}, policy, budget);
    return double(clock() - start) / CLOCKS_PER_SEC;
  };
  const double plain = seconds(SavePolicy::save_all, 0);
  EXPECT_LT(seconds(SavePolicy::fit_bytes, whole.saved_bytes / 2), 2 * plain + 1);
}

// Small random graphs: what is left to run again against the best of all sets of values.
TEST(FitBytes, comes_near_the_best_set) {
  double chosen = 0, best = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    auto draw = [state = seed * 977 + 5](uint64_t limit) mutable {
      state = state * 6364136223846793005u + 1442695040888963407u;
      return (state >> 33) % limit;
    };
    // Values of 1 to 4 rows: a wide one is made from narrow ones and summed down again.
    std::string text = "graph(x: f64[4]) {\n  v0 = sin(x)\n";
    for (int i = 1; i < 9; ++i) {
      const char* ops[] = {"sin", "tanh", "exp", "sigmoid"};
      text += draw(3) == 0 ? cat("  v", i, " = mul(v", draw(uint64_t(i)), ", v", draw(uint64_t(i)), ")\n")
                           : cat("  v", i, " = ", ops[draw(4)], "(v", draw(uint64_t(i)), ")\n");
    }
    const auto g = graph(text + "  return reduce(mul(v8, v7))\n}");
    const auto all = transform::grad_partitioned(g, {"x"}, SavePolicy::save_all);
    const int64_t budget = all.saved_bytes / 2;
    const auto fitted = transform::grad_partitioned(g, {"x"}, SavePolicy::fit_bytes, budget);
    EXPECT_LE(fitted.saved_bytes, budget);
    chosen += double(fitted.recomputed.size());
    // Every value has 32 bytes: of the values saved in full, the best half leaves at least as many to run again as do not
    // fit.
    best += double(all.saved.size()) - double(budget / 32);
  }
  EXPECT_LE(chosen, 1.3 * best) << chosen << " nodes run again, " << best << " at least";
}

// A function hides its products from nobody who asks what it costs: of its result and of what three sines leave, it is kept, though
// it is smaller.
TEST(FitBytes, a_function_costs_what_its_body_does) {
  const auto g = graph(R"(graph(x: f64[32,64], w: f64[64,1], z: f64[64,1]) {
    a = custom_fn(x, w, fwd_body=graph @product(u: f64[32,64], v: f64[64,1]) { return matmul(u, v) },
                  vjp_body=graph @gradient(u: f64[32,64], v: f64[64,1], primal_output: f64[32,1], d_output: f64[32,1]) {
                    return matmul(d_output, transpose(v, perm=[1,0])), mul(v, v)
                  })
    b = sin(sin(sin(sin(z))))
    return add(reduce(sin(a)), reduce(b))
  })");
  const auto cut = transform::grad_partitioned(g, {"x", "z"}, SavePolicy::fit_bytes, 512);
  for (const std::string& node : cut.recomputed) EXPECT_EQ(node.find("custom_fn"), node.npos) << node;
}

TEST_F(Partition, a_budget_is_needed_for_fitting) {
  EXPECT_EQ(test::error_of([&] { cut(SavePolicy::fit_bytes); }),
            "grad: the policy fit_bytes needs a budget of 0 bytes or more");
}

}  // namespace
}  // namespace rlx
