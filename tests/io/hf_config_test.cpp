#include "rlx/io/hf_config.h"

#include "rlx/base/file.h"
#include "rlx/io/model_file.h"
#include "tests/support/data.h"
#include "tests/support/errors.h"
#include "tests/support/scratch.h"

namespace rlx::io {
namespace {

using test::message_of;

Json json(std::string text) { return Json::parse(std::move(text), "config.json"); }

TEST(HfConfig, stored_checkpoints_read_and_keep_every_field) {
  RLX_REQUIRE_DATA("checkpoints");
  for (const char* name :
       {"llama", "qwen3", "qwen3_moe", "qwen3_5", "qwen3next", "gemma3", "mamba", "bert"}) {
    const std::string folder = test::data_path(std::string("checkpoints/") + name);
    const HfFolder hf = HfFolder::open(folder);
    ASSERT_TRUE(hf.config) << name;
    EXPECT_EQ(hf.config->vocab_size, 512) << name;
    EXPECT_EQ(hf.config->architectures.size(), 1u);
    EXPECT_EQ(hf.config->dtype(), "float32");
    // Writing back changes nothing.
    EXPECT_EQ(to_json(*hf.config), Json::read(folder + "/config.json").text(2)) << name;
    if (hf.generation) {
      EXPECT_EQ(to_json(*hf.generation), Json::read(folder + "/generation_config.json").text(2));
    }
  }
}

TEST(HfConfig, typed_fields_of_known_models) {
  RLX_REQUIRE_DATA("checkpoints");
  const ModelConfig gemma = *HfFolder::open(test::data_path("checkpoints/gemma3")).config;
  EXPECT_EQ(gemma.activation(), "gelu_pytorch_tanh");
  EXPECT_EQ(gemma.sliding_window, 8);
  EXPECT_EQ(gemma.query_pre_attn_scalar, 256);
  EXPECT_EQ(gemma.rope_theta("full_attention"), 1e6);
  EXPECT_EQ(gemma.rope_theta("sliding_attention"), 1e4);
  EXPECT_FALSE(gemma.attn_logit_softcapping);
  EXPECT_EQ(gemma.layer_types.size(), 3u);
  EXPECT_EQ(gemma.eos_token_id, (std::vector<int64_t>{1}));
  const ModelConfig llama = *HfFolder::open(test::data_path("checkpoints/llama")).config;
  EXPECT_EQ(llama.rope_theta(), 1e4);
  EXPECT_EQ(llama.num_key_value_heads, 2);
  EXPECT_EQ(llama.rms_norm_eps, 1e-5);
  EXPECT_EQ(llama.tie_word_embeddings, true);
  EXPECT_EQ(llama.json.at("pretraining_tp").integer(), 1);
}

TEST(HfConfig, older_spellings_are_read) {
  const ModelConfig c =
      read_model_config(json(R"({"torch_dtype": "bfloat16", "rope_theta": 500000, "hidden_act": "silu"})"));
  EXPECT_EQ(c.dtype(), "bfloat16");
  EXPECT_EQ(c.rope_theta(), 500000.0);
  EXPECT_EQ(c.activation(), "silu");
}

TEST(HfConfig, changed_fields_are_written_and_unknown_ones_kept) {
  ModelConfig c =
      read_model_config(json(R"({"zz": [1, {"q": null}], "vocab_size": 7, "eos_token_id": [1, 2]})"));
  EXPECT_EQ(c.eos_token_id, (std::vector<int64_t>{1, 2}));
  c.vocab_size = 8;
  c.hidden_size = 16;
  EXPECT_EQ(Json::parse(to_json(c), "x").text(),
            R"({"zz":[1,{"q":null}],"vocab_size":8,"eos_token_id":[1,2],"hidden_size":16})");
}

TEST(HfConfig, wrong_kinds_name_the_field) {
  EXPECT_EQ(message_of([] { read_model_config(json(R"({"num_hidden_layers": "12"})")); }),
            "config.json: num_hidden_layers is a string; an integer expected");
  EXPECT_EQ(message_of([] { read_model_config(json(R"({"architectures": [3]})")); }),
            "config.json: architectures[0] is an integer; a string expected");
  EXPECT_EQ(message_of([] { read_model_config(json("[]")); }), "config.json is an array; an object expected");
  EXPECT_EQ(message_of([] { read_tokenizer_config(json(R"({"added_tokens_decoder": {"x": "y"}})")); }),
            "config.json: added_tokens_decoder has the key 'x'; a token id expected");
}

TEST(HfConfig, tokenizer_files_read_tokens_in_both_forms) {
  const TokenizerConfig t = read_tokenizer_config(json(
      R"({"tokenizer_class": "X", "model_max_length": 1000000000000000019884624838656, "add_bos_token": true,
          "bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": true, "special": true},
          "pad_token": null, "chat_template": "{{ x }}",
          "added_tokens_decoder": {"5": {"content": "<t>", "special": false, "normalized": true}},
          "additional_special_tokens": ["<a>", {"content": "<b>"}]})"));
  EXPECT_EQ(t.model_max_length, 1e30);
  EXPECT_EQ(t.special.bos_token->content, "<s>");
  EXPECT_TRUE(t.special.eos_token->lstrip);
  EXPECT_FALSE(t.special.pad_token);
  EXPECT_EQ(t.special.additional_special_tokens.size(), 2u);
  EXPECT_EQ(t.added_tokens_decoder.at(5),
            (AddedToken{.content = "<t>", .normalized = true, .special = false}));
  EXPECT_EQ(t.chat_templates.at("default"), "{{ x }}");
  const TokenizerConfig several = read_tokenizer_config(json(
      R"({"chat_template": [{"name": "default", "template": "a"}, {"name": "tool_use", "template": "b"}]})"));
  EXPECT_EQ(several.chat_templates.at("tool_use"), "b");
}

TEST(HfConfig, folder_brings_its_files_together) {
  const test::Scratch folder;
  write_file(folder.path("tokenizer_config.json"), R"({"chat_template": "old"})");
  write_file(folder.path("chat_template.jinja"), "new");
  write_file(folder.path("special_tokens_map.json"), R"({"unk_token": "<unk>"})");
  write_file(folder.path("tokenizer.json"), "{}");
  const HfFolder hf = HfFolder::open(folder.path());
  EXPECT_FALSE(hf.config);
  EXPECT_EQ(hf.tokenizer->chat_templates.at("default"), "new");
  EXPECT_EQ(hf.special_tokens->unk_token->content, "<unk>");
  EXPECT_EQ(hf.tokenizer_json, folder.path("tokenizer.json"));
  EXPECT_NE(message_of([&] { HfFolder::open(folder.path("none")); }).find("is not a folder"),
            std::string::npos);
}

TEST(HfConfig, python_numbers_are_read_described_and_written_back) {
  const test::Scratch folder;
  const std::string text =
      "{\n  \"model_type\": \"mamba2\",\n  \"time_step_limit\": [\n    0.0,\n    Infinity\n  ],\n  \"x\": NaN\n}";
  write_file(folder.path("config.json"), text);
  write_safetensors(folder.path("model.safetensors"), {});
  const HfFolder hf = HfFolder::open(folder.path());
  EXPECT_EQ(hf.config->json.at("time_step_limit").at(1).real(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(to_json(*hf.config), text);
  // For other programs infinities are strings: JSON itself has no word for them.
  const Json described = Json::parse(describe_json(ModelFile::open(folder.path())), "described");
  EXPECT_EQ(described.at("config").at("time_step_limit").at(1).string(), "inf");
}

}  // namespace
}  // namespace rlx::io
