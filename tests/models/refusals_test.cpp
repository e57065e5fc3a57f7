// What is not understood is refused by name.
#include <gtest/gtest.h>

#include "rlx/base/file.h"
#include "rlx/models/model.h"
#include "tests/models/tiny.h"
#include "tests/support/data.h"
#include "tests/support/errors.h"

namespace rlx::test {
namespace {

std::string refusal(const TinyLlama& tiny, const models::GraphOptions& options = {}) {
  const Scratch scratch;
  const std::string path = tiny.write(scratch);
  return message_of([&] { models::open_model(path).graph(options); });
}

void expect_refused(const TinyLlama& tiny, const std::string& part) {
  const std::string message = refusal(tiny);
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(Refusals, a_sound_model_is_taken) { EXPECT_EQ(refusal({}), "no error"); }

TEST(Refusals, an_unknown_architecture_with_the_list) {
  TinyLlama tiny;
  tiny.config["model_type"] = "\"bloom\"";
  expect_refused(tiny, "architecture 'bloom' is not known; known: bert, ");
  tiny.config.erase("model_type");
  expect_refused(tiny, "architecture '' is not known");
}

TEST(Refusals, fields_that_are_not_understood) {
  TinyLlama tiny;
  tiny.config["attention_magic"] = "0.5";
  expect_refused(tiny, "the field attention_magic, not understood for architecture 'llama'");
  tiny.config["attention_magic"] = "null";
  EXPECT_EQ(refusal(tiny), "no error");
  tiny.config["attention_magic"] = "false";  // may switch off what is on without it
  tiny.config["quantization_config"] = "{\"bits\": 4}";
  expect_refused(tiny, "fields attention_magic, quantization_config");
}

TEST(Refusals, fields_of_published_folders_are_taken) {
  TinyLlama tiny;
  tiny.config.insert({{"architectures", R"(["LlamaForCausalLM"])"},
                      {"attention_bias", "false"},
                      {"bos_token_id", "1"},
                      {"eos_token_id", "[2, 3]"},
                      {"is_llama_config", "true"},
                      {"pretraining_tp", "1"},
                      {"rope_interleaved", "false"},
                      {"rope_scaling", "null"},
                      {"torch_dtype", "\"bfloat16\""},
                      {"transformers.js_config", R"({"kv_cache_dtype": {"q4f16": "float16"}})"},
                      {"transformers_version", "\"4.42.3\""}});
  EXPECT_EQ(refusal(tiny), "no error");
  tiny.config["rope_interleaved"] = "true";
  expect_refused(tiny, "'rope_interleaved' is true; only false is understood");
}

TEST(Refusals, values_that_are_not_known) {
  TinyLlama tiny;
  tiny.config["hidden_act"] = "\"prelu\"";
  expect_refused(tiny, "activation 'prelu' is not known; known: silu, ");
  tiny.config["hidden_act"] = "\"silu\"";
  tiny.config["rope_scaling"] = R"({"rope_type": "spiral", "factor": 2.0})";
  expect_refused(tiny, "rope type 'spiral' is not known; known: default, linear, ");
  tiny.config["rope_scaling"] = R"({"rope_type": "linear", "factor": 2.0, "twist": 1})";
  expect_refused(tiny, "rope field 'twist' is not understood");
}

TEST(Refusals, sizes_that_cannot_be) {
  TinyLlama tiny;
  tiny.config["num_attention_heads"] = "3";
  tiny.config["num_key_value_heads"] = "2";
  expect_refused(tiny, "2 heads of keys do not divide 3 heads");
  TinyLlama other;
  other.config["hidden_size"] = "12";
  expect_refused(other, "tensor 'model.embed_tokens.weight' is [16, 8]; the configuration asks for [16, 12]");
  TinyLlama without;  // as many as transformers assumes
  without.config.erase("num_hidden_layers");
  expect_refused(without, "has no tensor 'model.layers.1.");
}

TEST(Refusals, tensors_that_are_missing_or_left_over) {
  TinyLlama tiny;
  tiny.tensors.erase("model.layers.0.mlp.up_proj.weight");
  expect_refused(tiny, "has no tensor 'model.layers.0.mlp.up_proj.weight'");
  TinyLlama more;
  more.tensors.emplace("model.layers.0.self_attn.sinks", Literal::zeros(Shape(DType::f32, {2})));
  expect_refused(more, "1 tensors have no place in architecture 'llama': model.layers.0.self_attn.sinks");
  TinyLlama empty;  // experts of no width
  empty.tensors.emplace("model.layers.0.mlp.shared_experts.up_proj.weight",
                        Literal::zeros(Shape(DType::f32, {0, 8})));
  EXPECT_EQ(refusal(empty), "no error");
}

TEST(Refusals, graphs_that_cannot_be) {
  EXPECT_NE(refusal({}, {.capacity = 4, .mask = true}).find("the form with states has no mask"),
            std::string::npos);
  EXPECT_NE(refusal({}, {.capacity = 4, .cache_type = DType::i8}).find("cannot be kept in i8"),
            std::string::npos);
  EXPECT_NE(refusal({}, {.capacity = -1}).find("capacity must be 0 or more"), std::string::npos);
}

// Published configurations of BERT name the kind of their positions.
TEST(Refusals, positions_of_an_encoder) {
  RLX_REQUIRE_DATA("checkpoints/bert");
  const Scratch scratch;
  const std::string path = scratch.path("bert");
  std::filesystem::copy(data_path("checkpoints/bert"), path);
  const std::string config = read_file(path + "/config.json");
  std::filesystem::permissions(path + "/config.json", std::filesystem::perms::owner_all);
  const auto opened_with = [&](const std::string& kind) {
    std::ofstream(path + "/config.json")
        << "{\"position_embedding_type\": \"" << kind << "\"," << config.substr(1);
    return message_of([&] { models::open_model(path).graph(); });
  };
  EXPECT_EQ(opened_with("absolute"), "no error");
  EXPECT_NE(opened_with("relative_key").find("'relative_key'; only 'absolute' is understood"),
            std::string::npos);
}

}  // namespace
}  // namespace rlx::test
