// Every operator x every sample with symbolic sizes, one symbol an axis: values, derivatives and batches are
// those of the run with numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "rlx/ops/all.h"
#include "rlx/transform/transform.h"
#include "tests/support/batches.h"
#include "tests/support/compare.h"
#include "tests/support/derivatives.h"
#include "tests/support/samples.h"

namespace rlx::ir {
namespace {

// Axes that an operator wants as numbers, as "operand axis", and why: words that each refusal must have some of.
struct StaticAxes {
  std::set<std::string> axes;
  std::vector<std::string> why;
};
const std::map<std::string, StaticAxes, std::less<>>& static_axes() {
  // An attribute that was left out and that a symbol does not tell.
  const std::string give = "; give";
  // Columns that are heads of unknown size next to each other.
  const std::string heads = "does not divide into";
  // Bytes of packed weights and the widths their blocks belong to.
  const std::vector<std::string> blocks{"the blocks of the weights need its size", "the packed codes need it",
                                        "are no whole number of", "slabs of one size"};
  // Tables whose columns may be one of two.
  const std::string either = "or n_rot/2";
  static const std::map<std::string, StaticAxes, std::less<>> table = {
      {"attention", {{"k 1", "k 2", "q 1", "q 2", "q 3", "v 1", "v 2"}, {heads, give}}},
      {"attention_backward", {{"k 2", "q 1", "q 2", "q 3", "v 2"}, {heads, give}}},
      {"conv1d", {{"w 2"}, {give}}},
      {"conv2d", {{"w 2", "w 3"}, {give}}},
      {"conv2d_backward_input", {{"w 2", "w 3"}, {give}}},
      {"conv3d", {{"w 2", "w 3", "w 4"}, {give}}},
      {"conv_transpose1d", {{"w 2"}, {give}}},
      {"conv_transpose2d", {{"w 2", "w 3"}, {give}}},
      {"conv_transpose3d", {{"w 2", "w 3", "w 4"}, {give}}},
      {"dequant_grouped_matmul", {{"packed 0", "packed 1", "x 1"}, blocks}},
      {"dequant_matmul", {{"scale? 1", "w 0", "w 1", "x 1", "x 2"}, blocks}},
      {"dequant_matmul_transposed",
       {{"w 0", "w 1", "x 1", "x 2"},
        {"the blocks of the weights need its size", "the number of its blocks"}}},
      {"encode_blocks", {{"x 0", "x 1", "x 2"}, {"a multiple of"}}},
      {"fused_attention_block", {{"out_w 0"}, {give}}},
      {"fused_transformer_layer", {{"rest... 0", "rest... 1"}, {give}}},
      {"gated_delta_net", {{"q 3"}, {give}}},
      {"gated_delta_net_carry", {{"q 3"}, {give}}},
      {"gaussian_splat_prepare", {{"sh 1"}, {"it must have 0, 1, 4, 9 or 16"}}},
      {"gaussian_splat_render", {{"sh 1"}, {"it must have 0, 1, 4, 9 or 16"}}},
      {"llama_decoder_block", {{"v_w 1"}, {heads}}},
      {"paged_attention", {{"q 2"}, {give}}},
      {"q_conv2d", {{"w 2", "w 3"}, {"a kernel has known sizes"}}},
      {"qwen35_mtp_head", {{"cos 1", "sin 1", "v_w 1"}, {heads, either}}},
      {"rope", {{"cos 1", "sin 1", "x 1", "x 2"}, {heads, either}}},
      {"rope_backward", {{"cos 1", "dy 1", "dy 2", "sin 1"}, {heads, either}}},
      {"scaled_matmul", {{"w 1", "w 2", "w_scale? 1", "w_scale? 2"}, {"does not tell whether"}}},
      {"selective_scan", {{"a 1"}, {give}}},
      {"windows_sum", {{"x 1", "x 2", "x 3", "x 4"}, {"has a window of symbolic size"}}}};
  return table;
}

// What a transform may ask for that a symbol does not tell.
std::string_view unknown_to_transforms(const OpDef& op) {
  if (op.name == "qr") return "needs to know whether it has more rows or columns";
  if (op.name == "dequant_matmul") return "have no known number of blocks";
  return "";
}

bool has_some(std::string_view message, const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& w) { return message.find(w) != message.npos; });
}

// Sample `index` with leaves of the given types; nothing when the operator refuses them.
std::optional<Graph> with_types(const OpDef& op, size_t index, const Shapes& types, std::string& refusal) {
  Graph out(std::string(op.name));
  Values operands;
  for (size_t i = 0; i < types.size(); ++i) operands.push_back(out.input(cat("x", i), types[i]));
  try {
    const NodeId id =
        out.append(op, test::retype_attrs(op, op.samples()[index].attrs.get(), DType::f64), operands);
    Values outputs;
    for (uint32_t r = 0; r < out.node(id).shapes.size(); ++r) outputs.push_back(out.value(id, r));
    out.set_outputs(outputs);
    return out;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::user) << e.what();
    refusal = e.message();
    return std::nullopt;
  }
}

struct SymbolicCase {
  Graph graph;
  std::map<std::string, std::string> refused;  // "operand axis" -> the message
};

