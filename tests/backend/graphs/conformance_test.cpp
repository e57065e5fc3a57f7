// Every operator x every sample x {ref, cpu}: built and run, equal to the interpreter.
#include <gtest/gtest.h>

#include "rlx/backend/cpu/nodes/device.h"
#include "rlx/backend/reference.h"
#include "rlx/ops/all.h"
#include "tests/support/compare.h"
#include "tests/support/run_on.h"
#include "tests/support/samples.h"

namespace rlx::backend {
namespace {

// Of results that carry a few roundings of sums over at most some dozens of terms.
double tolerance(const Literals& results) {
  double out = 1e-9;
  for (const Literal& l : results) {
    if (l.dtype() == DType::f32 || l.dtype() == DType::c64) out = std::max(out, 2e-5);
    if (l.dtype() == DType::f16) out = std::max(out, 2e-3);
    if (l.dtype() == DType::bf16) out = std::max(out, 2e-2);
  }
  return out;
}

class EveryOperator : public testing::TestWithParam<const ir::OpDef*> {};
INSTANTIATE_TEST_SUITE_P(Backend, EveryOperator, testing::ValuesIn(test::ops_of(ops::table())),
                         test::OpName());

TEST_P(EveryOperator, runs_on_the_reference_backend_bit_for_bit) {
  const ir::OpDef& op = *GetParam();
  if (op.traits.leaf) return;
  for (size_t i = 0; i < op.samples().size(); ++i) {
    const auto c = test::make_case(op, i);
    SCOPED_TRACE(cat("sample ", i, "\n", c.graph));
    EXPECT_EQ(test::run_on(ref(), c.graph, c.leaves), ir::interpret(c.graph, c.leaves));
  }
}

TEST_P(EveryOperator, runs_on_the_cpu) {
  const ir::OpDef& op = *GetParam();
  if (op.traits.leaf) return;
  for (size_t i = 0; i < op.samples().size(); ++i) {
    const auto c = test::make_case(op, i);
    const Literals want = ir::interpret(c.graph, c.leaves);
    for (const int threads : {1, 2, 3}) {
      for (const bool fixed : {false, true}) {
        SCOPED_TRACE(
            cat("sample ", i, ", ", threads, " threads, ", fixed ? "weights" : "inputs", "\n", c.graph));
        const Literals got =
            test::run_on(cpu::device(), c.graph, c.leaves,
                         {.threads = threads, .fixed = std::vector<bool>(c.leaves.size(), fixed)});
        test::expect_close(got, want, tolerance(want));
      }
    }
  }
}

}  // namespace
}  // namespace rlx::backend
