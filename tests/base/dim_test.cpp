#include "rlx/base/dim.h"

#include <gtest/gtest.h>

#include "rlx/base/error.h"
#include "rlx/base/shape.h"

namespace rlx {
namespace {

Dim parse(std::string_view text) {
  size_t pos = 0;
  const Dim d = parse_dim(text, pos);
  EXPECT_EQ(pos, text.size()) << text;
  return d;
}

template <class F>
std::string message(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}

TEST(Dim, equal_polynomials_are_the_same_dim) {
  const Dim b = Dim::batch(), s = Dim::seq();
  EXPECT_EQ((b + s) * (b - s) + s * s, b * b);
  EXPECT_EQ(b * s, s * b);
  EXPECT_EQ(b + s - b, s);
  EXPECT_EQ(s - s, Dim(0));
  EXPECT_NE(b, s);
  EXPECT_EQ(cat(s + Dim::past_seq()), "past_seq+seq");
  EXPECT_EQ(cat(Dim(2) * s * b + Dim(1)), "2*batch*seq+1");
}

TEST(Dim, division_is_exact_where_it_can_be) {
  const Dim b = Dim::batch(), s = Dim::seq();
  EXPECT_EQ(exact_div(b * s * Dim(384), Dim(384) * s), b);
  EXPECT_EQ(exact_div(b * s + b, b), s + Dim(1));
  EXPECT_FALSE(exact_div(s, Dim(2)));
  EXPECT_EQ(cat(floordiv(s + Dim(1), 2)), "floordiv(seq+1, 2)");
  EXPECT_EQ(bind(floordiv(s + Dim(1), 2), {{"seq", 4}}), Dim(2));
  EXPECT_EQ(bind(ceildiv(s, 16), {{"seq", 17}}), Dim(2));
  EXPECT_EQ(bind(mod(s, 16), {{"seq", 17}}), Dim(1));
}

TEST(Dim, equality_is_decided_or_left_open) {
  const Dim b = Dim::batch(), s = Dim::seq();
  EXPECT_EQ(decide_equal(s, s), true);
  EXPECT_EQ(decide_equal(s, s + Dim(1)), false);
  EXPECT_EQ(decide_equal(3, 4), false);
  EXPECT_EQ(decide_equal(s, b), std::nullopt);
  EXPECT_EQ(decide_equal(s, 8), std::nullopt);
}

TEST(Dim, text_reads_back_to_the_same_dim) {
  for (const char* text : {"7", "seq", "2*seq+1", "batch*seq-3", "floordiv(batch*seq, 7)",
                           "max(a, b)+min(4, a)", "m*mod(n, 3)"}) {
    const Dim d = parse(text);
    EXPECT_EQ(cat(d), text);
    EXPECT_EQ(parse(cat(d)), d);
  }
  EXPECT_TRUE(parse("-1").is_inferred());
  EXPECT_EQ(parse("(a+b)*(a-b)"), parse("a*a-b*b"));
}

TEST(Dim, a_text_does_not_depend_on_which_symbol_came_first) {
  const Dim young = Dim::symbol("text_b"), old = Dim::symbol("text_a");
  EXPECT_EQ(cat(young * old * Dim::symbol("text_c") * old), "text_a*text_a*text_b*text_c");
  EXPECT_EQ(cat(max(young * old, young)), "max(text_a*text_b, text_b)");
}

TEST(Dim, binding_replaces_known_symbols_only) {
  const Dim d = parse("batch*seq+past_seq");
  EXPECT_EQ(cat(bind(d, {{"batch", 2}})), "past_seq+2*seq");
  EXPECT_EQ(bind(d, {{"batch", 2}, {"seq", 5}, {"past_seq", 1}}), Dim(11));
  EXPECT_EQ(bind(parse("seq-3"), {{"seq", 3}}), Dim(0));
  EXPECT_EQ(DimBinding::batch_seq(1, 5).get("rows"), 5);
  const DimBinding decode = DimBinding::batch_past_seq(2, 7);
  EXPECT_EQ(decode.get("batch"), 2);
  EXPECT_EQ(decode.get("past_seq"), 7);
}

TEST(Dim, refuses_nonsense_with_a_reason) {
  EXPECT_EQ(message([] { Dim(-2); }), "dim: -2 is not a size; sizes are not negative, -1 means inferred");
  EXPECT_EQ(message([] { Dim::seq().value(); }), "dim: seq has no value yet; bind its symbols first");
  EXPECT_EQ(message([] { bind(parse("seq-3"), {{"seq", 1}}); }),
            "bind: seq-3: dim: a size became -2; sizes are not negative");
  EXPECT_EQ(message([] { Dim(1'000'000'000'000) * Dim(1'000'000'000'000); }),
            "dim: 1000000000000 * 1000000000000 does not fit 64 bits");
  EXPECT_EQ(message([] { parse("frob(a, b)"); }),
            "dim: unknown function 'frob'; known: floordiv, mod, max, min");
  EXPECT_EQ(message([] { Dim::symbol("9x"); }), "dim: '9x' is not a symbol name; letters, digits and _ only");
  // A hostile product of sums must stop early instead of growing without bound.
  EXPECT_NE(message([] { parse("(a+b+c+d+e+f+g+h)*(a+b+c+d+e+f+g+h)*(a+b+c+d+e+f+g+h)*(a+b+c+d+e+f+g+h)"); }),
            "no error");
  EXPECT_NE(message([] { parse(std::string(100, '(') + "1" + std::string(100, ')')); }), "no error");
}

TEST(Dim, a_sum_may_pass_below_zero_on_the_way) {
  EXPECT_EQ(parse("3-5+n+4"), parse("n+2"));
  EXPECT_EQ(parse("-m+n+m"), Dim::symbol("n"));
}

TEST(Dim, long_names_and_texts_are_refused) {
  const std::string name(257, 'n');
  EXPECT_EQ(message([&] { Dim::symbol(name); }), "dim: a symbol name of 257 letters; at most 256");
  EXPECT_EQ(message([] {
              Dim sum = 0;
              for (int i = 0; i < 100; ++i)
                sum = sum + Dim::symbol(std::string(100, 'm') + std::to_string(i));
            }),
            "dim: the expression is too large; at most 128 terms and 4096 letters");
}

// In a process of its own: the table stays full.
TEST(DimDeathTest, a_full_table_is_an_error) {
  const auto fill = [] {
    const std::string tail(200, 'x');
    try {
      for (int i = 0; i < 1000000; ++i) Dim::symbol(std::to_string(i).insert(0, "s") + tail);
    } catch (const Error& e) {
      const bool right =
          std::string(e.what()).find("different symbolic sizes fill the 64 MiB") != std::string::npos;
      const bool known = Dim::symbol("s7" + tail) == Dim::symbol("s7" + tail);  // what is there still works
      std::exit(right && known ? 3 : 4);
    }
    std::exit(5);
  };
  EXPECT_EXIT(fill(), testing::ExitedWithCode(3), "");
}

TEST(Shape, text_reads_back) {
  for (const char* text : {"f32[]", "i64[2,3]", "bool[batch,seq]", "c64[2*n+1,0]"}) {
    EXPECT_EQ(cat(parse_shape(text)), text);
  }
  EXPECT_EQ(parse_shape("f32[ 2, seq ]"), Shape(DType::f32, {2, Dim::seq()}));
  EXPECT_THROW(parse_shape("f33[2]"), Error);
  EXPECT_THROW(parse_shape("f32[2"), Error);
  EXPECT_THROW(parse_shape("f32[2]x"), Error);
}

TEST(Shape, knows_sizes_and_symbols) {
  EXPECT_EQ(parse_shape("f16[3,5]").size_bytes(), 30);
  EXPECT_EQ(cat(parse_shape("f32[batch,seq,4]").num_elements()), "4*batch*seq");
  EXPECT_EQ(parse_shape("f32[seq,batch*seq]").dynamic_symbols(), (std::vector<std::string>{"batch", "seq"}));
  EXPECT_EQ(parse_shape("f32[batch,4]").bind({{"batch", 3}}), parse_shape("f32[3,4]"));
  EXPECT_EQ(parse_shape("f32[2,3]").dim(-1), Dim(3));
}

}  // namespace
}  // namespace rlx
