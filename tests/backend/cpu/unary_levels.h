// The elementwise functions at every instruction set, against what they should give.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "rlx/backend/cpu/kernels/unary.h"
#include "tests/backend/cpu/support.h"
#include "tests/backend/cpu/unary_truth.h"

namespace rlx::cpu::test {

/// Every function of every x stays within `limit` ulp at every level. Real: the type of the truth. The worst errors are a property of the test.
template <class Real, class T>
void expect_within_ulps(const Array<T>& x, double limit) {
  Array<T> y(x.size());
  Pool pool(2);
  const Isa before = current_isa();
  std::string table;
  std::vector<Real> want(static_cast<size_t>(x.size()));
  for (int op = 0; op < kUnaryCount; ++op) {
    for (int64_t i = 0; i < x.size(); ++i) want[size_t(i)] = true_unary<Real>(Unary(op), Real(x[i]));
    table += std::string(unary_name(Unary(op)));
    for (Isa isa : available_isas()) {
      if (isa == Isa::avx512vnni) continue;  // the same code as avx512
      use_isa(isa);
      unary(pool, Unary(op), x.data(), y.data(), x.size());
      double worst = 0;
      int64_t at = 0;
      for (int64_t i = 0; i < x.size(); ++i) {
        const double u = ulps(y[i], want[size_t(i)]);
        if (!(u <= worst)) worst = u, at = i;
      }
      EXPECT_LE(worst, limit) << unary_name(Unary(op)) << " at level " << isa_name(isa)
                              << " of x = " << std::hexfloat << x[at] << ": got " << y[at] << ", want "
                              << want[size_t(at)];
      char cell[40];
      std::snprintf(cell, sizeof cell, " | %.3f", worst);
      table += cell;
    }
    table += "\n";
  }
  use_isa(before);
  testing::Test::RecordProperty("worst_ulp", table);
  std::printf("worst error in ulp by level\n%s", table.c_str());
}

}  // namespace rlx::cpu::test
