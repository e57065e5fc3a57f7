#include "rlx/ir/text.h"

#include <gtest/gtest.h>

#include <cstring>

#include "rlx/ir/build_def.h"
#include "tests/support/graphs.h"

namespace rlx::ir {
namespace {

using test::graph;

std::string parse_error(std::string_view text) {
  try {
    graph(text);
  } catch (const Error& e) {
    return cat(e.origin(), ": ", e.message());
  }
  return "no error";
}

TEST(Text, a_graph_prints_as_it_reads) {
  const char* text =
      "graph @toy(x: f32[batch,4], param w: f32[4,8]) {\n"
      "  h = matmul(x, w) : f32[batch,8]\n"
      "  %3:2 = top_k(h, k=2, axis=1) : f32[batch,2], i32[batch,2]\n"
      "  return %3, best=%3#1\n"
      "}\n";
  EXPECT_EQ(to_text(graph(text)), text);
}

TEST(Text, calls_nest_and_comments_are_skipped) {
  const Graph g = graph("graph(x: f32[2]) { // one line\n  return add(exp(x), sin(x)) // the end\n}");
  EXPECT_EQ(g.len(), 4u);
}

TEST(Text, a_nested_call_may_take_the_number_its_statement_names) {
  const Graph g = graph("graph @g(x: f32[2]) {\n  %1 = exp(sin(x))\n  return %1\n}\n");
  EXPECT_EQ(g.node(g.outputs()[0].node).op->name, "exp");
  EXPECT_TRUE(graph(to_text(g)) == g);
}

TEST(Text, names_that_are_not_words_are_quoted) {
  const Graph g = graph(R"(graph @"a b"("my input": f32[1], model.layers.0.weight: f32[1]) {
    y = add("my input", model.layers.0.weight)
    return "out\x0a"=y
  })");
  EXPECT_EQ(g.name(), "a b");
  EXPECT_EQ(g.output_name(0), "out\n");
  EXPECT_TRUE(graph(to_text(g)) == g);
}

TEST(Text, errors_tell_line_column_and_what_was_expected) {
  EXPECT_EQ(parse_error("graph(x: f32[2]) {\n  y = expp(x)\n  return y\n}"),
            "line 2 column 7: parse: ops: unknown operator 'expp'; did you mean 'exp'");
  EXPECT_EQ(parse_error("graph(x: f32[2]) {\n  return z\n}"),
            "line 2 column 10: parse: 'z' is not defined before its use");
  EXPECT_EQ(parse_error("graph(x: f32[2] {"), "line 1 column 17: parse: expected ',', found '{'");
  EXPECT_EQ(parse_error("graph(x: f32[2]) { return reduce(x, kind=some) }"),
            "line 1 column 42: parse: 'some' is not a choice for 'kind'; known: sum, mean, max, min, prod");
  EXPECT_EQ(parse_error("graph(x: f32[2]) { return reduce(x, axis=0) }"),
            "line 1 column 37: parse: reduce has no attribute 'axis'; it has kind, axes, keep_dim");
  EXPECT_EQ(parse_error("graph(x: f32[2]) { y = exp(x) : f32[3] return y }"),
            "line 1 column 32: parse: exp: declared f32[3], its operands give f32[2]");
  EXPECT_EQ(parse_error("graph(x: f32[2]) { y:2 = exp(x) return y }"),
            "line 1 column 25: parse: exp has 1 results; the statement names 2");
  EXPECT_EQ(parse_error("graph(x: f32[2]) { x = exp(x) return x }"),
            "line 1 column 20: parse: 'x' is defined twice");
  EXPECT_EQ(parse_error("graph() { return } tail"),
            "line 1 column 20: parse: expected the end of the text, found 'tail'");
}

TEST(Text, hostile_texts_are_refused_early) {
  EXPECT_NE(parse_error("graph(x: f32[2]) { %5000000000 = exp(x) return x }").find("too large"),
            std::string::npos);
  std::string deep = "graph(x: f32[1]) { return ";
  for (int i = 0; i < 100; ++i) deep += "exp(";
  EXPECT_NE(parse_error(deep).find("nest deeper"), std::string::npos);
  std::string bodies;
  for (int i = 0; i < 100; ++i) bodies += "graph(x: f32[1]) { return scan(x, length=1, carries=1, body=";
  EXPECT_NE(parse_error(bodies).find("nest deeper"), std::string::npos);
  EXPECT_NE(
      parse_error("graph() { return constant(value=f32[99999999,99999]{1.0 ...}) }").find("cannot repeat"),
      std::string::npos);
}

TEST(Text, a_choice_called_none_reads_back) {
  const Graph g = graph(R"(graph @a(x: f32[1,2,4], g: f32[4], q: f32[4,4], c: f32[2,2]) {
    y = llama_decoder_block(x, g, g, q, q, q, q, g, g, q, q, q, c, c, head_dim=4, mask_kind=none)
    return y
  })");
  EXPECT_NE(to_text(g).find("mask_kind=none"), std::string::npos);
  EXPECT_TRUE(graph(to_text(g)) == g);
}

