// Every operator x every sample: batching each operand alone, over each axis, and all together equals a loop.
#include <gtest/gtest.h>

#include "rlx/ops/all.h"
#include "rlx/transform/transform.h"
#include "tests/support/batches.h"
#include "tests/support/compare.h"

namespace rlx::ir {
namespace {

constexpr int64_t kBatch = 3;

void check(const OpDef& op, size_t sample, const std::map<size_t, int>& axes) {
  const auto c = test::make_case(op, sample, DType::f64);
  Literals leaves = c.leaves;
  transform::VmapOptions options{.in_axes = {}, .size = kBatch};
  std::vector<Literals> per_example(size_t(kBatch), c.leaves);
  for (const auto& [operand, axis] : axes) {
    options.in_axes[cat("x", operand)] = axis;
    Literals examples;
    for (int64_t k = 0; k < kBatch; ++k) {
      examples.push_back(test::example(op, sample, operand, k));
      per_example[size_t(k)][operand] = examples.back();
    }
    leaves[operand] = test::stack(examples, axis);
  }
  const Graph mapped = transform::vmap(c.graph, options);
  for (const auto& e : mapped.verify()) ADD_FAILURE() << cat(e);
  const Literals got = interpret(mapped, leaves);
  std::vector<Literals> results;
  for (const Literals& in : per_example) results.push_back(interpret(c.graph, in));
  for (size_t r = 0; r < got.size(); ++r) {
    Literals rows;
    for (const Literals& one : results) rows.push_back(one[r]);
    test::expect_close(got[r], test::stack(rows), is_complex(got[r].dtype()) ? 1e-5 : 1e-9);
  }
}

class EveryVmap : public testing::TestWithParam<const OpDef*> {};
INSTANTIATE_TEST_SUITE_P(Vmap, EveryVmap, testing::ValuesIn(test::ops_of(ops::table())), test::OpName());

TEST_P(EveryVmap, equals_a_loop_over_examples) {
  const OpDef& op = *GetParam();
  if (op.traits.leaf) return;
  for (size_t i = 0; i < op.samples().size(); ++i) {
    const auto c = test::make_case(op, i, DType::f64);
    SCOPED_TRACE(cat("sample ", i, "\n", c.graph));
    if (c.leaves.empty()) continue;
    try {
      std::map<size_t, int> all;
      for (size_t operand = 0; operand < c.leaves.size(); ++operand) {
        for (int axis = 0; axis <= c.leaves[operand].shape().rank(); ++axis) {
          SCOPED_TRACE(cat("operand ", operand, " axis ", axis));
          check(op, i, {{operand, axis}});
        }
        all[operand] = 0;
      }
      SCOPED_TRACE("all operands");
      check(op, i, all);
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

}  // namespace
}  // namespace rlx::ir
