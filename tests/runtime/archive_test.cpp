#include "rlx/runtime/archive.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "rlx/backend/cpu/isa.h"
#include "rlx/base/file.h"
#include "rlx/io/safetensors.h"
#include "rlx/ir/sample.h"
#include "rlx/runtime/core.h"
#include "tests/support/graphs.h"
#include "tests/support/scratch.h"

namespace rlx {
namespace {

using test::error_of;
using test::graph;

// A prologue (the sum of weights), a larger constant, a loop, a symbol.
ir::Graph model() {
  return graph(R"(graph @model(x: f32[n,16], param w: f32[16,16], param v: f32[16,16], param b: f32[16]) {
    sum = add(w, v)
    h = matmul(x, sum)
    table = constant(value=f32[16]{0.5 ...})
    a = add(h, b)
    c = mul(a, table)
    y = gelu(c)
    z = softmax(y, axis=1)
    return z
  })");
}
NamedLiterals weights() {
  return {{"w", ir::sample_literal("f32[16,16]", 1)},
          {"v", ir::sample_literal("f32[16,16]", 2)},
          {"b", ir::sample_literal("f32[16]", 3)}};
}

TEST(Archive, gives_the_same_bits_after_loading) {
  const test::Scratch scratch;
  CompiledGraph f = compile(model(), weights());
  const NamedLiterals three = {{"x", ir::sample_literal("f32[3,16]", 5)}},
                      five = {{"x", ir::sample_literal("f32[5,16]", 6)}};
  const NamedLiterals expected = f.run(three);
  save_compiled(f, scratch.path("model.rlxp"));
  CompiledGraph g = load_compiled(scratch.path("model.rlxp"));
  EXPECT_EQ(g.run(three), expected);
  EXPECT_EQ(g.run(five), f.run(five));  // a size that the file has no program for
  EXPECT_EQ(g.inputs().size(), 1u);
  // What was loaded can be saved again.
  save_compiled(g, scratch.path("again.rlxp"));
  EXPECT_EQ(load_compiled(scratch.path("again.rlxp")).run(three), expected);
}

TEST(Archive, keeps_the_plan_of_the_sizes_that_were_run) {
  const test::Scratch scratch;
  CompiledGraph f = compile(model(), weights());
  const NamedLiterals x = {{"x", ir::sample_literal("f32[3,16]", 5)}};
  f.run(x);
  save_compiled(f, scratch.path("model.rlxp"));
  CompiledGraph g = load_compiled(scratch.path("model.rlxp"));
  const std::map<std::string, Shape> sizes = {{"x", parse_shape("f32[3,16]")}};
  ASSERT_EQ(f.plan(sizes).steps.size(), g.plan(sizes).steps.size());
  for (size_t i = 0; i < f.plan(sizes).steps.size(); ++i)
    EXPECT_EQ(f.plan(sizes).steps[i].kernel, g.plan(sizes).steps[i].kernel);
  EXPECT_EQ(f.plan(sizes).arena_bytes, g.plan(sizes).arena_bytes);
}

TEST(Archive, keeps_weights_as_products_packed_them) {
  const test::Scratch scratch;
  const std::string path = scratch.path("model.rlxp");
  CompiledGraph f = compile(model(), weights());
  const NamedLiterals x = {{"x", ir::sample_literal("f32[40,16]", 5)}};
  const NamedLiterals expected = f.run(x);
  save_compiled(f, path);
  const std::string good = read_file(path);
  const auto changed = [&](size_t at, std::string_view to) {
    std::string text = good;
    text.replace(at, to.size(), to);
    write_file(path, std::string_view(text));
    return load_compiled(path).run(x);
  };
  const io::SafetensorsFile file = io::SafetensorsFile::open(path);
  const auto tensor = std::find_if(file.tensors().begin(), file.tensors().end(),
                                   [](const auto& t) { return t.name.starts_with("packed/"); });
  ASSERT_NE(tensor, file.tensors().end());
  // They are what the program reads: other bytes, other numbers.
  const std::string_view bytes(reinterpret_cast<const char*>(tensor->bytes.data()), tensor->bytes.size());
  const size_t at = good.rfind(bytes);
  ASSERT_NE(at, std::string::npos);
  EXPECT_NE(changed(at, std::string(bytes.size(), '\0')), expected);
  // Where the name of the form is another, the weight is packed again.
  const size_t name = good.find("gemm 1 ");
  ASSERT_NE(name, std::string::npos);
  EXPECT_EQ(changed(name, "gemm 9 "), expected);
  EXPECT_EQ(changed(0, good), expected);
}

// Convolutions, experts and codes: the file holds what the kernels read, and what was loaded reads that.
TEST(Archive, keeps_weights_as_other_kernels_packed_them) {
  const char* const programs[] = {
      "(x: f32[1,8,12,12], param w: f32[16,8,3,3]) { return conv2d(x, w, padding=[1,1]) }",
      "(x: f32[1,8,12,12], param w: f32[16,8,5,5], param b: f32[1,16,1,1]) {"
      " return relu(add(conv2d(x, w, stride=[2,2]), b)) }",
      "(x: f32[9,24], param w: f32[3,24,40], e: i64[9]) { return grouped_matmul(x, w, e) }",
      "(x: i8[9,24], param w: i8[24,40], param b: i32[40]) { return q_matmul(x, w, b, x_zp=3, mult=0.2) }",
      "(x: i8[9,24], param w: i8[24,40], param b: i32[40]) { return q_matmul(x, w, b, w_zp=-2, mult=0.2) }",
      "(x: i8[1,8,9,9], param w: i8[16,8,3,3], param b: i32[16]) {"
      " return q_conv2d(x, w, b, padding=[1,1], w_zp=-2, mult=0.002) }"};
  for (const std::string text : programs) {
    const test::Scratch scratch;
    const std::string path = scratch.path("g.rlxp");
    const ir::Graph g = graph("graph @g" + text);
    NamedLiterals weights, inputs;
    for (const ir::NodeId id : g.leaves()) {
      const ir::Node& n = g.node(id);
      const std::string below = n.name == "e" ? " <3" : "";
      (n.is<ir::Param>() ? weights : inputs)
          .emplace(n.name, ir::sample_literal(cat(n.shapes[0]) + below, weights.size() + inputs.size()));
    }
    CompiledGraph f = compile(g, weights);
    const NamedLiterals expected = f.run(inputs);
    save_compiled(f, path);
    EXPECT_EQ(load_compiled(path).run(inputs), expected) << text;
    const io::SafetensorsFile file = io::SafetensorsFile::open(path);
    const auto tensor = std::find_if(file.tensors().begin(), file.tensors().end(),
                                     [](const auto& t) { return t.name.starts_with("packed/"); });
    ASSERT_NE(tensor, file.tensors().end()) << text;
    std::string bytes = read_file(path);
    const std::string_view packed(reinterpret_cast<const char*>(tensor->bytes.data()), tensor->bytes.size());
    const size_t at = bytes.rfind(packed);
    ASSERT_NE(at, std::string::npos);
    bytes.replace(at, packed.size(), std::string(packed.size(), '\0'));
    write_file(path, std::string_view(bytes));
    EXPECT_NE(load_compiled(path).run(inputs), expected) << text;
  }
}

TEST(Archive, packs_what_no_run_has_packed_when_all_sizes_are_known) {
  const test::Scratch scratch;
  const ir::Graph g = graph("graph @g(x: f32[8,32], param w: f32[32,48]) { return matmul(x, w) }");
  CompiledGraph f = compile(g, {{"w", ir::sample_literal("f32[32,48]", 1)}});
  save_compiled(f, scratch.path("g.rlxp"));
  const std::string text = read_file(scratch.path("g.rlxp"));
  EXPECT_NE(text.find("packed/"), std::string::npos);
  // Saved again before anything ran: the form is still there.
  CompiledGraph again = load_compiled(scratch.path("g.rlxp"));
  save_compiled(again, scratch.path("again.rlxp"));
  EXPECT_EQ(read_file(scratch.path("again.rlxp")).size(), text.size());
  const NamedLiterals x = {{"x", ir::sample_literal("f32[8,32]", 5)}};
  EXPECT_EQ(load_compiled(scratch.path("again.rlxp")).run(x), f.run(x));
}

TEST(Archive, keeps_states) {
  const test::Scratch scratch;
  const ir::Graph g = graph("graph @count(x: f32[2], s: f32[2]) { n = add(s, x) y = mul(n, x) return y, n }");
  CompiledGraph f = compile(g, {}, {.states = {{"s", "n"}}});
  save_compiled(f, scratch.path("state.rlxp"));
  CompiledGraph loaded = load_compiled(scratch.path("state.rlxp"));
  const NamedLiterals x = {{"x", Literal::of<float>({2}, {1, 2})}};
  loaded.run(x);
  EXPECT_EQ(loaded.run(x).at("y"), Literal::of<float>({2}, {2, 8}));
}

TEST(Archive, keeps_states_of_open_sizes) {
  const test::Scratch scratch;
  const ir::Graph g = graph("graph @count(x: f32[n], s: f32[n]) { t = add(s, x) y = mul(t, x) return y, t }");
  CompiledGraph f = compile(g, {}, {.states = {{"s", "t"}}});
  const auto x = [](int64_t n) { return NamedLiterals{{"x", Literal::full(Shape(DType::f32, {n}), 2)}}; };
  f.run(x(2));
  save_compiled(f, scratch.path("state.rlxp"));
  for (const int64_t n : {2, 3}) {
    CompiledGraph loaded = load_compiled(scratch.path("state.rlxp"));
    loaded.run(x(n));
    EXPECT_EQ(loaded.run(x(n)).at("y"), Literal::full(Shape(DType::f32, {n}), 8));
  }
}

// Sizes that were not run before are planned as the compiled program would have.
TEST(Archive, keeps_how_further_sizes_are_planned) {
  const test::Scratch scratch;
  const ir::Graph g = graph("graph @g(x: f32[n,4]) { a = exp(x) b = neg(a) y = sin(b) return y }");
  CompiledGraph f = compile(g, {}, {.optimise = false, .batch_independent = true, .plans_kept = 3});
  save_compiled(f, scratch.path("plain.rlxp"));
  CompiledGraph loaded = load_compiled(scratch.path("plain.rlxp"));
  const std::map<std::string, Shape> rows = {{"x", parse_shape("f32[5,4]")}};
  EXPECT_EQ(f.plan(rows).steps.size(), 3u);
  EXPECT_EQ(loaded.plan(rows).steps.size(), 3u);
  EXPECT_EQ(loaded.core().options().plans_kept, 3);
  EXPECT_TRUE(loaded.core().options().batch_independent);
}

// 10.1, 14: a mismatched device, option or version is rejected, with the reason.
TEST(Archive, refuses_what_does_not_fit) {
  const test::Scratch scratch;
  const std::string path = scratch.path("model.rlxp");
  CompiledGraph f = compile(model(), weights());
  save_compiled(f, path);
  const std::string good = read_file(path);
  const auto changed = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    write_file(path, std::string_view(text));
    return error_of([&] { load_compiled(path); });
  };
  const std::string isa(cpu::isa_name(cpu::current_isa()));
  EXPECT_NE(changed("cpu " + isa, "cpu " + std::string(isa.size(), 'z')).find("it was compiled for"),
            std::string::npos);
  EXPECT_NE(changed("rlx 0.", "rlx 9.").find("it was compiled for rlx 9."), std::string::npos);
  write_file(path, std::string_view(good).substr(0, good.size() / 2));
  EXPECT_NE(error_of([&] { load_compiled(path); }), "no error");
}

