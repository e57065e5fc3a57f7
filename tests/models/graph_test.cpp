// The forms of a graph: parts of its results, hooks, caches in 16 bits, ropes that depend on the length.
#include <gtest/gtest.h>

#include <cmath>

#include "rlx/lang/operators.h"
#include "tests/models/session.h"
#include "tests/models/tiny.h"
#include "tests/support/compare.h"
#include "tests/support/errors.h"

namespace rlx::test {
namespace {

const Tokens kText{3, 1, 4, 15, 9, 2, 6, 5, 3, 5, 8, 9};

Literal logits_of(const models::Model& model, const Tokens& text, const models::GraphOptions& options = {},
                  const char* name = "logits") {
  const models::ModelGraph g = model.graph(options);
  const Literal ids = Literal::of<int32_t>({1, int64_t(text.size())}, text);
  return compile(g.graph, g.weights).run({{"input_ids", ids}}).at(name);
}

models::Model open_tiny(const Scratch& scratch, const std::string& rope = {}, double theta = 10000) {
  TinyLlama tiny;
  if (!rope.empty()) tiny.config["rope_scaling"] = rope;
  tiny.config["rope_theta"] = cat(theta);
  return models::open_model(tiny.write(scratch));
}

TEST(Graphs, last_token_alone) {
  const Scratch scratch;
  const models::Model model = open_tiny(scratch);
  const Literal all = logits_of(model, kText), last = logits_of(model, kText, {.last_only = true});
  EXPECT_EQ(cat(last.shape()), "f32[1,1,16]");
  EXPECT_LT(largest_difference(last, 0, all, int64_t(kText.size()) - 1, 1), 1e-6);
}

// Logits are the hidden states times the table of embeddings.
TEST(Graphs, hidden_states_before_the_head) {
  const Scratch scratch;
  const models::Model model = open_tiny(scratch);
  const Literal h = logits_of(model, kText, {.hidden = true}, "hidden");
  const Literal y = logits_of(model, kText);
  const Literal table = io::to_literal(*model.file().tensors.data());
  ASSERT_EQ(model.file().tensors[0].name, "model.embed_tokens.weight");
  for (int64_t token = 0; token < 16; ++token) {
    double sum = 0;
    for (int64_t i = 0; i < 8; ++i) sum += h.real_at(i) * table.real_at(token * 8 + i);
    EXPECT_NEAR(sum, y.real_at(token), 1e-5);
  }
}

// transformers ties an embedding and a head that the file holds both where they are equal alone.
TEST(Graphs, a_head_in_the_file_counts_though_it_is_called_tied) {
  const Scratch first, second;
  TinyLlama tiny;
  tiny.tensors.emplace("lm_head.weight", ir::sample_literal("f32[16,8]", 77));
  const Literal tied = logits_of(models::open_model(tiny.write(first)), kText);
  tiny.config["tie_word_embeddings"] = "false";
  expect_close(tied, logits_of(models::open_model(tiny.write(second)), kText), 0);
}

// As files of embedding models are.
TEST(Graphs, hidden_states_need_no_head) {
  const Scratch first, second;
  TinyLlama tiny;
  const Literal want = logits_of(models::open_model(tiny.write(first)), kText, {.hidden = true}, "hidden");
  tiny.config["tie_word_embeddings"] = "false";
  const models::Model model = models::open_model(tiny.write(second));
  expect_close(logits_of(model, kText, {.hidden = true}, "hidden"), want, 0);
  const std::string refusal = message_of([&] { model.graph(); });
  EXPECT_NE(refusal.find("has no tensor 'lm_head.weight'"), refusal.npos) << refusal;
}

TEST(Graphs, a_hook_at_every_product_and_at_the_rows_of_tokens) {
  const Scratch scratch;
  const models::Model model = open_tiny(scratch);
  std::vector<std::string> names;
  const auto without_q = [&](const models::LinearSite& site, const Tensor&, const Tensor& y) {
    names.push_back(site.hf + (site.lookup ? " (rows)" : ""));
    return site.gguf == "blk.0.attn_q.weight" ? y * 0 : y;
  };
  const Literal changed = logits_of(model, kText, {.linear = without_q});
  EXPECT_EQ(names, (std::vector<std::string>{
                       "model.embed_tokens.weight (rows)", "model.layers.0.self_attn.q_proj.weight",
                       "model.layers.0.self_attn.k_proj.weight", "model.layers.0.self_attn.v_proj.weight",
                       "model.layers.0.self_attn.o_proj.weight", "model.layers.0.mlp.gate_proj.weight",
                       "model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.down_proj.weight",
                       "model.embed_tokens.weight"}));
  // Without queries every key counts the same.
  const Literal uniform = logits_of(model, kText,
                                    {.attention = [](const models::AttentionSite& site, const Tensor& q,
                                                     const Tensor& k, const Tensor& v, const Tensor& mask) {
                                      EXPECT_EQ(site.heads, 2);
                                      const Tensor seen =
                                          mask.cast(DType::f32).reshape({1, q.dim(1), k.dim(1)});
                                      return seen.matmul(v) / seen.sum({2}, true);
                                    }});
  expect_close(changed, uniform, 1e-5);
}

TEST(Graphs, caches_in_16_bits_are_close) {
  const Scratch scratch;
  const models::Model model = open_tiny(scratch);
  const Literal want = logits_of(model, kText);
  const double tolerances[] = {1e-5, 5e-3, 5e-2};
  const DType types[] = {DType::f32, DType::f16, DType::bf16};
  for (int i = 0; i < 3; ++i) {
    Session session(model, 1, 16, 0, {.cache_type = types[i]});
    double most = 0;
    for (size_t at = 0; at < kText.size(); ++at)
      most = std::max(most, largest_difference(session.step({{kText[at]}}), 0, want, int64_t(at), 1));
    EXPECT_LT(most, tolerances[i]) << cat(types[i]);
    if (i > 0) {
      EXPECT_GT(most, 1e-5) << cat(types[i]);
    }
  }
}

// Positions divided by the factor: a rope of half the speed.
TEST(Ropes, linear_stretches_positions) {
  const models::Rope plain{.kind = models::Rope::Kind::plain, .lanes = 8};
  models::Rope linear = plain;
  linear.kind = models::Rope::Kind::linear;
  linear.factor = 4;
  const auto a = models::rope_frequencies(plain), b = models::rope_frequencies(linear);
  ASSERT_EQ(a.size(), 4u);
  EXPECT_EQ(a[0], 1);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(b[i], a[i] / 4, 1e-15);
}

// Texts no longer than the model was made for are as without it; longer ones as with a larger base.
TEST(Ropes, dynamic_grows_with_the_text) {
  const Scratch first, second, third;
  const models::Model dynamic = open_tiny(first, R"({"rope_type": "dynamic", "factor": 2.0})");
  const models::Model plain = open_tiny(second);
  const Tokens brief(kText.begin(), kText.begin() + 8);
  expect_close(logits_of(dynamic, brief), logits_of(plain, brief), 1e-5);
  const double length = double(kText.size()), growth = 2 * length / 8 - 1, lanes = 4;
  const models::Model larger = open_tiny(third, {}, 10000 * std::pow(growth, lanes / (lanes - 2)));
  expect_close(logits_of(dynamic, kText), logits_of(larger, kText), 1e-5);
  EXPECT_GT(largest_difference(logits_of(dynamic, kText), 1, logits_of(plain, kText), 1, 11), 1e-4);
  const Literal whole = logits_of(dynamic, kText);
  Session session(dynamic, 1, 12, int64_t(kText.size()));
  for (size_t at = 0; at < kText.size(); ++at)
    EXPECT_LT(largest_difference(session.step({{kText[at]}}), 0, whole, int64_t(at), 1), 1e-5);
}

// A GPT-2 of two layers with heads of four lanes.
TinyLlama tiny_gpt2() {
  TinyLlama tiny;
  tiny.config = {{"model_type", "\"gpt2\""},
                 {"vocab_size", "16"},
                 {"n_embd", "8"},
                 {"n_layer", "2"},
                 {"n_head", "2"},
                 {"n_positions", "16"},
                 {"n_inner", "12"},
                 {"layer_norm_epsilon", "1e-5"}};
  tiny.tensors.clear();
  const auto add = [&](const std::string& name, Dims dims) {
    tiny.tensors.emplace(name, ir::sample_literal(cat(Shape(DType::f32, dims)), tiny.tensors.size() + 1));
  };
  const auto add_both = [&](const std::string& name, Dims dims) {
    add(name + ".weight", dims);
    add(name + ".bias", {dims.back()});
  };
  add("wte.weight", {16, 8});
  add("wpe.weight", {16, 8});
  add_both("ln_f", {8});
  for (int layer = 0; layer < 2; ++layer) {
    const std::string h = cat("h.", layer, ".");
    add_both(h + "ln_1", {8});
    add_both(h + "attn.c_attn", {8, 24});
    add_both(h + "attn.c_proj", {8, 8});
    add_both(h + "ln_2", {8});
    add_both(h + "mlp.c_fc", {8, 12});
    add_both(h + "mlp.c_proj", {12, 8});
  }
  return tiny;
}

// The queries of a layer, weights and bias, times a number.
void multiply_queries(TinyLlama& tiny, int layer, float factor) {
  for (const char* part : {"weight", "bias"}) {
    Literal& t = tiny.tensors.at(cat("h.", layer, ".attn.c_attn.", part));
    const auto values = t.mutable_data<float>();
    for (size_t i = 0; i < values.size(); ++i) values[i] *= i % 24 < 8 ? factor : 1;
  }
}

Literal logits_of(const TinyLlama& tiny) {
  const Scratch scratch;
  return logits_of(models::open_model(tiny.write(scratch)), kText);
}

// Scores that are not scaled are those of larger queries, scores divided by the number of a layer those of smaller ones.
TEST(Graphs, gpt2_scales_scores_as_its_configuration_says) {
  TinyLlama plain = tiny_gpt2(), flagged = tiny_gpt2();
  flagged.config["scale_attn_weights"] = "false";
  for (const int layer : {0, 1}) multiply_queries(plain, layer, 2);  // heads of four lanes: 1 / sqrt(4)
  expect_close(logits_of(flagged), logits_of(plain), 1e-5);

  plain = tiny_gpt2(), flagged = tiny_gpt2();
  flagged.config["scale_attn_by_inverse_layer_idx"] = "true";
  const Literal before = logits_of(plain);
  multiply_queries(plain, 1, 0.5f);
  expect_close(logits_of(flagged), logits_of(plain), 1e-5);
  EXPECT_GT(largest_difference(before, 0, logits_of(plain), 0, int64_t(kText.size())), 1e-3);
}

}  // namespace
}  // namespace rlx::test
