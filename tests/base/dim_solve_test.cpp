// Equations between extents: what is solved, for which symbol, and what has no solution.
#include <gtest/gtest.h>

#include "rlx/base/dim_solve.h"
#include "rlx/base/error.h"

namespace rlx {
namespace {

Dim dim(std::string_view text) {
  size_t pos = 0;
  return parse_dim(text, pos);
}

// "m = n", "always", "never" or "open"; symbols are as old as their place in the alphabet.
std::string solution(std::string_view a, std::string_view b) {
  const DimSolution s =
      solve_equal(dim(a), dim(b), [](const std::string& symbol) { return size_t(symbol[0]); });
  switch (s.kind) {
    case DimSolution::Kind::always:
      return "always";
    case DimSolution::Kind::never:
      return "never";
    case DimSolution::Kind::unique:
      return cat(s.symbol, " = ", s.value);
    case DimSolution::Kind::open:
      return "open";
  }
  return "";
}

TEST(SolveEqual, the_younger_symbol_gives_way) {
  EXPECT_EQ(solution("m", "n"), "n = m");
  EXPECT_EQ(solution("n", "m"), "n = m");
  EXPECT_EQ(solution("n", "4"), "n = 4");
  EXPECT_EQ(solution("0", "n"), "n = 0");
}

TEST(SolveEqual, factors_and_sums_where_the_solution_is_unique) {
  EXPECT_EQ(solution("2*n", "2*m"), "n = m");
  EXPECT_EQ(solution("n+1", "m+1"), "n = m");
  EXPECT_EQ(solution("3*n", "12"), "n = 4");
  EXPECT_EQ(solution("2*n+2", "4*m"), "n = 2*m-1");
  EXPECT_EQ(solution("p", "n*m"), "p = m*n");
  EXPECT_EQ(solution("n*m+p", "n*m+q"), "q = p");
  EXPECT_EQ(solution("m", "floordiv(n, 2)"), "m = floordiv(n, 2)");
  EXPECT_EQ(solution("n*n", "9"), "n = 3");
  EXPECT_EQ(solution("2*n*n*n", "2000000000000000000"), "n = 1000000");
}

TEST(SolveEqual, a_value_without_subtraction_is_preferred) {
  EXPECT_EQ(solution("a", "b+1"), "a = b+1");
  EXPECT_EQ(solution("a+b", "c"), "c = a+b");
  EXPECT_EQ(solution("a", "b+c"), "a = b+c");
  EXPECT_EQ(solution("a+b", "3"), "b = -a+3");
}

TEST(SolveEqual, what_no_binding_makes_true) {
  EXPECT_EQ(solution("n", "n+1"), "never");
  EXPECT_EQ(solution("2*n", "7"), "never");
  EXPECT_EQ(solution("2*n", "2*m+1"), "never");
  EXPECT_EQ(solution("n+3", "2"), "never");
  EXPECT_EQ(solution("n", "n+m+1"), "never");
  EXPECT_EQ(solution("n*n", "8"), "never");
  EXPECT_EQ(decide_equal(dim("2*n"), dim("7")), false);
  EXPECT_EQ(decide_equal(dim("n+m"), dim("n")), std::nullopt);
}

TEST(SolveEqual, what_has_several_solutions_stays_open) {
  for (const auto& [a, b] : std::vector<std::pair<const char*, const char*>>{{"n*m", "6"},
                                                                             {"n*m", "p*q"},
                                                                             {"2*n", "3*m"},
                                                                             {"n*m", "n"},
                                                                             {"mod(n, 2)", "0"},
                                                                             {"floordiv(n, 2)", "3"},
                                                                             {"n+mod(n, 3)", "m*m"}})
    EXPECT_EQ(solution(a, b), "open") << a << " = " << b;
}

TEST(Substitute, puts_extents_in_the_place_of_symbols_at_once) {
  EXPECT_EQ(substitute(dim("n*m+n"), {{"n", dim("m")}, {"m", dim("2*n")}}), dim("2*m*n+m"));
  EXPECT_EQ(substitute(dim("floordiv(n, 2)"), {{"n", dim("6*k")}}), dim("3*k"));
  EXPECT_EQ(substitute(dim("n-3+m"), {{"n", 1}}), dim("m-2"));
  EXPECT_THROW(substitute(dim("n-3"), {{"n", 1}}), Error);
}

}  // namespace
}  // namespace rlx
