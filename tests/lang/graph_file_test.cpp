#include "rlx/lang/graph_file.h"

#include <gtest/gtest.h>

#include "rlx/base/file.h"
#include "rlx/io/safetensors.h"
#include "rlx/ir/text.h"
#include "rlx/lang/trace.h"
#include "tests/support/compare.h"
#include "tests/support/errors.h"
#include "tests/support/scratch.h"

namespace rlx {
namespace {

Graph with_constants() {
  return trace("saved", [](Tracer& t) {
    const Tensor x = t.input_dyn("x", {Dim::batch(), 128}), w = t.param("w", {128});
    std::vector<float> table(128);
    for (size_t i = 0; i < table.size(); ++i) table[i] = float(i) / 3;
    const Tensor big = t.constant(Literal::of<float>({128}, table));
    const Tensor small = t.constant(Literal::of<float>({2}, {1.5f, NAN}));
    return Tensors{x * w + big, small};
  });
}

TEST(GraphFile, loads_to_an_equal_graph) {
  const test::Scratch scratch;
  const Graph g = with_constants();
  g.save(scratch.path("g.rlx"));
  const Graph back = Graph::load(scratch.path("g.rlx"));
  EXPECT_TRUE(back == g);
  EXPECT_EQ(back.to_text(), g.to_text());
  EXPECT_TRUE(back.hash() == g.hash());
}

TEST(GraphFile, is_told_by_its_contents) {
  const test::Scratch scratch;
  const auto is_graph = [&](std::string_view text) {
    write_file(scratch.path("f"), text);
    return is_graph_file(io::Input::open(scratch.path("f")));
  };
  const Graph g = with_constants();
  EXPECT_TRUE(is_graph(g.to_text()));
  EXPECT_TRUE(is_graph("\n // a graph\n" + g.to_text()));
  EXPECT_TRUE(is_graph("module mir\n" + g.to_text()));
  EXPECT_TRUE(is_graph(g.to_json()));
  EXPECT_FALSE(is_graph(""));
  EXPECT_FALSE(is_graph("{}"));
  EXPECT_FALSE(is_graph("GGUF"));
  EXPECT_FALSE(is_graph(std::string(100, '\0')));
  EXPECT_FALSE(is_graph_file(io::Input::open(scratch.path("."))));

  g.save(scratch.path("g"));
  EXPECT_TRUE(is_graph_file(io::Input::open(scratch.path("g"))));
  // Another file of ours, as a training writes it.
  io::write_safetensors(scratch.path("c"), {}, {{"rlx.format", "checkpoint"}});
  EXPECT_FALSE(is_graph_file(io::Input::open(scratch.path("c"))));
}

TEST(GraphFile, a_model_says_what_it_is) {
  const test::Scratch scratch;
  write_file(scratch.path("m"), std::string_view("GGUF\3\0\0\0", 8));
  const std::string told =
      scratch.path("m") +
      ": this is a gguf file, which holds no graph; a .rlx text, JSON or saved graph is expected";
  EXPECT_EQ(test::message_of([&] { read_graph(scratch.path("m")); }), told);
  EXPECT_EQ(test::message_of([&] { read_module(scratch.path("m")); }), told);
}

TEST(GraphFile, large_constants_are_tensors_and_small_ones_text) {
  const test::Scratch scratch;
  with_constants().save(scratch.path("g.rlx"));
  const auto file = io::SafetensorsFile::open(scratch.path("g.rlx"));
  ASSERT_EQ(file.tensors().size(), 1u);
  EXPECT_EQ(file.tensors()[0].name, "constant/0");
  EXPECT_NE(file.find_metadata("rlx.text")->find("f32[128]@\"constant/0\""), std::string::npos);
}

TEST(GraphFile, carries_weights_and_checks_them) {
  const test::Scratch scratch;
  const Graph g = with_constants();
  const Literal w = Literal::full(Shape(DType::f32, {128}), 0.5);
  g.save(scratch.path("g.rlx"), {{"w", w}});
  const GraphFile back = load_graph(scratch.path("g.rlx"));
  ASSERT_EQ(back.weights.size(), 1u);
  EXPECT_TRUE(back.weights.at("w") == w);
  EXPECT_EQ(test::message_of([&] { g.save(scratch.path("h.rlx"), {{"x", w}}); }),
            "save: 'x' is not a param of graph 'saved'");
  EXPECT_EQ(test::message_of([&] { g.save(scratch.path("h.rlx"), {{"w", Literal()}}); }),
            "save: param 'w' is f32[128], the weight is f32[]");
}

TEST(GraphFile, keeps_where_nodes_came_from_in_bodies_too) {
  const test::Scratch scratch;
  const Graph loop = trace("loop", [](Tracer& t) { return Tensors{t.input("c", {2}).relu()}; });
  Graph g("main");
  const Value x = g.input("x", Shape(DType::f32, {2}));
  Value y;
  {
    const ir::LabelScope scope(g, "decoder");
    y = g.scan(x, loop, 3);
  }
  // Made last and yet a leaf: the text has it in front.
  const Value late = g.input("late", Shape(DType::f32, {2}));
  g.set_outputs({g.add(y, late)});
  const auto texts = [](const ir::Graph& graph) {
    std::map<std::string, std::string> out;
    for (const ir::Node* n : graph.nodes()) {
      out[cat(n->op->name, " ", n->name)] = n->origin ? n->origin->text() : "none";
      for (const ir::FieldInfo& f : n->op->fields) {
        const ir::AttrValue v = f.get(n->attrs.get());
        const auto* body = std::get_if<ir::GraphRef>(&v);
        if (body == nullptr || *body == nullptr) continue;
        for (const ir::Node* b : (*body)->nodes())
          out[cat("body ", b->op->name)] = b->origin ? b->origin->text() : "none";
      }
    }
    return out;
  };
  const auto before = texts(g);
  EXPECT_TRUE(before.at("scan ").starts_with("graph_file_test.cpp:")) << before.at("scan ");
  EXPECT_NE(before.at("body relu"), "none");
  g.save(scratch.path("g.rlx"));
  EXPECT_EQ(texts(Graph::load(scratch.path("g.rlx"))), before);
  EXPECT_EQ(texts(Graph::from_json(g.to_json())), before);
}

TEST(GraphFile, origins_must_fit_the_nodes) {
  const test::Scratch scratch;
  const auto write = [&](const std::string& origins) {
    io::write_safetensors(scratch.path("f"), {},
                          {{"rlx.format", "graph"},
                           {"rlx.version", "1"},
                           {"rlx.stage", "mir"},
                           {"rlx.text", "graph @g(x: f32[]) {\n  return x\n}\n"},
                           {"rlx.origins", origins}});
    return test::message_of([&] { load_graph(scratch.path("f")); });
  };
  EXPECT_EQ(write(R"({"origins": [{"label": "a"}], "nodes": [0]})"), "no error");
  EXPECT_EQ(write(R"({"origins": [{"label": "a"}], "nodes": [0, 0]})"), "parse: 2 origins for 1 nodes");
  EXPECT_EQ(write(R"({"origins": [], "nodes": [0]})"),
            "origins: nodes[0]: there is no origin 0; the document has 0");
  EXPECT_EQ(write(R"({"origins": [{"file": "a", "line": -1}], "nodes": []})"),
            "origins: origins[0].line: -1 is not a line number");
}

TEST(GraphFile, refuses_other_versions_and_other_files) {
  const test::Scratch scratch;
  const auto write = [&](const io::Metadata& metadata) {
    io::write_safetensors(scratch.path("f"), {}, metadata);
    return test::message_of([&] { load_graph(scratch.path("f")); });
  };
  const std::string text = "graph @g() {\n  return\n}\n", at = scratch.path("f");
  EXPECT_EQ(write({}), at + ": it has no 'rlx.format' in its metadata; not a saved graph");
  EXPECT_EQ(write({{"rlx.format", "graph"}, {"rlx.version", "7"}, {"rlx.stage", "mir"}, {"rlx.text", text}}),
            at + ": version 7 is unknown; this program reads 1");
  EXPECT_EQ(write({{"rlx.format", "graph"}, {"rlx.version", "1"}, {"rlx.stage", "xir"}, {"rlx.text", text}}),
            at + ": stage 'xir' is unknown; known: hir direct, hir fusable, mir, lir");
  EXPECT_EQ(write({{"rlx.format", "graph"}, {"rlx.version", "1"}, {"rlx.stage", "mir"}, {"rlx.text", text}}),
            "no error");
}

TEST(GraphFile, a_missing_or_different_constant_is_an_error) {
  const test::Scratch scratch;
  const std::string text = "graph @g() {\n  c = constant(value=f32[3]@\"constant/0\")\n  return c\n}\n";
  const io::Metadata metadata = {
      {"rlx.format", "graph"}, {"rlx.version", "1"}, {"rlx.stage", "mir"}, {"rlx.text", text}};
  io::write_safetensors(scratch.path("f"), {}, metadata);
  EXPECT_EQ(test::message_of([&] { load_graph(scratch.path("f")); }),
            "parse: safetensors '" + scratch.path("f") + "': has no tensor 'constant/0'");
  const std::vector<float> two(2);
  const io::TensorView tensor{
      "constant/0", io::StorageType::of(DType::f32), {2}, std::as_bytes(std::span(two)), {}};
  io::write_safetensors(scratch.path("f"), {&tensor, 1}, metadata);
  EXPECT_EQ(test::message_of([&] { load_graph(scratch.path("f")); }),
            "parse: 'constant/0' is f32[2], not f32[3]");
}

TEST(GraphFile, a_text_with_kept_constants_needs_its_file) {
  EXPECT_EQ(test::message_of([] {
              Graph::parse("graph() {\n  c = constant(value=f32[3]@\"constant/0\")\n  return c\n}");
            }),
            "parse: 'constant/0' is kept outside of this text; load its file");
}

TEST(GraphFile, reads_text_json_and_saved_files_alike) {
  const test::Scratch scratch;
  const Graph g = with_constants();
  write_file(scratch.path("a.rlx"), g.to_text());
  write_file(scratch.path("b.json"), g.to_json(2));
  g.save(scratch.path("c.rlx"));
  for (const char* name : {"a.rlx", "b.json", "c.rlx"})
    EXPECT_TRUE(read_graph(scratch.path(name)).graph == g) << name;
}

// Files of every version of the format stay readable: this one was written by version 1.
TEST(GraphFile, reads_the_files_of_version_1) {
  const GraphFile file = load_graph("tests/lang/data/graph_v1.safetensors");
  EXPECT_EQ(file.graph.name(), "mlp");
  EXPECT_EQ(file.stage, "mir");
  ASSERT_EQ(file.weights.size(), 1u);
  NamedLiterals in = file.weights;
  in.emplace("x", Literal::full(Shape(DType::f32, {1, 4}), 1));
  const auto out = ir::interpret(file.graph, in);
  // w[i][j] = (i - j) / 2, table[j] = j / 4: relu(sum over i of w[i][j] + table[j]), j < 80.
  const Literal& y = out.at("y");
  ASSERT_EQ(cat(y.shape()), "f32[1,80]");
  for (int64_t j = 0; j < 80; ++j)
    EXPECT_EQ(y.real_at(j), std::max(0.0, 3.0 - 2.0 * double(j) + double(j) / 4));
}

}  // namespace
}  // namespace rlx
