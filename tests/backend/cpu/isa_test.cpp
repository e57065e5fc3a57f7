#include "rlx/backend/cpu/isa.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "rlx/base/error.h"

namespace rlx::cpu {
namespace {

TEST(Isa, levels_are_found_lowest_first_and_baseline_is_always_there) {
  ASSERT_FALSE(available_isas().empty());
  EXPECT_EQ(available_isas().front(), Isa::baseline);
  for (size_t i = 1; i < available_isas().size(); ++i)
    EXPECT_LT(available_isas()[i - 1], available_isas()[i]);
}

TEST(Isa, use_isa_changes_the_level) {
  const Isa before = current_isa();
  for (Isa isa : available_isas()) {
    use_isa(isa);
    EXPECT_EQ(current_isa(), isa);
  }
  use_isa(before);
}

// The level is chosen at the first use, so each choice needs a process of its own.
TEST(IsaDeathTest, the_environment_forces_a_level) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("RLX_ISA", "baseline", 1);
        _exit(current_isa() == Isa::baseline ? 7 : 1);
      },
      testing::ExitedWithCode(7), "");
}

TEST(IsaDeathTest, an_unknown_level_is_a_user_error_that_lists_the_names) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("RLX_ISA", "sse9", 1);
        try {
          current_isa();
        } catch (const Error& e) {
          fputs(e.what(), stderr);
          _exit(e.kind() == ErrorKind::user ? 7 : 1);
        }
        _exit(2);
      },
      testing::ExitedWithCode(7), "RLX_ISA is 'sse9'; it must be one of baseline");
}

}  // namespace
}  // namespace rlx::cpu
