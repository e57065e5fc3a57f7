#include "rlx/ir/text.h"

#include <gtest/gtest.h>

#include <cstring>

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
  EXPECT_NE(parse_error("graph(x: f32[2]) { %4000000000 = exp(x) return x }").find("too large"),
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
