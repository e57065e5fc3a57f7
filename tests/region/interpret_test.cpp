#include "rlx/region/interpret.h"

#include "rlx/ir/sample.h"
#include "tests/region/support.h"

namespace rlx::region {
namespace {

using test::parse;

// The judge of regions and the judge of graphs agree on a body; samples fill the leaves.
void expect_agreement(const std::string& text, const std::vector<std::string>& fills, double tolerance) {
  SCOPED_TRACE(text);
  const ir::Graph g = parse(text);
  const Built built = from_graph(g);
  ASSERT_TRUE(built) << built.refusal;
  Literals leaves;
  for (size_t i = 0; i < fills.size(); ++i) leaves.push_back(ir::sample_literal(fills[i], 7 + i));
  const Literals want = ir::interpret(g, leaves);
  const Literals got =
      test::run_region(g, *built.region, leaves, [](const Region& r, auto memory) { interpret(r, memory); });
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_LE(test::difference(got[i], want[i]), tolerance) << "output " << i;
}

TEST(RegionInterpret, elementwise_operators_mean_what_the_graph_means) {
  for (const auto op :
       {"neg",   "abs",  "exp",   "expm1", "sin",  "cos",     "tan",  "atan", "tanh",        "erf",
        "floor", "ceil", "round", "sign",  "relu", "sigmoid", "silu", "gelu", "gelu_approx", "softplus"}) {
    for (const std::string t : {"f32", "f64", "bf16", "f16"})
      expect_agreement(cat("graph @b(x: ", t, "[3,5]) { return ", op, "(x) }"), {t + "[3,5]"},
                       t == "f64"   ? 1e-15
                       : t == "f32" ? 3e-7
                                    : 0);
  }
  for (const auto op : {"log", "log1p", "sqrt", "rsqrt"})
    expect_agreement(cat("graph @b(x: f32[7]) { return ", op, "(x) }"), {"f32[7] positive"}, 3e-7);
  for (const auto op : {"add", "sub", "mul", "div", "max", "min", "rem", "pow"})
    expect_agreement(cat("graph @b(a: f32[4,1,3], b: f32[5,1]) { return ", op, "(a, b) }"),
                     {"f32[4,1,3] positive", "f32[5,1] positive"}, 3e-7);
}

TEST(RegionInterpret, integers_wrap_in_their_own_width) {
  for (const std::string t : {"i8", "u8", "i16", "i32", "i64", "u32"}) {
    for (const auto op : {"add", "sub", "mul", "div", "rem", "max", "min", "bitwise_and", "bitwise_or",
                          "bitwise_xor", "shift_left", "shift_right"}) {
      const std::string fill = t + (t[0] == 'u' ? "[64] bytes" : "[64] in -120..120");
      expect_agreement(cat("graph @b(a: ", t, "[64], b: ", t, "[64]) { return ", op, "(", op, "(a, b), b) }"),
                       {t == "u32" ? "u32[64] <4000000000" : fill, t == "u32" ? "u32[64] <9" : fill}, 0);
    }
    if (t[0] != 'u')
      expect_agreement(cat("graph @b(a: ", t, "[64]) { return sign(a), abs(neg(a)), bitwise_not(a) }"),
                       {t + "[64] in -120..120"}, 0);
  }
}

TEST(RegionInterpret, casts_saturate_and_conditions_select) {
  expect_agreement(
      "graph @b(x: f32[9]) { return cast(mul(x, full(shape=f32[], value=300.0)), to=u8), cast(mul(x, full(shape=f32[], value=1e20)), to=i32) }",
      {"f32[9]"}, 0);
  expect_agreement(
      "graph @b(x: f64[9]) { return cast(mul(x, full(shape=f64[], value=1e12)), to=u32), cast(x, to=f32), cast(mul(x, full(shape=f64[], value=1e30)), to=i64) }",
      {"f64[9]"}, 0);
  expect_agreement(
      "graph @b(x: i32[9]) { return cast(x, to=u8), cast(x, to=f32), cast(x, to=bool), cast(x, to=i16) }",
      {"i32[9] in -500..500"}, 0);
  expect_agreement("graph @b(x: i64[9], y: f32[9]) { return mul(cast(x, to=f32), y) }",
                   {"i64[9] in -500..500", "f32[9]"}, 0);
  expect_agreement("graph @b(c: bool[4,1], x: f32[3], y: f32[]) { return where(logical_not(c), x, y) }",
                   {"bool[4,1]", "f32[3]", "f32[]"}, 0);
  expect_agreement(
      "graph @b(x: f32[5], y: f32[5]) { return cast(compare(x, y, kind=gt), to=f32), is_nan(div(x, sub(x, x))), is_finite(y) }",
      {"f32[5]", "f32[5]"}, 0);
  expect_agreement("graph @b(x: i32[8]) { return clamp(x, lo=-2.0, hi=3.0), where(x, x, neg(x)) }",
                   {"i32[8] in -9..9"}, 0);
  expect_agreement("graph @b(a: bool[6], b: bool[6]) { return compare(a, b, kind=lt), logical_xor(a, b) }",
                   {"bool[6]", "bool[6]"}, 0);
}

// 16777217 and the others are no f32: read as such they would give other integers, and no truth.
TEST(RegionInterpret, casts_of_f64_read_it_exactly) {
  const Literal x = Literal::of<double>({4}, {16777217, 2.9999999999, -0.99999999999, 1e-300});
  const ir::Graph g =
      parse("graph @b(x: f64[4]) { return cast(x, to=i32), cast(x, to=i8), cast(x, to=bool) }");
  const Built built = from_graph(g);
  ASSERT_TRUE(built) << built.refusal;
  const Literals got =
      test::run_region(g, *built.region, {x}, [](const Region& r, auto memory) { interpret(r, memory); });
  EXPECT_EQ(cat(got[0]), "i32[4]{16777217, 2, 0, 0}");
  EXPECT_EQ(cat(got[1]), "i8[4]{127, 2, 0, 0}");
  EXPECT_EQ(cat(got[2]), "bool[4]{true, true, true, true}");
  // A rounding to f32 in between would be a second one.
  EXPECT_EQ(test::refusal_of("graph @b(x: f64[4]) { return cast(x, to=f16) }"),
            "it computes in f16 and in f64");
  EXPECT_EQ(test::refusal_of("graph @b(x: f64[4]) { return cast(x, to=f32) }"), "");
}

TEST(RegionInterpret, reductions_over_any_axes) {
  for (const auto kind : {"sum", "mean", "max", "min", "prod"}) {
    for (const auto axes : {"[0]", "[1]", "[2]", "[0,2]", "[0,1]", "[0,1,2]"})
      expect_agreement(cat("graph @b(x: f32[3,4,5], y: f32[4,1]) { return reduce(mul(x, y), kind=", kind,
                           ", axes=", axes, ") }"),
                       {"f32[3,4,5]", "f32[4,1]"}, 1e-6);
  }
  expect_agreement(
      "graph @b(x: f32[2,0]) { return reduce(exp(x), kind=sum, axes=[1]), reduce(x, kind=max, axes=[1]) }",
      {"f32[2,0]"}, 0);
  expect_agreement(
      "graph @b(x: u8[5,3]) { return reduce(x, kind=sum, axes=[1]), reduce(x, kind=prod, axes=[1]), reduce(x, kind=min, axes=[1]) }",
      {"u8[5,3] bytes"}, 0);
  expect_agreement("graph @b(x: f32[3,1]) { return reduce(exp(x), kind=mean, axes=[1]) }", {"f32[3,1]"},
                   1e-6);
  expect_agreement("graph @b(x: f32[3]) { return reduce(expand(x, shape=(4,3)), kind=sum, axes=[0]) }",
                   {"f32[3]"}, 1e-6);
}

}  // namespace
}  // namespace rlx::region