enum class Mode { none, some };
constexpr std::array<std::string_view, 2> choice_names(Mode) { return {"none", "some"}; }

// Where none also means "absent", the choice is written in quotes.
struct MayBeNone {
  static constexpr std::string_view name = "may_be_none", summary = "", doc = "", operands = "x";
  struct Attrs {
    std::optional<Mode> mode = Mode::some;
    static constexpr auto fields() { return std::tuple{field("mode", &Attrs::mode, "")}; }
  };
  static Shapes infer(Infer& c, Attrs&) { return {c.in(0)}; }
  static Literals reference(const Eval& c, const Attrs&) { return {c.in(0)}; }
};

TEST(Text, none_and_a_choice_called_none_are_two_things) {
  OpTable table = ops::table();
  table.add<MayBeNone>();
  for (const std::optional<Mode> mode :
       {std::optional<Mode>(), std::optional(Mode::none), std::optional(Mode::some)}) {
    Graph g("g");
    g.set_outputs({make<MayBeNone>(g, {mode}, {g.input("x", parse_shape("f32[]"))})});
    EXPECT_TRUE(parse_graph(to_text(g), table) == g) << to_text(g);
  }
}

TEST(Text, numbers_beyond_f64_are_errors) {
  EXPECT_EQ(parse_error("graph(x: f64[2]) {\n  return clamp(x, lo=-1e400, hi=1)\n}"),
            "line 2 column 22: parse: -1e400 is beyond the range of f64; write inf or -inf");
  EXPECT_EQ(parse_error("graph() { return constant(value=f64[1]{1e400}) }"),
            "line 1 column 40: parse: literal: 1e400 is beyond the range of f64; write inf or -inf");
  EXPECT_EQ(parse_error(cat("graph() { return full(shape=f32[], value=1", std::string(400, '0'), ") }"))
                .substr(0, 30),
            "line 1 column 42: parse: 10000");
  for (const char* small : {"1e-400", "0.00001e-399999999999999999999", "0e999"}) {
    const Graph g = graph(cat("graph() { return full(shape=f64[], value=", small, ") }"));
    EXPECT_EQ(g.node(g.outputs()[0]).as<Full>().value, 0) << small;
  }
  const Graph inf = graph("graph() { return full(shape=f64[], value=-inf) }");
  EXPECT_TRUE(graph(to_text(inf)) == inf);
}

TEST(Text, integers_beyond_an_attribute_are_errors) {
  EXPECT_EQ(parse_error("graph(x: f64[2,3]) {\n  return softmax(x, axis=4294967296)\n}"),
            "line 2 column 26: parse: softmax: attribute 'axis': 4294967296 is out of range; -2147483648 to "
            "2147483647");
  EXPECT_EQ(
      parse_error("graph(x: f64[2,3]) { return transpose(x, perm=[0, -4294967295]) }"),
      "line 1 column 47: parse: transpose: attribute 'perm': -4294967295 is out of range; -2147483648 to "
      "2147483647");
}

// Named nodes keep clear of the numbers of others, also where those come later.
TEST(Text, numbers_stay_when_a_text_is_printed_again) {
  const char* text =
      "graph @g(x: f64[2]) {\n"
      "  %6:2 = scan(x, body=graph(c: f64[2]) {\n"
      "    n = exp(c) : f64[2]\n"
      "    %1 = sin(n) : f64[2]\n"
      "    return n, %1\n"
      "  }, length=2, carries=1) : f64[2], f64[2,2]\n"
      "  a = exp(%6) : f64[2]\n"
      "  b = sin(a) : f64[2]\n"
      "  %7 = add(a, b) : f64[2]\n"
      "  %0 = neg(%7) : f64[2]\n"
      "  return %0\n"
      "}\n";
  EXPECT_EQ(to_text(graph(text)), text);
}

TEST(Text, numbers_too_far_off_give_way) {
  const Graph g = graph("graph(x: f64[2]) { %4000000000 = exp(x) %3 = sin(%4000000000) return %3 }");
  EXPECT_EQ(g.outputs()[0].node, 3u);
  EXPECT_EQ(to_text(graph(to_text(g))), to_text(g));
}

std::string all_errors(std::string_view text) {
  std::string out;
  for (const VerifyError& e : verify_text(text, ops::table())) out += cat(e.origin, ": ", e.message, "\n");
  return out;
}