// A symbol for every axis but those of size 1, which may be there to be broadcast, and those the operator
// wants to know.
SymbolicCase symbolic_case(const OpDef& op, size_t index, const test::SampleCase& fixed) {
  SymbolicCase out{fixed.graph, {}};
  Shapes types;
  for (const Literal& x : fixed.leaves) types.push_back(x.shape());
  for (size_t i = 0; i < types.size(); ++i) {
    for (int axis = 0; axis < types[i].rank(); ++axis) {
      if (types[i].dim(axis) == Dim(1)) continue;
      Shapes more = types;
      more[i] = types[i].with_dim(axis, Dim::symbol(cat("s", i, "_", axis)));
      std::string refusal;
      if (auto g = with_types(op, index, more, refusal)) {
        types = std::move(more);
        out.graph = std::move(*g);
      } else {
        out.refused[cat(op.operands.empty() ? "" : op.operands[std::min(i, op.operands.size() - 1)], " ",
                        axis)] = refusal;
      }
    }
  }
  return out;
}

// Values for the leaves a transform added, from the types of the run with numbers.
Literals with_added(const Graph& transformed, Literals in) {
  const auto leaves = transformed.leaves();
  for (size_t i = in.size(); i < leaves.size(); ++i)
    in.push_back(test::random_like(transformed.node(leaves[i]).shapes[0], 40 + i));
  return in;
}

class EverySymbolic : public testing::TestWithParam<const OpDef*> {
 protected:
  using Transform = std::function<Graph(const Graph&)>;

  // The transform of the graph with symbols, run, against that of the graph with numbers.
  void expect_same(const char* what, const SymbolicCase& c, const test::SampleCase& fixed,
                   const Literals& leaves, const Transform& transform) {
    SCOPED_TRACE(what);
    std::optional<Graph> numbers;
    try {
      numbers = transform(fixed.graph);
    } catch (const Error&) {
      return;  // refused whatever the sizes; the other conformance runs say where that is right
    }
    try {
      const Graph symbols = transform(c.graph);
      for (const auto& e : symbols.verify()) ADD_FAILURE() << cat(e);
      const Literals in = with_added(*numbers, leaves);
      const Literals got = interpret(symbols, in), want = interpret(*numbers, in);
      bool single = false;  // complex numbers are made of f32
      for (const Literals* all : {&in, &want}) {
        for (const Literal& x : *all) single = single || is_complex(x.dtype());
      }
      test::expect_close(got, want, single ? 1e-5 : 1e-11);
    } catch (const Error& e) {
      const std::string_view unknown = unknown_to_transforms(*GetParam());
      if (unknown.empty() || e.message().find(unknown) == std::string::npos) ADD_FAILURE() << e.what();
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Derivative, EverySymbolic, testing::ValuesIn(test::ops_of(ops::table())),
                         test::OpName());

TEST_P(EverySymbolic, gives_what_numbers_give) {
  const OpDef& op = *GetParam();
  if (op.traits.leaf) return;
  std::set<std::string> refused;
  const auto wanted = static_axes().find(op.name);
  for (size_t i = 0; i < op.samples().size(); ++i) {
    const auto fixed = test::make_case(op, i, DType::f64);
    if (fixed.graph.has_dynamic_dims()) continue;
    const SymbolicCase c = symbolic_case(op, i, fixed);
    for (const auto& [axis, message] : c.refused) {
      refused.insert(axis);
      if (wanted == static_axes().end() || !has_some(message, wanted->second.why))
        ADD_FAILURE() << "sample " << i << " refuses a symbol for " << axis << ": " << message;
    }
    if (!c.graph.has_dynamic_dims()) continue;
    SCOPED_TRACE(cat("sample ", i, "\n", c.graph));
    std::vector<std::string> names;
    for (size_t k = 0; k < fixed.leaves.size(); ++k) {
      if (is_differentiable(fixed.leaves[k].dtype())) names.push_back(cat("x", k));
    }
    const auto pulled = [&](const Graph& g) { return transform::grad(g, names, {.cotangent_inputs = true}); };
    expect_same("value", c, fixed, fixed.leaves, [](const Graph& g) { return g; });
    if (!names.empty()) {
      expect_same("grad", c, fixed, fixed.leaves, pulled);
      expect_same("jvp", c, fixed, fixed.leaves, [&](const Graph& g) { return transform::jvp(g, names); });
      expect_same("jvp of grad", c, fixed, fixed.leaves,
                  [&](const Graph& g) { return transform::jvp(pulled(g), names); });
    }
    transform::VmapOptions all{.size = 2};
    Literals batches;
    for (size_t k = 0; k < fixed.leaves.size(); ++k) {
      all.in_axes[cat("x", k)] = 0;
      batches.push_back(test::stack({fixed.leaves[k], test::example(op, i, k, 1)}));
    }
    if (!batches.empty())
      expect_same("vmap", c, fixed, batches, [&](const Graph& g) { return transform::vmap(g, all); });
  }
  EXPECT_EQ(refused, wanted == static_axes().end() ? std::set<std::string>() : wanted->second.axes);
}

}  // namespace
}  // namespace rlx::ir
