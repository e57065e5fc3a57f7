// One pass, checked by text and by numbers.
#pragma once

#include <gtest/gtest.h>

#include "tests/support/graphs.h"

namespace rlx::passes {

/// A pass turned one text into the other, and both give the same numbers.
inline void expect_rewrite(ir::Graph after, std::string_view before_text, std::string_view after_text) {
  const ir::Graph before = test::graph(before_text);
  after.erase_dead();
  EXPECT_TRUE(after.verify().empty());
  EXPECT_EQ(after, test::graph(after_text)) << cat(after);
  const Literals leaves = test::sample_leaves(before);
  const Literals got = ir::interpret(after, leaves), want = ir::interpret(before, leaves);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], want[i]) << i;
}

}  // namespace rlx::passes
