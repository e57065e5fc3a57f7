// Every operator x every sample, one operand after the other read as a view. A kernel that takes such strides reads the right
// numbers; one that does not gets a copy.
#include <gtest/gtest.h>

#include "rlx/backend/cpu/nodes/device.h"
#include "rlx/passes/fuse.h"
#include "rlx/passes/legalise.h"
#include "tests/support/compare.h"
#include "tests/support/run_on.h"
#include "tests/support/tolerance.h"
#include "tests/support/views.h"

namespace rlx::backend {
namespace {

class EveryView : public testing::TestWithParam<const ir::OpDef*> {};
INSTANTIATE_TEST_SUITE_P(Backend, EveryView, testing::ValuesIn(test::ops_of(ops::table())), test::OpName());

TEST_P(EveryView, of_an_operand_is_read) {
  test::for_each_view(
      *GetParam(), [](const test::SampleCase& c, const Literals& want, const std::string& which) {
        SCOPED_TRACE(which);
        const double tolerance = test::tolerance_of(c.leaves, want, 4);
        const ir::Graph plain = passes::legalise(c.graph, cpu::device()).graph;
        test::expect_close(test::run_on(cpu::device(), plain, c.leaves, {.threads = 2}), want, tolerance);
        const ir::Graph fused = passes::fuse(plain, cpu::device()).graph;
        test::expect_close(test::run_on(cpu::device(), fused, c.leaves, {.threads = 2}), want, tolerance);
      });
}

}  // namespace
}  // namespace rlx::backend
