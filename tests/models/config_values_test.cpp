// Values that a configuration may have and published ones seldom do.
#include <algorithm>

#include "rlx/ops/conv/depthwise_causal.h"
#include "rlx/ops/elementwise/activation.h"
#include "tests/models/folder.h"
#include "tests/models/tiny.h"
#include "tests/support/errors.h"

namespace rlx::test {
namespace {

Literal logits_of(const std::string& path, const Literal& ids) {
  const models::ModelGraph g = models::open_model(path).graph();
  return compile(g.graph, g.weights, options_of(g)).run({{"input_ids", ids}}).at("logits");
}

// ---- the activation behind the convolutions of recurrent layers is that of the model ----

class ShortConvolutions : public testing::TestWithParam<const char*> {};

// Whether the first operator behind this value that is no sum is a relu.
bool ends_in_relu(const ir::Graph& g, const ir::Node& n) {
  const ir::Node& next = g.node(n.uses[0].user);
  return next.op->name == "add" ? ends_in_relu(g, next) : next.op->name == "relu";
}

TEST_P(ShortConvolutions, HaveTheActivationOfTheModel) {
  RLX_REQUIRE_DATA(std::string("checkpoints/") + GetParam());
  const Scratch scratch;
  Folder f(GetParam());
  f.set("hidden_act", "\"relu\"");
  const models::ModelGraph built = models::open_model(f.write(scratch)).graph();
  int64_t convolutions = 0;
  for (const ir::Node* n : built.graph.nodes()) {
    if (!n->is<ops::DepthwiseConv1dCausal>()) continue;
    ++convolutions;
    EXPECT_TRUE(ends_in_relu(built.graph, *n));
  }
  EXPECT_GT(convolutions, 0);
}

INSTANTIATE_TEST_SUITE_P(Models, ShortConvolutions,
                         testing::Values("mamba", "mamba2", "falcon_h1", "qwen3next", "qwen3_5"),
                         [](const auto& info) { return std::string(info.param); });

// ---- the two words of Gemma for its activation ----

TEST(HiddenActivation, OfGemmaCountsBesideHiddenAct) {
  for (const char* name : {"gemma2", "gemma3"}) {
    RLX_REQUIRE_DATA(std::string("checkpoints/") + name);
    const Scratch scratch;
    Folder f(name);
    ASSERT_NE(f.config.find("hidden_activation"), f.config.npos);
    const Literal ids = expected_values(f.path + "/expected.safetensors").at("input_ids");
    const Literal before = logits_of(f.path, ids);
    f.config.insert(f.config.find('{') + 1, "\"hidden_act\": \"relu\",");
    const Literal after = logits_of(f.write(scratch), ids);
    for (int64_t i = 0; i < before.elements(); ++i) ASSERT_EQ(before.real_at(i), after.real_at(i)) << name;
  }
}

// ---- the norm of Mamba 2, which transformers took over all channels before 5.23 ----

TEST(GatedNorm, IsThatOfGroupsSinceTransformers523) {
  RLX_REQUIRE_DATA("checkpoints/mamba2");
  const std::pair<const char*, int64_t> versions[] = {{"4.44.0", 1},       {"5.22.2", 1}, {"5.23.0", 2},
                                                      {"5.100.0.dev0", 2}, {"6.0", 2},    {"", 2}};
  for (const auto& [version, groups] : versions) {
    const Scratch scratch;
    Folder f("mamba2");
    f.set("transformers_version", cat("\"", version, "\""));
    EXPECT_EQ(models::open_model(f.write(scratch)).config().ssm.norm_groups, groups) << version;
  }
  const Scratch scratch;
  Folder f("mamba2");
  f.set("transformers_version", "\"5.23.0\"");
  const Literal ids = expected_values(f.path + "/expected.safetensors").at("input_ids");
  const Literal got = logits_of(f.write(scratch), ids);
  const double want[] = {0.92839, -0.43567, 0.43626, 0.70589, 0.0179, -0.87697};  // transformers 5.23.0
  const int64_t last = (ids.shape().dim(1).value() - 1) * got.shape().dim(2).value();
  for (int64_t i = 0; i < 6; ++i) EXPECT_NEAR(got.real_at(last + i), want[i], 2e-4) << i;
}

// ---- a word of DeepSeek V3 ----

TEST(RopeInterleave, IsNoWordOfDeepseekV2) {
  RLX_REQUIRE_DATA("checkpoints/deepseek_v2");
  const Scratch scratch;
  Folder f("deepseek_v2");
  f.config.insert(f.config.find('{') + 1, "\"rope_interleave\": false,");
  const std::string refusal = message_of([&] { models::open_model(f.write(scratch)); });
  EXPECT_NE(refusal.find("'rope_interleave' is false; only true is understood"), refusal.npos) << refusal;
}

// ---- routing by groups ----

// The same number less for every expert changes no choice, however far below zero it goes.
TEST(GroupRouting, ScoresBelowZeroStayInTheirGroups) {
  RLX_REQUIRE_DATA("checkpoints/deepseek_v3");
  const Scratch scratch;
  Folder f("deepseek_v3");
  int64_t changed = 0;
  for (auto& [name, value] : f.tensors) {
    if (!name.ends_with("e_score_correction_bias")) continue;
    const auto bias = value.data<float>();
    std::vector<float> lower(bias.begin(), bias.end());
    for (float& v : lower) v -= 8;
    value = Literal::of<float>({int64_t(lower.size())}, lower);
    ++changed;
  }
  ASSERT_GT(changed, 0);
  expect_logits(f.write(scratch), f.path);
}

// ---- fields that are left out ----

TEST(FieldsLeftOut, AreThoseOfTransformers) {
  const Scratch scratch;
  const Literal ids = Literal::of<int32_t>({1, 5}, {3, 1, 4, 15, 9});
  TinyLlama told, silent, null;
  for (auto& [name, value] : told.tensors) {
    if (!name.ends_with("embed_tokens.weight")) continue;
    std::vector<float> small(value.data<float>().begin(), value.data<float>().end());
    for (float& v : small) v *= 1e-3f;  // so that the epsilon of norms counts
    value = Literal::of<float>({16, 8}, small);
  }
  silent.tensors = null.tensors = told.tensors;
  silent.config.erase("rms_norm_eps");
  const Literal want = logits_of(told.write(scratch, "told"), ids);
  EXPECT_EQ(largest_difference(logits_of(silent.write(scratch, "silent"), ids), 0, want, 0, 5), 0);
  TinyLlama other = told;
  other.config["rms_norm_eps"] = "1e-5";
  EXPECT_GT(largest_difference(logits_of(other.write(scratch, "other"), ids), 0, want, 0, 5), 1e-3);
  // Mistral has a window where nothing is said, and none where it is null.
  null.config["model_type"] = "\"mistral\"";
  null.config["num_key_value_heads"] = "2";
  EXPECT_EQ(models::open_model(null.write(scratch, "window")).config().window, 4096);
  null.config["sliding_window"] = "null";
  EXPECT_EQ(models::open_model(null.write(scratch, "none")).config().window, 0);
}

class LeftOut : public testing::TestWithParam<const char*> {};

// Each of these has the value that transformers assumes, and another one would change the logits or be refused.
TEST_P(LeftOut, ChangesNothing) {
  RLX_REQUIRE_DATA(std::string("checkpoints/") + GetParam());
  const Scratch scratch;
  Folder f(GetParam());
  const double eps = models::open_model(f.path).config().norm_eps;
  const bool latent = std::string_view(GetParam()).starts_with("deepseek");
  if (latent) f.drop("n_shared_experts");
  if (!latent) f.drop("mamba_d_conv");
  f.drop("rms_norm_eps");
  const std::string path = f.write(scratch);
  expect_logits(path, f.path);
  EXPECT_EQ(models::open_model(path).config().norm_eps, eps);
}

INSTANTIATE_TEST_SUITE_P(Models, LeftOut, testing::Values("deepseek_v2", "deepseek_v3", "falcon_h1"),
                         [](const auto& info) { return std::string(info.param); });

TEST(FieldsLeftOut, PaddingOfRobertaIsOne) {
  RLX_REQUIRE_DATA("checkpoints/roberta");
  const Scratch scratch;
  Folder f("roberta");
  f.drop("pad_token_id");
  EXPECT_EQ(models::open_model(f.write(scratch)).config().padding_id, 1);
}

TEST(FieldsLeftOut, RopesOfModernBertHaveBasesOfTheirOwn) {
  RLX_REQUIRE_DATA("checkpoints/modernbert");
  const Scratch scratch;
  Folder f("modernbert");
  for (const char* field : {"global_rope_theta", "local_rope_theta"}) f.drop(field);
  const models::Config c = models::open_model(f.write(scratch)).config();
  EXPECT_EQ(c.rope.theta, 160000);
  EXPECT_EQ(c.window_rope.theta, 10000);
}

// ---- windows of Qwen's relatives, where layer_types does not tell ----

TEST(Windows, AreInTheLayersThatTransformersGivesThem) {
  const Scratch scratch;
  const auto windows = [&](const std::string& type) {
    TinyLlama m;
    m.config["model_type"] = cat("\"", type, "\"");
    m.config["num_hidden_layers"] = "4";
    m.config["num_key_value_heads"] = "2";
    m.config["use_sliding_window"] = "true";
    m.config["sliding_window"] = "3";
    m.config["max_window_layers"] = "3";
    const models::Model model = models::open_model(m.write(scratch, type));
    std::string out;
    for (const models::Mixer x : model.config().mixers) out += x == models::Mixer::window ? 'w' : '.';
    return out;
  };
  EXPECT_EQ(windows("qwen2"), "...w");
  EXPECT_EQ(windows("qwen3"), "...w");
  EXPECT_EQ(windows("qwen2_moe"), "w.w.");
  EXPECT_EQ(windows("qwen3_moe"), "wwww");
}

}  // namespace
}  // namespace rlx::test
