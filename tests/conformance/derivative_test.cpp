// Every operator x every sample, in f64: reverse and forward mode agree with differences, with each other,
// and so do their own derivatives.
#include <gtest/gtest.h>

#include "rlx/ops/all.h"
#include "tests/support/derivatives.h"
#include "tests/support/samples.h"

namespace rlx::ir {
namespace {

class EveryDerivative : public testing::TestWithParam<const OpDef*> {};
INSTANTIATE_TEST_SUITE_P(Derivative, EveryDerivative, testing::ValuesIn(test::ops_of(ops::table())),
                         test::OpName());

TEST_P(EveryDerivative, is_what_differences_say) {
  const OpDef& op = *GetParam();
  if (op.traits.leaf) return;
  for (size_t i = 0; i < op.samples().size(); ++i) {
    const auto c = test::make_case(op, i, DType::f64);
    SCOPED_TRACE(cat("sample ", i, "\n", c.graph));
    if (c.graph.has_dynamic_dims()) continue;
    // Rounding is constant nearly everywhere; gradients go straight through it.
    const bool rounds = cat(c.graph).find("activations=q8") != std::string::npos;
    test::DerivativeCheck check(c.graph, c.leaves, !op.traits.surrogate_gradient && !rounds, true);
    if (!check.applies()) continue;
    try {
      check.run();
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

}  // namespace
}  // namespace rlx::ir
