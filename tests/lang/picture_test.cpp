#include "rlx/lang/picture.h"

#include <gtest/gtest.h>

#include "rlx/ir/text.h"
#include "rlx/ops/table.h"

namespace rlx {
namespace {

ir::Graph graph(std::string_view text) { return ir::parse_graph(text, ops::table()); }

size_t count(std::string_view text, std::string_view word) {
  size_t n = 0;
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

const char* const kLoop = R"(graph @loop(c: f32[4], xs: f32[10,4]) {
  r:2 = scan(c, xs, body=graph @step(c: f32[4], x: f32[4]) {
    s = add(c, x)
    return s, s
  }, length=10, carries=1)
  return r, r#1
})";

TEST(ToDot, has_a_node_for_each_node_and_an_edge_for_each_operand) {
  const std::string dot =
      to_dot(graph("graph @\"g \\\"x\\\"\"(x: f32[2], y: f32[2]) { z = add(x, y) return z }"));
  EXPECT_EQ(count(dot, "[shape=box"), 3u) << dot;
  EXPECT_EQ(count(dot, " -> "), 3u);  // two operands, one output
  EXPECT_EQ(dot.rfind("digraph \"g \\\"x\\\"\" {", 0), 0u) << dot;
}

TEST(ToDot, puts_bodies_into_clusters) {
  const std::string dot = to_dot(graph(kLoop));
  EXPECT_EQ(count(dot, "subgraph"), 1u);
  EXPECT_EQ(count(dot, "{"), count(dot, "}"));
}

TEST(ToSvg, draws_every_node_once_bodies_inside) {
  const std::string svg = to_svg(graph(kLoop));
  EXPECT_EQ(count(svg, "<rect"), 3u + 2u + 3u + 2u) << svg;  // nodes and outputs outside and inside
  EXPECT_EQ(count(svg, "<g"), count(svg, "</g>"));
  EXPECT_NE(svg.find("s = add"), std::string::npos);
}

TEST(ToSvg, keeps_boxes_of_a_layer_apart) {
  std::string text = "graph @wide(x: f32[2]) {\n";
  std::string sum = "x";
  for (int i = 0; i < 12; ++i) text += cat("a", i, " = exp(x)\n");
  for (int i = 0; i < 12; ++i) text += cat("b", i, " = add(", sum, ", a", i, ")\n"), sum = cat("b", i);
  const std::string svg = to_svg(graph(text + "return " + sum + "\n}"));
  // translate(x,y) and the width of each box, in order of appearance.
  struct Box {
    double x, y, width;
  };
  std::vector<Box> boxes;
  for (size_t at = svg.find("translate("); at != std::string::npos; at = svg.find("translate(", at + 1)) {
    Box b{};
    ASSERT_EQ(std::sscanf(svg.c_str() + at, "translate(%lf,%lf)", &b.x, &b.y), 2);
    ASSERT_EQ(std::sscanf(svg.c_str() + svg.find("width=", at), "width=\"%lf\"", &b.width), 1);
    boxes.push_back(b);
  }
  ASSERT_EQ(boxes.size(), 26u);
  for (size_t i = 0; i < boxes.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (boxes[i].y != boxes[k].y) continue;
      EXPECT_TRUE(boxes[i].x >= boxes[k].x + boxes[k].width || boxes[k].x >= boxes[i].x + boxes[i].width);
    }
  }
}

TEST(XmlEscaped, leaves_nothing_that_means_something) {
  EXPECT_EQ(xml_escaped("a<b>&\"'\x01"), "a&lt;b&gt;&amp;&quot;&#39; ");
}

}  // namespace
}  // namespace rlx
