// Losses of tokens in parts: the numbers and gradients of the whole, and none of its logits.
#include "rlx/llm/token_loss.h"

#include <gtest/gtest.h>

#include "rlx/lang/operators.h"
#include "rlx/lang/trace.h"
#include "rlx/models/model.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/transform/transform.h"
#include "tests/support/compare.h"
#include "tests/support/data.h"

namespace rlx::llm {
namespace {

constexpr int64_t kTokens = 50, kAllTokens = int64_t(1) << 30;

// hidden [tokens, size], targets, weights of tokens -> their weighted loss, with logits of so many bytes at a time.
Graph weighted_loss(const Graph& head, int64_t size, int64_t logit_bytes, bool trainable = true) {
  Graph g("loss");
  Tracer t(g);
  const Tensor hidden = t.input("hidden", {kTokens, size}),
               targets = t.input("targets", {kTokens}, DType::i32);
  const Tensor weights = t.input("weights", {kTokens});
  const Tensor nll = token_losses(head, hidden, targets, trainable, logit_bytes);
  g.set_outputs({(nll * weights).sum({0})}, {"loss"});
  return g;
}

int64_t largest_value(const ir::Graph& g) {
  int64_t out = 0;
  for (const ir::Node* n : g.nodes()) {
    if (n->op->traits.leaf) continue;
    for (const Shape& s : n->shapes) out = std::max(out, s.elements());
  }
  return out;
}

struct Example {
  models::ModelGraph model;
  Graph head;
  int64_t size = 0, vocab = 0;
  NamedLiterals inputs, weights;

  explicit Example(const char* path)
      : model(models::open_model(test::data_path(path)).graph({.hidden = true, .trainable = true})),
        head(*head_of(model.graph)) {
    for (const ir::NodeId id : head.params()) {
      const std::string& name = ir::leaf_name(head.node(id));
      weights.emplace(name, model.weights.at(name));
    }
    size = head.shape(head.value(*head.find_leaf("hidden"))).dim(-1).value();
    vocab = head.shape(head.outputs()[0]).dim(-1).value();
    std::vector<float> h(static_cast<size_t>(kTokens * size)), w(static_cast<size_t>(kTokens));
    std::vector<int32_t> targets(static_cast<size_t>(kTokens));
    for (size_t i = 0; i < h.size(); ++i) h[i] = float(int64_t(i * 37 % 101) - 50) / 40;
    for (size_t i = 0; i < w.size(); ++i) {
      w[i] = i % 5 == 0 ? 0.0f : 0.5f + float(i) / 50;
      targets[i] = int32_t(int64_t(i * 7919) % vocab);
    }
    inputs.emplace("hidden", Literal::of<float>({kTokens, size}, h));
    inputs.emplace("targets", Literal::of<int32_t>({kTokens}, targets));
    inputs.emplace("weights", Literal::of<float>({kTokens}, w));
  }

  NamedLiterals run(const ir::Graph& g) const { return compile(g, weights).run(inputs); }
};

// Packed weights, a plain folder, logits with a soft cap and with a scale.
class TokenLosses : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, TokenLosses,
                         testing::Values("gguf/llama-Q4_0.gguf", "gguf/llama-Q4_K_M.gguf",
                                         "checkpoints/llama", "checkpoints/gemma2", "checkpoints/granite"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) c = isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

TEST_P(TokenLosses, InPartsAreThoseOfTheWhole) {
  RLX_REQUIRE_DATA(GetParam());
  const Example e(GetParam());
  const auto with_gradient = [&](int64_t bytes) {
    return e.run(transform::value_and_grad(weighted_loss(e.head, e.size, bytes), {"hidden"}));
  };
  const NamedLiterals whole = with_gradient(kAllTokens), parts = with_gradient(16 * 4 * e.vocab);
  for (const char* name : {"loss", "d_hidden"}) test::expect_close({parts.at(name)}, {whole.at(name)}, 1e-6);
  const NamedLiterals judged = e.run(weighted_loss(e.head, e.size, 16 * 4 * e.vocab, false));
  test::expect_close({judged.at("loss")}, {whole.at("loss")}, 1e-6);
}

// The whole, built of the model's own graph: logits, cross entropy, and their derivatives.
TEST_P(TokenLosses, HaveTheGradientOfTheGraph) {
  RLX_REQUIRE_DATA(GetParam());
  const Example e(GetParam());
  Graph g = e.head.bind({{"batch", 1}, {"seq", kTokens}});
  Tracer t(g);
  const Tensor logits = ir::Expr{&g, g.outputs()[0]};
  const Tensor nll = softmax_cross_entropy_with_logits(logits.reshape({kTokens, e.vocab}),
                                                       t.input("targets", {kTokens}, DType::i32));
  g.set_outputs({(nll * t.input("weights", {kTokens})).sum({0})}, {"loss"});
  Example plain = e;
  plain.inputs.insert_or_assign("hidden", e.inputs.at("hidden").reshaped({1, kTokens, e.size}));
  const NamedLiterals want = plain.run(transform::value_and_grad(g, {"hidden"}));
  const NamedLiterals got =
      e.run(transform::value_and_grad(weighted_loss(e.head, e.size, kAllTokens), {"hidden"}));
  test::expect_close({got.at("loss")}, {want.at("loss")}, 1e-6);
  test::expect_close({got.at("d_hidden")}, {want.at("d_hidden").reshaped({kTokens, e.size})}, 1e-5);
}

TEST(TokenLosses, NeverHoldTheLogitsOfAllTokens) {
  RLX_REQUIRE_DATA("gguf/llama-Q4_0.gguf");
  const Example e("gguf/llama-Q4_0.gguf");
  EXPECT_GE(largest_value(weighted_loss(e.head, e.size, kAllTokens, false)), kTokens * e.vocab);
  EXPECT_LE(largest_value(weighted_loss(e.head, e.size, 16 * 4 * e.vocab, false)),
            std::max(16 * e.vocab, kTokens * e.size));
}

TEST(TokenLosses, AHeadThatReadsMoreThanHiddenIsNone) {
  Graph g("model");
  Tracer t(g);
  const Tensor x = t.input("x", {2, 3}), hidden = x * 2;
  g.set_outputs({hidden, hidden + x}, {"hidden", "logits"});
  EXPECT_FALSE(head_of(g));
  g.set_outputs({hidden, hidden + t.param("b", {3})}, {"hidden", "logits"});
  EXPECT_TRUE(head_of(g));
}

}  // namespace
}  // namespace rlx::llm
