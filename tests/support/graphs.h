// Short spellings for tests that speak in graph texts.
#pragma once

#include <gtest/gtest.h>

#include "rlx/ir/interpreter.h"
#include "rlx/ir/sample.h"
#include "rlx/ir/text.h"
#include "rlx/ops/all.h"
#include "tests/support/compare.h"

namespace rlx::test {

inline ir::Graph graph(std::string_view text) { return ir::parse_graph(text, ops::table()); }

/// Values for the leaves of a graph, in order; the same ones every time.
inline Literals sample_leaves(const ir::Graph& g) {
  Literals out;
  for (const ir::NodeId id : g.leaves())
    out.push_back(ir::sample_literal(cat(g.node(id).shapes[0]), 5 + out.size()));
  return out;
}

inline Literal f64(Dims dims, std::vector<double> v) { return Literal::of<double>(std::move(dims), v); }
inline Literal f64(double v) { return Literal::of<double>({}, {v}); }
inline Literal i32(Dims dims, std::vector<int32_t> v) { return Literal::of<int32_t>(std::move(dims), v); }

inline void expect_values(const Literal& got, std::vector<double> want, double tolerance = 1e-9) {
  ASSERT_EQ(size_t(got.elements()), want.size()) << cat(got);
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got.real_at(int64_t(i)), want[i], tolerance) << "element " << i << " of " << cat(got);
}

/// The message of the rlx::Error that `action` throws.
template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}

}  // namespace rlx::test