// A file that was tampered with is refused by what it says, not by a crash of the run.
TEST(Archive, refuses_parts_that_do_not_belong_together) {
  const test::Scratch scratch;
  const ir::Graph g =
      graph("graph @g(x: f32[n,4], param w: f32[4,4]) { h = matmul(x, w) y = tanh(h) return y }");
  CompiledGraph f = compile(g, {{"w", ir::sample_literal("f32[4,4]", 1)}}, {.fuse = false});
  const NamedLiterals x = {{"x", ir::sample_literal("f32[3,4]", 5)}};
  f.run(x);
  const std::string path = scratch.path("g.rlxp");
  save_compiled(f, path);
  const io::SafetensorsFile good = io::SafetensorsFile::open(path);
  const auto changed = [&](const std::string& key, std::string_view from, std::string_view to) {
    io::Metadata metadata = good.metadata();
    std::string& text =
        std::ranges::find_if(metadata, [&](const auto& entry) { return entry.first == key; })->second;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from << " in " << text;
    if (at != std::string::npos) text.replace(at, from.size(), to);
    io::write_safetensors(scratch.path("bad.rlxp"), good.tensors(), metadata);
    return error_of([&] { load_compiled(scratch.path("bad.rlxp")).run(x); });
  };
  constexpr std::string_view kNoFit = "does not fit its graph";
  EXPECT_NE(
      changed("rlx.programs", "x: f32[3,4], param w: f32[4,4]", "x: f32[3,4], z: f32[4], param w: f32[4,4]")
          .find(kNoFit),
      std::string::npos);
  EXPECT_NE(changed("rlx.programs", "x: f32[3,4]", "x: f32[7,4]"), "no error");
  EXPECT_NE(changed("rlx.programs", "param w", "w").find(kNoFit), std::string::npos);
  EXPECT_NE(changed("rlx.programs", "return y", "return y, h").find(kNoFit), std::string::npos);
  EXPECT_NE(changed("rlx.programs", "return y", "return h=y").find(kNoFit), std::string::npos);
  EXPECT_NE(changed("rlx.programs", "[\"f32[3,4]\"", "[\"f32[3,4]\",\"f32[1]\"").find(kNoFit),
            std::string::npos);
  EXPECT_NE(changed("rlx.programs", "[\"f32[3,4]\"", "[\"f32[3,5]\"").find(kNoFit), std::string::npos);
  EXPECT_NE(changed("rlx.text", "param w: f32[4,4]", "param w: f32[4,5]"), "no error");
  EXPECT_NE(changed("rlx.options", "\"states\":[]", "\"states\":[[\"x\"]]"), "no error");
  EXPECT_NE(changed("rlx.options", "\"plans_kept\":16", "\"plans_kept\":0"), "no error");
  EXPECT_NE(changed("rlx.packed", "[", "[{\"param\":\"w\",\"form\":\"f\",\"tensor\":\"none\"},"), "no error");
}

