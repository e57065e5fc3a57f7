// Derivatives of smooth functions over the whole range of each float type, against the formulas in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numbers>

#include "rlx/base/float16.h"
#include "rlx/transform/transform.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

struct Function {
  const char* op;
  double (*slope)(double);
  double narrow_units;  // in 16 bits: half a unit is one rounding
};

double density(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi); }

double gelu_slope(double x) {
  return 0.5 * std::erfc(-x / std::numbers::sqrt2) + (std::isinf(x) ? 0 : x * density(x));
}

double gelu_approx_slope(double x) {
  if (std::fabs(x) > 20) return x > 0 ? 1 : 0;
  const double k = std::sqrt(2 / std::numbers::pi), u = k * (x + 0.044715 * x * x * x), t = std::tanh(u);
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * k * (1 + 3 * 0.044715 * x * x);
}

double erf_slope(double x) { return 2 * std::numbers::inv_sqrtpi * std::exp(-x * x); }
double atan_slope(double x) { return 1 / (1 + x * x); }

constexpr Function kFunctions[] = {{"gelu", gelu_slope, 0.51},
                                   {"gelu_approx", gelu_approx_slope, 0.51},
                                   {"erf", erf_slope, 6},
                                   {"atan", atan_slope, 6}};

class Slopes : public testing::TestWithParam<Function> {
 protected:
  // First derivatives within `units` of the last place of 1 and of the value; second ones finite.
  void check(const Literal& x, double epsilon, double units) const {
    const auto g = test::graph(cat("graph(x: ", x.shape(), ") { return ", GetParam().op, "(x) }"));
    const Literal one = Literal::reals(x.shape(), std::vector<double>(size_t(x.elements()), 1.0));
    const auto first = transform::grad(g, {"x"});
    const Literal slope = ir::interpret(first, Literals{x, one})[0];
    const auto second = transform::grad(first, {"x"});
    const Literal bend = ir::interpret(second, Literals{x, one, one})[0];
    int shown = 0;
    for (int64_t i = 0; i < x.elements() && shown < 5; ++i) {
      const double at = x.real_at(i), want = GetParam().slope(at), got = slope.real_at(i);
      if (std::isnan(at)) continue;
      const bool right = std::fabs(got - want) <= units * epsilon * (1 + std::fabs(want));
      if (right && std::isfinite(bend.real_at(i))) continue;
      ++shown;
      ADD_FAILURE() << GetParam().op << "'(" << cat(at) << ") = " << cat(got) << ", expected " << cat(want)
                    << "; second " << cat(bend.real_at(i));
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Functions, Slopes, testing::ValuesIn(kFunctions),
                         [](const auto& info) { return std::string(info.param.op); });

Literal every_code(DType t) {
  Literal x = Literal::zeros(Shape(t, {65536}));
  for (uint32_t code = 0; code < 65536; ++code) {
    const uint16_t bits = uint16_t(code);
    std::memcpy(x.mutable_bytes().data() + 2 * code, &bits, 2);
  }
  return x;
}

TEST_P(Slopes, of_every_f16) { check(every_code(DType::f16), 0x1p-10, GetParam().narrow_units); }
TEST_P(Slopes, of_every_bf16) { check(every_code(DType::bf16), 0x1p-7, GetParam().narrow_units); }

TEST_P(Slopes, of_a_dense_sweep_of_f32) {
  std::vector<float> v;
  for (uint64_t code = 0; code < uint64_t(1) << 32; code += 65521) {
    const uint32_t bits = uint32_t(code);
    float f = 0;
    std::memcpy(&f, &bits, 4);
    v.push_back(f);
  }
  check(Literal::of<float>({int64_t(v.size())}, v), 0x1p-23, 8);
}

// 1 / (1 + x^2) is a number of f16 where x^2 is none.
TEST(Atan, has_a_slope_beyond_the_root_of_the_largest_number) {
  const auto g = test::graph("graph(x: f16[2]) { return reduce(atan(x)) }");
  const Literal x = Literal::reals(Shape(DType::f16, {2}), std::vector<double>{1000, -3000});
  const Literal d = ir::interpret(transform::grad(g, {"x"}), Literals{x})[0];
  EXPECT_NEAR(d.real_at(0), 1e-6, 6e-8);
  EXPECT_NEAR(d.real_at(1), 1.111e-7, 6e-8);
}

}  // namespace
}  // namespace rlx
