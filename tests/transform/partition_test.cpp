#include <gtest/gtest.h>

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

TEST_F(Partition, a_budget_is_needed_for_fitting) {
  EXPECT_EQ(test::error_of([&] { cut(SavePolicy::fit_bytes); }),
            "grad: the policy fit_bytes needs a budget of 0 bytes or more");
}

}  // namespace
}  // namespace rlx
