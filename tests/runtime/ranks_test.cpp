// Values of more axes than kernels know: every device gives what the interpreter gives.
#include <gtest/gtest.h>

#include <algorithm>

#include "rlx/ir/sample.h"
#include "rlx/runtime/compiled_graph.h"
#include "tests/support/compare.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

using test::error_of;
using test::graph;

// Axes of 2, every third of 1, one of 3.
std::vector<int64_t> sizes(int rank) {
  std::vector<int64_t> out;
  for (int i = 0; i < rank; ++i) out.push_back(i == 2 ? 3 : i % 3 == 1 ? 1 : 2);
  return out;
}

std::string numbers(const std::vector<int64_t>& v) {
  std::vector<std::string> out;
  for (const int64_t n : v) out.push_back(cat(n));
  return join(out, ",");
}

std::vector<int64_t> backwards(int rank) {
  std::vector<int64_t> out;
  for (int i = rank; i-- > 0;) out.push_back(i);
  return out;
}

// One operator a graph, so that none hides behind another's result.
std::vector<std::string> results(int rank) {
  std::vector<int64_t> every_other;
  for (int i = 0; i < rank; i += 2) every_other.push_back(i);
  return {"y = exp(x)",
          "y = add(x, b)",
          "y = mul(x, x) z = tanh(y)",
          cat("y = reduce(x, axes=[", numbers(every_other), "])"),
          "y = reduce(x, axes=[0], kind=max)",
          cat("y = transpose(x, perm=[", numbers(backwards(rank)), "])"),
          cat("y = transpose(x, perm=[", numbers(backwards(rank)), "]) z = exp(y)"),
          cat("y = transpose(x, perm=[", numbers(backwards(rank)), "]) z = add(y, c)"),
          "y = softmax(x, axis=2)",
          "y = softmax(x)",
          "y = cumsum(x, axis=3)",
          "y = concat(x, x, axis=2)",
          "y = cast(x, to=bf16)",
          "y = matmul(x, t)",
          "y = flip(x, axes=[0,2])",
          "y = narrow(x, axis=2, start=1, len=2)",
          "y = argmax(x, axis=2)",
          "y = layer_norm(x)",
          cat("y = expand(b, shape=(", numbers(sizes(rank)), "))"),
          "y = compare(x, b, kind=gt) z = where(y, x, b)"};
}

void expect_interpreted(int rank, const std::string& device) {
  const std::string shape = numbers(sizes(rank));
  std::vector<int64_t> turned = sizes(rank), column = sizes(rank);
  std::reverse(turned.begin(), turned.end());
  for (size_t i = 0; i < column.size(); i += 2) column[i] = 1;
  auto right = sizes(rank);  // of a product
  std::swap(right[right.size() - 1], right[right.size() - 2]);
  const NamedLiterals all = {{"x", ir::sample_literal(cat("f32[", shape, "]"), 1)},
                             {"b", ir::sample_literal(cat("f32[", numbers(column), "]"), 2)},
                             {"c", ir::sample_literal(cat("f32[", numbers(turned), "]"), 3)},
                             {"t", ir::sample_literal(cat("f32[", numbers(right), "]"), 4)}};
  for (const std::string& made : results(rank)) {
    const std::string last = made.find("z =") != std::string::npos ? "z" : "y";
    std::string takes;
    for (const auto& [name, value] : all) takes += cat(takes.empty() ? "" : ", ", name, ": ", value.shape());
    const ir::Graph g = graph(cat("graph @g(", takes, ") { ", made, " return ", last, " }"));
    SCOPED_TRACE(cat(rank, " axes on ", device, ": ", made));
    try {
      const NamedLiterals got = compile(g, {}, {.device = device}).run(all), expected = ir::interpret(g, all);
      test::expect_close(got.at(last), expected.at(last), 1e-5);
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

TEST(Ranks, of_nine_and_twelve_axes_run_everywhere) {
  for (const int rank : {9, 12}) {
    for (const std::string device : {"cpu", "ref"}) expect_interpreted(rank, device);
  }
}

TEST(Ranks, of_states_may_be_as_many) {
  CompiledGraph f = compile(graph("graph @g(s: f32[1,2,1,1,1,1,1,1,1,2]) { n = add(s, s) return n }"), {},
                            {.states = {{"s", "n"}}});
  const Literal s = ir::sample_literal("f32[1,2,1,1,1,1,1,1,1,2]", 1);
  f.load_states({{"s", s}});
  f.run(NamedLiterals{});
  EXPECT_EQ(f.save_states().at("s").shape(), s.shape());
}

TEST(Ranks, that_no_view_has_are_told_when_it_is_compiled) {
  EXPECT_EQ(
      error_of([] {
        compile(graph("graph @g(x: f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2]) { y = reduce(x) return y }"));
      }),
      "compile: 'x' is f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2], 17 axes; inputs and outputs have at most 16; reshape "
      "them to fewer");
}

}  // namespace
}  // namespace rlx
