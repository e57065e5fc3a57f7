// Comparing tensors with a tolerance and a message that shows the first difference.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "rlx/ir/literal.h"

namespace rlx::test {

/// |got - want| <= tolerance * (1 + |want|) for every element; NaN matches NaN, infinities themselves.
inline void expect_close(const Literal& got, const Literal& want, double tolerance) {
  ASSERT_EQ(cat(got.shape()), cat(want.shape()));
  int shown = 0;
  for (int64_t i = 0; i < got.elements() && shown < 3; ++i) {
    const std::complex<double> g = got.complex_at(i), w = want.complex_at(i);
    const auto part_ok = [&](double a, double b) {
      if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
      return a == b || std::fabs(a - b) <= tolerance * (1 + std::abs(w));
    };
    if (part_ok(g.real(), w.real()) && part_ok(g.imag(), w.imag())) continue;
    ++shown;
    ADD_FAILURE() << "element " << i << " of " << cat(got.shape()) << ": got " << cat(g.real()) << " + "
                  << cat(g.imag()) << "i, expected " << cat(w.real()) << " + " << cat(w.imag()) << "i";
  }
}

inline void expect_close(const Literals& got, const Literals& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE(cat("result ", i));
    expect_close(got[i], want[i], tolerance);
  }
}

}  // namespace rlx::test
