// Every operator x every sample x {ref, cpu}: built and run, equal to the interpreter, as it stands,
// decomposed and fused, and its gradients, at every level of the machine.
#include <gtest/gtest.h>

#include "rlx/backend/cpu/isa.h"
#include "rlx/backend/cpu/nodes/device.h"
#include "rlx/backend/reference.h"
#include "rlx/ops/all.h"
#include "rlx/passes/fuse.h"
#include "rlx/passes/legalise.h"
#include "tests/support/compare.h"
#include "tests/support/gradient_case.h"
#include "tests/support/run_on.h"
#include "tests/support/samples.h"
#include "tests/support/tolerance.h"

namespace rlx::backend {
namespace {

/// Runs the body at every level this machine has and goes back to the one before.
template <class Body>
void at_every_level(Body body) {
  const cpu::Isa before = cpu::current_isa();
  for (const cpu::Isa isa : cpu::available_isas()) {
    SCOPED_TRACE(cat("level ", cpu::isa_name(isa)));
    cpu::use_isa(isa);
    body();
  }
  cpu::use_isa(before);
}

// With one, two and three threads, operands as inputs and as weights.
void expect_on_cpu(const ir::Graph& g, const Literals& leaves, const Literals& want, double tolerance) {
  for (const int threads : {1, 2, 3}) {
    for (const bool fixed : {false, true}) {
      SCOPED_TRACE(cat(threads, " threads, ", fixed ? "weights" : "inputs"));
      const Literals got = test::run_on(
          cpu::device(), g, leaves, {.threads = threads, .fixed = std::vector<bool>(leaves.size(), fixed)});
      test::expect_close(got, want, tolerance);
    }
  }
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
    SCOPED_TRACE(cat("sample ", i, "\n", c.graph));
    const Literals want = ir::interpret(c.graph, c.leaves);
    at_every_level([&] { expect_on_cpu(c.graph, c.leaves, want, test::tolerance_of(c.leaves, want)); });
  }
}

// The same samples with every real float of another type; operators that do not take it are left out.
TEST_P(EveryOperator, runs_on_the_cpu_in_every_float_type) {
  const ir::OpDef& op = *GetParam();
  if (op.traits.leaf || op.traits.block) return;
  for (const DType floats : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    for (size_t i = 0; i < op.samples().size(); ++i) {
      std::optional<test::SampleCase> c;
      Literals want;
      try {
        c = test::make_case(op, i, floats);
        want = ir::interpret(c->graph, c->leaves);
      } catch (const Error&) {
        continue;
      }
      SCOPED_TRACE(cat("sample ", i, " in ", floats, "\n", c->graph));
      const ir::Graph plain = passes::legalise(c->graph, cpu::device()).graph;
      test::expect_close(test::run_on(cpu::device(), plain, c->leaves, {.threads = 2}), want,
                         test::tolerance_of(c->leaves, want, 8));
    }
  }
}

// Blocks are lowered before anything is compiled.
bool is_block(const ir::OpDef& op) { return op.traits.block; }

TEST_P(EveryOperator, runs_on_the_cpu_decomposed_and_fused) {
  const ir::OpDef& op = *GetParam();
  if (op.traits.leaf || is_block(op)) return;
  for (size_t i = 0; i < op.samples().size(); ++i) {
    const auto c = test::make_case(op, i);
    const Literals want = ir::interpret(c.graph, c.leaves);
    at_every_level([&] {
      const ir::Graph plain = passes::legalise(c.graph, cpu::device()).graph;
      const ir::Graph fused = passes::fuse(plain, cpu::device()).graph;
      SCOPED_TRACE(cat("sample ", i, "\n", plain, "\n", fused));
      expect_on_cpu(plain, c.leaves, want, test::tolerance_of(c.leaves, want, 4));
      expect_on_cpu(fused, c.leaves, want, test::tolerance_of(c.leaves, want, 4));
    });
  }
}

TEST_P(EveryOperator, has_gradients_that_run_on_the_cpu) {
  const ir::OpDef& op = *GetParam();
  if (op.traits.leaf || is_block(op) || op.traits.zero_gradient) return;
  for (size_t i = 0; i < op.samples().size(); ++i) {
    const auto c = test::gradient_case(test::make_case(op, i));
    if (!c) continue;
    SCOPED_TRACE(cat("sample ", i, "\n", c->graph));
    const Literals want = ir::interpret(c->graph, c->leaves);
    at_every_level([&] {
      const ir::Graph plain = passes::legalise(c->graph, cpu::device()).graph;
      expect_on_cpu(plain, c->leaves, want, test::tolerance_of(c->leaves, want, 50));
      const ir::Graph fused = passes::fuse(plain, cpu::device()).graph;
      expect_on_cpu(fused, c->leaves, want, test::tolerance_of(c->leaves, want, 50));
    });
  }
}

}  // namespace
}  // namespace rlx::backend
