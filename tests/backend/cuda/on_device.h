// Graphs on a GPU beside the interpreter, and the fixture of tests that need one.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "rlx/backend/cuda/device.h"
#include "rlx/backend/plan.h"
#include "rlx/ir/leaves.h"
#include "rlx/runtime/compiled_graph.h"
#include "tests/support/compare.h"

namespace rlx::test {

inline double tolerance(const Literal& l) {
  switch (l.dtype()) {
    case DType::f32:
    case DType::c64:
      return 2e-5;
    case DType::f16:
      return 2e-3;
    case DType::bf16:
      return 2e-2;
    default:
      return 1e-9;
  }
}

inline NamedLiterals named(const ir::Graph& g, const Literals& leaves) {
  NamedLiterals out;
  size_t i = 0;
  for (const ir::NodeId id : g.leaves())
    out.emplace(static_cast<const ir::NamedLeaf*>(g.node(id).attrs.get())->name, leaves[i++]);
  return out;
}

/// Under compute-sanitizer, where a kernel takes a hundred times as long: the same kernels, on fewer numbers and without what only repeats them.
inline bool is_sanitized() { return std::getenv("RLX_TEST_SANITIZED") != nullptr; }

class OnDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = cuda::device_problem(); !why.empty()) GTEST_SKIP() << why;
  }
};

inline int failures() {
  return testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
}

// Three runs: the first launches, the second records and runs that, the third repeats.
inline void expect_as_interpreted(const ir::Graph& g, const NamedLiterals& leaves, double least,
                                  bool fuse = true) {
  const NamedLiterals want = ir::interpret(g, leaves);
  // The coarsest type on the way decides: a wide result may come from narrow operands.
  for (const auto& [name, value] : leaves) {
    if (is_float(value.dtype()) || is_complex(value.dtype())) least = std::max(least, tolerance(value));
  }
  const int failed = failures();
  CompiledGraph f = compile(g, {}, {.device = "cuda", .fuse = fuse});
  for (int run = 0; run < (is_sanitized() ? 2 : 3); ++run) {
    SCOPED_TRACE(cat("run ", run, fuse ? ", fused" : ""));
    for (const auto& [name, value] : f.run(leaves)) {
      SCOPED_TRACE(name);
      expect_close(value, want.at(name), std::max(least, tolerance(want.at(name))));
    }
    if (failures() != failed) {
      ADD_FAILURE() << f.plan().text();
      return;
    }
  }
}

}  // namespace rlx::test
