#include "rlx/backend/cpu/isa.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "rlx/base/error.h"

namespace rlx::cpu {
namespace {

#if defined(RLX_ISA_ONLY)  // RLX_ISA_NATIVE
constexpr Isa kLowest = Isa::RLX_ISA_ONLY;

// A level lower than the machine's would be slower and say nothing.
TEST(Isa, of_a_native_build_is_the_highest_of_this_machine) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni")) {
    EXPECT_EQ(kLowest, Isa::avx512vnni);
  } else if (__builtin_cpu_supports("avx512vl")) {
    EXPECT_EQ(kLowest, Isa::avx512);
  } else if (__builtin_cpu_supports("avx2")) {
    EXPECT_EQ(kLowest, Isa::avx2);
  }
#endif
  ASSERT_EQ(available_isas().size(), 1u);
}
#else
constexpr Isa kLowest = Isa::baseline;
#endif

TEST(Isa, levels_are_found_lowest_first_and_baseline_is_always_there) {
  ASSERT_FALSE(available_isas().empty());
  EXPECT_EQ(available_isas().front(), kLowest);
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
        setenv("RLX_ISA", std::string(isa_name(kLowest)).c_str(), 1);
        _exit(current_isa() == kLowest ? 7 : 1);
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