TEST(VerifyText, tells_every_error_and_nothing_that_follows_from_one) {
  EXPECT_EQ(
      all_errors(R"(graph @g(x: f32[2], y: f33[2], z: f32[3]) {
  a = expp(x)
  b = add(a, x) : f32[2]
  c = add(x, z)
  d = softmax(x, axis=5, colour=1, axis=0)
  e = mul(c, missing)
  f = mul(missing, other)
  g = exp(x : f32[2]
  h = exp(x) : f32[3]
  i = add(y, x)
  j = scan(x, length=2, carries=1, body=graph(c: f32[2]) {
    k = sin(c, nowhere)
    return k, l
  })
  m = exp(exp(no_such_thing(x)))
  return a, h, q
})"),
      "line 1 column 24: parse: shape: 'f33' is not a dtype; expected one like f32[2,3]\n"
      "line 2 column 7: parse: ops: unknown operator 'expp'; did you mean 'exp'\n"
      "line 4 column 7: parse: add: f32[2] and f32[3] do not broadcast; axis -1 has sizes 2 and 3; they "
      "must be equal or one of them 1\n"
      "line 5 column 26: parse: softmax has no attribute 'colour'; it has axis\n"
      "line 5 column 36: parse: attribute 'axis' is given twice\n"
      "line 6 column 14: parse: 'missing' is not defined before its use\n"
      "line 7 column 20: parse: 'other' is not defined before its use\n"
      "line 8 column 13: parse: expected ',', found ':'\n"
      "line 9 column 15: parse: exp: declared f32[3], its operands give f32[2]\n"
      "line 12 column 16: parse: 'nowhere' is not defined before its use\n"
      "line 13 column 15: parse: 'l' is not defined before its use\n"
      "line 15 column 15: parse: ops: unknown operator 'no_such_thing'\n"
      "line 16 column 16: parse: 'q' is not defined before its use\n");
}

TEST(VerifyText, goes_on_behind_broken_lines) {
  EXPECT_EQ(all_errors("graph(x: f32[2]) { a = (x) b = exp(b) c = sin(x return a }"),
            "line 1 column 24: parse: expected an operator, found '('\n"
            "line 1 column 36: parse: 'b' is not defined before its use\n"
            "line 1 column 49: parse: expected ',', found 'return'\n");
  EXPECT_EQ(all_errors("graph(x: f32[2]) {\n  \"a = exp(x)\n  b = exp(x)\n  return b, c\n"),
            "line 2 column 3: parse: a quoted text must end on its line\n"
            "line 4 column 13: parse: 'c' is not defined before its use\n"
            "line 5 column 1: parse: expected '}', found the end of the text\n");
  EXPECT_EQ(all_errors("graph(x f32[2], y: f32[2]) { return add(x, y) + 1 }"),
            "line 1 column 9: parse: expected ':', found 'f32'\n"
            "line 1 column 47: parse: expected ',', found '+'\n");
  EXPECT_EQ(all_errors("grph(x: f32[2]) { return x }"),
            "line 1 column 1: parse: expected 'graph', found 'grph'\n");
  EXPECT_EQ(all_errors("graph(x: f32[2]) { return x } tail"),
            "line 1 column 31: parse: expected the end of the text, found 'tail'\n");
}

TEST(VerifyText, a_sound_text_has_no_errors) {
  EXPECT_EQ(all_errors("module mir graph(x: f32[2]) { return exp(x) }"), "");
}

TEST(VerifyText, a_hundred_errors_are_enough) {
  std::string text = "graph(x: f32[2]) {\n";
  for (int i = 0; i < 300; ++i) text += cat("  a", i, " = expp(x)\n");
  EXPECT_EQ(verify_text(text + "  return x\n}", ops::table()).size(), 100u);
}

TEST(Text, literals_keep_every_bit) {
  for (const char* text :
       {"f32[2]{1.0, -0.0}", "f64[1]{0.1}", "i64[1]{-9223372036854775808}", "bool[2]{true, false}",
        "c64[1]{(1.0, -2.5)}", "f32[3]{inf, -inf, 1e-45}", "f16[6]{0.5 ...}", "f32[0]{}"}) {
    size_t pos = 0;
    EXPECT_EQ(cat(parse_literal(text, pos)), text);
  }
  // A NaN with a payload has no decimal form: its bytes are kept.
  Literal nan = Literal::zeros(parse_shape("f32[1]"));
  const uint32_t bits = 0x7fc01234;
  std::memcpy(nan.mutable_bytes().data(), &bits, 4);
  size_t pos = 0;
  EXPECT_TRUE(parse_literal(cat(nan), pos) == nan);
}

}  // namespace
}  // namespace rlx::ir
