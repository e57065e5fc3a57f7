#include "rlx/ir/json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "rlx/ir/leaves.h"
#include "rlx/lang/trace.h"
#include "tests/support/errors.h"

namespace rlx {
namespace {

std::string document(const std::string& nodes, const std::string& outputs = "[]") {
  return R"({"format": "rlx.graph", "version": 1, "graph": {"name": "g", "nodes": [)" + nodes +
         R"(], "outputs": )" + outputs + "}}";
}

std::string refusal(const std::string& text) {
  return test::message_of([&] { Graph::from_json(text); });
}

const std::string kX = R"({"id": 0, "op": "input", "attrs": {"name": "x", "shape": "f32[2,3]"}})";

TEST(Json, round_trips_symbols_names_ids_and_several_outputs) {
  const Graph g = Graph::parse(R"(graph @toy(x: f32[batch,2*seq+1], param "a b": f32[]) {
    %7 = mul(x, "a b")
    named = exp(%7)
    return first=named, %7
  })");
  const Graph back = Graph::from_json(g.to_json());
  EXPECT_TRUE(back == g);
  EXPECT_EQ(back.to_text(), g.to_text());
}

TEST(Json, keeps_reals_that_json_has_no_number_for) {
  Graph g("g");
  for (const double v : {double(INFINITY), -double(INFINITY), double(NAN), -0.0, 0.1, 1e300})
    ir::full(g, Shape(DType::f64, {}), v);
  const std::string text = g.to_json();
  EXPECT_NE(text.find(R"("value":"-inf")"), std::string::npos) << text;
  EXPECT_TRUE(Graph::from_json(text) == g);
}

TEST(Json, keeps_the_bits_of_constants) {
  Graph g("g");
  g.constant(Literal::of<float>({3}, {NAN, -0.0f, INFINITY}));
  EXPECT_TRUE(Graph::from_json(g.to_json(2)) == g);
}

TEST(Json, says_where_a_document_is_wrong) {
  EXPECT_TRUE(refusal("{").starts_with("json: JSON is malformed at line 1, column 2: ")) << refusal("{");
  EXPECT_EQ(refusal("[]"), "json is an array; an object expected");
  EXPECT_EQ(refusal(R"({"format": "x", "version": 1, "graph": {}})"), "json: format: 'x' is not 'rlx.graph'");
  EXPECT_EQ(refusal(R"({"format": "rlx.graph", "version": 9, "graph": {}})"),
            "json: version: version 9 is unknown; this program reads 1");
  EXPECT_EQ(refusal(R"({"format": "rlx.graph", "version": 1})"), "json has no 'graph'");
  EXPECT_EQ(refusal(R"({"format": "rlx.graph", "format": "rlx.graph"})"),
            "json: the key 'format' occurs twice in one object, which ends at line 1, column 47");
  EXPECT_EQ(refusal(document(R"({"id": 0, "op": "inptu"})")),
            "json: graph.nodes[0].op: ops: unknown operator 'inptu'; did you mean 'input'");
  EXPECT_EQ(refusal(document(R"({"id": 0, "op": "exp", "inputs": [[3, 0]]})")),
            "json: graph.nodes[0].inputs[0]: node 3 is not defined before its use");
  EXPECT_EQ(refusal(document(kX + R"(, {"id": 0, "op": "exp", "inputs": [[0, 0]]})")),
            "json: graph.nodes[1].id: there are two nodes 0");
  EXPECT_EQ(refusal(document(kX + R"(, {"id": 1, "op": "exp", "inputs": [[0, 1]]})")),
            "json: graph.nodes[1].inputs[0]: node 0 has 1 results");
  EXPECT_EQ(refusal(document(kX + R"(, {"id": 1, "op": "exp", "inputs": [[0, 0]], "colour": 1})")),
            "json: graph.nodes[1].colour: unknown key; known: id, op, inputs, attrs, types, name, "
            "origin");
  EXPECT_EQ(
      refusal(document(kX + R"(, {"id": 1, "op": "cumsum", "inputs": [[0, 0]], "attrs": {"axis": 5}})")),
      "json: graph.nodes[1]: cumsum: axis 5 is out of range for x: f32[2,3]");
  EXPECT_EQ(refusal(document(kX + R"(, {"id": 1, "op": "exp", "inputs": [[0, 0]], "types": ["f32[2]"]})")),
            "json: graph.nodes[1].types: exp: declared f32[2], its operands give f32[2,3]");
  EXPECT_EQ(
      refusal(document(kX + R"(, {"id": 1, "op": "reduce", "inputs": [[0, 0]], "attrs": {"kind": "sun"}})")),
      "json: graph.nodes[1].attrs.kind: 'sun' is not a choice; known: sum, mean, max, min, prod");
  EXPECT_EQ(refusal(document(R"({"id": 4294967295, "op": "full"})")),
            "json: graph.nodes[0].id: 4294967295 is out of range");
}

TEST(Json, integers_beyond_an_attribute_are_refused) {
  EXPECT_EQ(refusal(document(kX + R"(, {"id": 1, "op": "softmax", "inputs": [[0, 0]],
                                        "attrs": {"axis": 4294967296}})")),
            "json: graph.nodes[1].attrs.axis: 4294967296 is out of range; -2147483648 to 2147483647");
}

// Ids are labels: a graph of which most was erased reads back, whatever its ids.
TEST(Json, ids_may_be_far_apart) {
  const Graph g = Graph::from_json(
      document(R"({"id": 4000000000, "op": "input", "attrs": {"name": "x", "shape": "f32[2,3]"}},
                  {"id": 7, "op": "exp", "inputs": [[4000000000, 0]]})",
               R"([{"value": [7, 0]}])"));
  EXPECT_EQ(g.outputs()[0].node, 7u);
  EXPECT_TRUE(g.verify().empty());
}