TEST(Archive, wants_all_weights_and_lets_none_be_set_afterwards) {
  const test::Scratch scratch;
  CompiledGraph bare = compile(model());
  EXPECT_NE(error_of([&] { save_compiled(bare, scratch.path("x.rlxp")); }).find("no value for param"),
            std::string::npos);
  CompiledGraph f = compile(model(), weights());
  save_compiled(f, scratch.path("model.rlxp"));
  CompiledGraph g = load_compiled(scratch.path("model.rlxp"));
  EXPECT_NE(error_of([&] { g.set_params(weights()); }).find("was loaded compiled"), std::string::npos);
}

TEST(AotCache, compiles_once_and_loads_afterwards) {
  const test::Scratch scratch;
  const NamedLiterals x = {{"x", ir::sample_literal("f32[3,16]", 5)}};
  NamedLiterals expected;
  {
    AotCache cache(scratch.path("aot"));
    EXPECT_FALSE(cache.contains(model(), weights()));
    expected = cache.compile(model(), weights()).run(x);
    EXPECT_EQ(cache.compiled(), 1u);
    EXPECT_TRUE(cache.contains(model(), weights()));
  }
  AotCache cache(scratch.path("aot"));
  EXPECT_EQ(cache.compile(model(), weights()).run(x), expected);
  EXPECT_EQ(cache.loaded(), 1u);
  EXPECT_EQ(cache.compiled(), 0u);
  // Another option, other weights: other files.
  EXPECT_FALSE(cache.contains(model(), weights(), {.fuse = false}));
  NamedLiterals other = weights();
  other.at("b") = ir::sample_literal("f32[16]", 9);
  EXPECT_FALSE(cache.contains(model(), other));
  // A damaged file is made anew.
  write_file(cache.path_of(model(), weights()), std::string_view("nonsense"));
  EXPECT_EQ(cache.compile(model(), weights()).run(x), expected);
  EXPECT_EQ(cache.compiled(), 1u);
}

}  // namespace
}  // namespace rlx
