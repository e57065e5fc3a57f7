#include "rlx/lang/picture.h"

#include <gtest/gtest.h>

#include "rlx/ir/text.h"
#include "rlx/lang/trace.h"
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

// Two layers with a part inside, weights made outside of them, and a label that is left and come back to.
Graph labelled(bool returns) {
  return trace("labelled", [&](Tracer& t) {
    Tensor x = t.input("x", {2, 4});
    const Tensor w0 = t.param("w0", {4, 4}), w1 = t.param("w1", {4, 4});
    const Tensor first = x;
    for (int i = 0; i < 2; ++i) {
      const ir::LabelScope layer(t.graph(), cat("layer", i));
      const Tensor w = i == 0 ? w0 : w1;
      Tensor y = x.matmul(w);
      {
        const ir::LabelScope part(t.graph(), "part");
        y = (y + 1).tanh();
      }
      x = x + y;
    }
    if (!returns) return x;
    const ir::LabelScope layer(t.graph(), "layer0");
    return x * first.exp();
  });
}

TEST(ToDot, puts_labels_into_clusters) {
  const std::string dot = to_dot(labelled(false));
  EXPECT_EQ(count(dot, "subgraph"), 4u) << dot;
  EXPECT_EQ(count(dot, "label=\"part\""), 2u);
  const size_t layer1 = dot.find("label=\"layer1\"");
  EXPECT_GT(dot.find("param w1"), layer1);  // with what uses it
  EXPECT_LT(dot.find("param w0"), layer1);
  EXPECT_GT(dot.find(" -> "), dot.rfind("subgraph"));  // an edge in a cluster would bring its end along
  EXPECT_EQ(count(dot, "{"), count(dot, "}"));
}

TEST(ToSvg, frames_labels_and_says_what_goes_in_and_out) {
  const std::string svg = to_svg(labelled(false));
  EXPECT_EQ(count(svg, "class=\"g\""), 4u) << svg;
  EXPECT_EQ(count(svg, ">param w1<"), 1u);
  EXPECT_EQ(count(svg, ">input x<"), 1u);
  EXPECT_GE(count(svg, "<title>f32[2,4]</title></path>"), 4u);
}

TEST(ToSvg, dissolves_a_label_that_is_come_back_to) {
  const std::string svg = to_svg(labelled(true));
  EXPECT_EQ(count(svg, "class=\"g\""), 3u) << svg;  // layer1, and both parts
  EXPECT_EQ(count(svg, " = matmul<"), 2u);
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
