// What the metadata of GGUF files mean where they leave a value out, say 0, or tell it for each layer.
#include <gtest/gtest.h>

#include <functional>

#include "rlx/io/gguf.h"
#include "rlx/models/model.h"
#include "tests/support/errors.h"
#include "tests/support/scratch.h"

namespace rlx::test {
namespace {

using Add = std::function<void(io::GgufWriter&)>;

// The configuration of a file without tensors, two layers unless told otherwise.
models::Config config_of(const std::string& architecture, const Add& add, uint32_t layers = 2) {
  const Scratch scratch;
  io::GgufWriter out;
  out.add_string("general.architecture", architecture);
  const auto key = [&](std::string_view name) { return cat(architecture, ".", name); };
  out.add_u32(key("vocab_size"), 16);
  out.add_u32(key("context_length"), 64);
  out.add_u32(key("embedding_length"), 32);
  out.add_u32(key("block_count"), layers);
  add(out);
  out.write(scratch.path("a.gguf"));
  return models::open_model(scratch.path("a.gguf")).config();
}

Add heads(const std::string& architecture, const Add& more = {}) {
  return [=](io::GgufWriter& out) {
    out.add_u32(architecture + ".attention.head_count", 4);
    out.add_u32(architecture + ".feed_forward_length", 64);
    if (more) more(out);
  };
}

TEST(GgufValues, a_rope_factor_without_a_type_is_linear) {
  const auto c =
      config_of("llama", heads("llama", [](auto& o) { o.add_f32("llama.rope.scaling.factor", 4); }));
  EXPECT_EQ(c.rope.kind, models::Rope::Kind::linear);
  EXPECT_EQ(c.rope.factor, 4);
}

TEST(GgufValues, a_rope_factor_of_0_says_nothing) {
  const auto c = config_of("llama", heads("llama", [](auto& o) {
                             o.add_string("llama.rope.scaling.type", "yarn");
                             o.add_f32("llama.rope.scaling.factor", 0);
                           }));
  EXPECT_EQ(c.rope.factor, 1);
}

TEST(GgufValues, a_number_for_each_layer_is_one_if_all_are_equal) {
  const auto with = [](std::vector<int32_t> kv_heads) {
    return config_of("llama", [&](auto& o) {
      o.add_i32s("llama.attention.head_count", std::vector<int32_t>{4, 4});
      o.add_i32s("llama.attention.head_count_kv", kv_heads);
      o.add_i32s("llama.feed_forward_length", std::vector<int32_t>{64, 64});
    });
  };
  EXPECT_EQ(with({2, 2}).heads, 4);
  EXPECT_EQ(with({2, 2}).kv_heads, 2);
  EXPECT_EQ(with({2, 2}).intermediate, 64);
  const std::string message = message_of([&] { with({2, 4}); });
  EXPECT_NE(message.find("'llama.attention.head_count_kv' is 2 for layer 0 and 4 for layer 1"),
            std::string::npos)
      << message;
  EXPECT_NE(message_of([&] { with({}); }).find("is an empty list"), std::string::npos);
}

TEST(GgufValues, gemma2_has_caps_unless_told_otherwise) {
  const auto c = config_of("gemma2", heads("gemma2"));
  EXPECT_EQ(c.attention_softcap, 50);
  EXPECT_EQ(c.logit_softcap, 30);
  const auto told = config_of("gemma2", heads("gemma2", [](auto& o) {
                                o.add_f32("gemma2.attn_logit_softcapping", 5);
                                o.add_f32("gemma2.final_logit_softcapping", 3);
                              }));
  EXPECT_EQ(told.attention_softcap, 5);
  EXPECT_EQ(told.logit_softcap, 3);
}

TEST(GgufValues, gemma3_without_a_window_has_none_in_any_layer) {
  const auto c = config_of("gemma3", heads("gemma3"), 7);
  EXPECT_EQ(c.mixers, std::vector<models::Mixer>(7, models::Mixer::attention));
}

TEST(GgufValues, gemma3_tells_windows_by_layer) {
  using enum models::Mixer;
  const auto with = [](std::vector<int32_t> windows) {
    return config_of("gemma3",
                     heads("gemma3",
                           [&](auto& o) {
                             o.add_u32("gemma3.attention.sliding_window", 8);
                             o.add_i32s("gemma3.attention.sliding_window_pattern", windows);
                           }),
                     3);
  };
  EXPECT_EQ(with({0, 1, 1}).mixers, (std::vector{attention, window, window}));
  EXPECT_NE(message_of([&] { with({1}); }).find("has 1 entries for 3 layers"), std::string::npos);
}

TEST(GgufValues, granite_factors_of_0_say_nothing) {
  const auto c = config_of("granite", heads("granite", [](auto& o) {
                             for (const char* name : {"embedding_scale", "residual_scale", "logit_scale"})
                               o.add_f32(cat("granite.", name), 0);
                           }));
  EXPECT_EQ(c.embedding_scale, 1);
  EXPECT_EQ(c.residual_scale, 1);
  EXPECT_EQ(c.logit_scale, 1);
}

Add latent(uint32_t scores, const Add& more) {
  return heads("deepseek2", [=](auto& o) {
    for (const auto& [name, value] :
         std::vector<std::pair<std::string, uint32_t>>{{"attention.kv_lora_rank", 8},
                                                       {"attention.key_length", 12},
                                                       {"attention.value_length", 8},
                                                       {"rope.dimension_count", 4},
                                                       {"expert_feed_forward_length", 16},
                                                       {"expert_count", 4},
                                                       {"expert_used_count", 2},
                                                       {"expert_gating_func", scores}})
      o.add_u32("deepseek2." + name, value);
    if (more) more(o);
  });
}

TEST(GgufValues, deepseek_weights_of_experts_add_up_to_1_where_it_is_told) {
  for (const uint32_t scores : {1, 2}) {
    EXPECT_FALSE(config_of("deepseek2", latent(scores, {})).moe.normalised);
    EXPECT_TRUE(config_of("deepseek2",
                          latent(scores, [](auto& o) { o.add_bool("deepseek2.expert_weights_norm", true); }))
                    .moe.normalised);
  }
}

TEST(GgufValues, a_scale_of_experts_of_0_says_nothing) {
  const auto c =
      config_of("deepseek2", latent(2, [](auto& o) { o.add_f32("deepseek2.expert_weights_scale", 0); }));
  EXPECT_EQ(c.moe.scale, 1);
}

}  // namespace
}  // namespace rlx::test