// Bodies in bodies, as deep as the text form goes.
Graph nested(int depth) {
  Graph g("body");
  const Value x = g.input("x", Shape(DType::f32, {}));
  g.set_outputs({depth == 0 ? g.exp(x) : g.scan(x, nested(depth - 1), 1)});
  return g;
}

TEST(Json, nests_as_deep_as_the_text) {
  const Graph g = nested(48);
  EXPECT_TRUE(Graph::parse(g.to_text()) == g);
  EXPECT_TRUE(Graph::from_json(g.to_json()) == g);
  const Graph deeper = nested(49);
  EXPECT_NE(test::message_of([&] { Graph::parse(deeper.to_text()); }).find("bodies nest deeper than 48"),
            std::string::npos);
  EXPECT_NE(refusal(deeper.to_json()).find("bodies nest deeper than 48"), std::string::npos);
}

// A long chain: reading and writing take time in proportion to the nodes.
TEST(Json, time_follows_the_size) {
  const auto chain = [](int nodes) {
    Graph g("chain");
    Value v = g.input("x", Shape(DType::f32, {2}));
    for (int i = 0; i < nodes; ++i) v = g.neg(v);
    g.set_outputs({v});
    return g;
  };
  const auto seconds = [](const Graph& g) {
    const std::clock_t start = std::clock();  // processor time: others may use the machine
    EXPECT_EQ(Graph::from_json(g.to_json()).len(), g.len());
    return double(std::clock() - start) / CLOCKS_PER_SEC;
  };
  const double small = std::min(seconds(chain(5000)), seconds(chain(5000))), large = seconds(chain(80000));
  EXPECT_LT(large, 16 * 4 * small + 0.1);  // quadratic would be 256 times as long
}

// A traced step inside a loop, with labels and the notes of a gradient.
Graph with_origins() {
  Graph g = trace("steps", [](Tracer& t) {
    const Tensor x = t.input("x", {2});
    const ir::LabelScope scope(t.graph(), "layer3");
    return Tensors{(x * x).relu()};
  });
  return g;
}

std::string origin_texts(const ir::Graph& g) {
  std::string out;
  for (const ir::Node* n : g.nodes())
    out += cat(n->op->name, ": ", n->origin ? n->origin->text() : "none", "\n");
  return out;
}

TEST(Json, keeps_where_nodes_came_from) {
  const Graph g = with_origins();
  const std::string text = g.to_json(), before = origin_texts(g);
  EXPECT_NE(before.find("json_test.cpp:"), std::string::npos) << before;
  EXPECT_NE(before.find("layer3"), std::string::npos) << before;
  EXPECT_EQ(origin_texts(Graph::from_json(text)), before);
  EXPECT_EQ(Graph::from_json(text).to_json(), text);
  // The file by its name alone: the folders of the machine that built the graph do not travel.
  EXPECT_NE(text.find(R"("file":"json_test.cpp")"), std::string::npos) << text;
}

TEST(Json, refuses_origins_that_are_not_there) {
  EXPECT_EQ(
      refusal(document(R"({"id": 0, "op": "input", "attrs": {"name": "x", "shape": "f32[]"}, "origin": 2})")),
      "json: graph.nodes[0].origin: there is no origin 2; the document has 0");
}

TEST(Json, refuses_a_name_that_is_not_utf8) {
  Graph g("g");
  g.input("\xff", Shape(DType::f32, {}));
  EXPECT_TRUE(
      test::message_of([&] { g.to_json(); }).starts_with("to_json: graph 'g' has a name that is not UTF-8"));
}

}  // namespace
}  // namespace rlx
