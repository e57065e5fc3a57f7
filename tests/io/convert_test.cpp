#include "rlx/io/convert.h"

#include <filesystem>

#include "rlx/base/file.h"
#include "rlx/base/json.h"
#include "rlx/io/npy.h"
#include "tests/support/data.h"
#include "tests/support/errors.h"
#include "tests/support/scratch.h"

namespace rlx::io {
namespace {

using test::message_of;

class Convert : public testing::Test {
 protected:
  // Two float tensors, one integer, and metadata of several types.
  void write_gguf(const std::string& name) {
    values.resize(512);
    for (size_t i = 0; i < values.size(); ++i) values[i] = float(i % 37) - 18;
    GgufWriter writer;
    writer.add_string("general.architecture", "toy");
    writer.add_u32("a.u32", 7);
    writer.add_f32("a.f32", 0.1f);
    writer.add_bool("a.bool", true);
    const std::string_view words[] = {"x", "\"y\"\n", ""};
    writer.add_strings("a.words", words);
    const int32_t whole[] = {-1, INT32_MAX};
    writer.add_i32s("a.i32s", whole);
    const float reals[] = {0.1f, -std::numeric_limits<float>::infinity(), 1e-40f};
    writer.add_f32s("a.f32s", reals);
    writer.add_u64("a.u64", UINT64_MAX);
    writer.add_f32("a.nan", std::numeric_limits<float>::quiet_NaN());
    writer.add_tensor(
        {"w.weight", StorageType::of(DType::f32), {2, 256}, std::as_bytes(std::span(values)), nullptr});
    writer.add_tensor(
        {"norm", StorageType::of(DType::f32), {256}, std::as_bytes(std::span(values)).first(1024), nullptr});
    writer.add_tensor(
        {"ids", StorageType::of(DType::i32), {4}, std::as_bytes(std::span(values)).first(16), nullptr});
    writer.write(folder.path(name));
  }
  test::Scratch folder;
  std::vector<float> values;
};

TEST_F(Convert, gguf_through_safetensors_comes_back_the_same) {
  write_gguf("a.gguf");
  const ConvertReport report = convert_file(folder.path("a.gguf"), folder.path("b.safetensors"));
  EXPECT_EQ(report.tensors, 3);
  EXPECT_EQ(report.changed, 0);
  EXPECT_TRUE(report.notes.empty());
  convert_file(folder.path("b.safetensors"), folder.path("c.gguf"));
  EXPECT_EQ(read_file(folder.path("a.gguf")), read_file(folder.path("c.gguf")));
}

TEST_F(Convert, stored_models_survive_the_way_through_safetensors) {
  RLX_REQUIRE_DATA("gguf/llama-F16.gguf");
  const std::string source = test::data_path("gguf/llama-F16.gguf");
  convert_file(source, folder.path("b.safetensors"));
  convert_file(folder.path("b.safetensors"), folder.path("c.gguf"));
  EXPECT_TRUE(read_file(source) == read_file(folder.path("c.gguf")));
}

TEST_F(Convert, block_formats_are_decoded_where_the_file_cannot_hold_them) {
  RLX_REQUIRE_DATA("gguf/llama-Q4_K_M.gguf");
  const std::string source = test::data_path("gguf/llama-Q4_K_M.gguf");
  const ConvertReport report = convert_file(source, folder.path("b.npz"), {.deflate = true});
  EXPECT_EQ(report.notes.size(), 2u);
  EXPECT_GT(report.changed, 0);
  const GgufFile file = GgufFile::open(source);
  for (const TensorView& t : read_npz(folder.path("b.npz"))) {
    EXPECT_EQ(t.type.dtype, DType::f32);
    EXPECT_EQ(to_f32(t), to_f32(file.tensor(t.name))) << t.name;
  }
}

TEST_F(Convert, quantises_matrices_and_keeps_the_rest) {
  write_gguf("a.gguf");
  const ConvertReport report = convert_file(folder.path("a.gguf"), folder.path("q.gguf"), {.type = "q8_0"});
  EXPECT_EQ(report.changed, 1);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(report.notes[0],
            "1 float tensors kept their type: in a gguf model only weights of products are stored as q8_0");
  const GgufFile file = GgufFile::open(folder.path("q.gguf"));
  EXPECT_EQ(file.tensor("w.weight").type.name, "q8_0");
  EXPECT_EQ(file.tensor("norm").type.name, "f32");
  EXPECT_EQ(file.tensor("ids").type.name, "i32");
  const std::vector<float> back = to_f32(file.tensor("w.weight"));
  for (size_t i = 0; i < back.size(); ++i) EXPECT_NEAR(back[i], values[i], 0.08);
  EXPECT_EQ(report.bytes_out, 512 / 32 * 34 + 1024 + 16);
}

// llama.cpp multiplies with norms in f32 only, and refuses a file that has them in 16 bits.
TEST_F(Convert, norms_of_a_gguf_model_stay_in_f32) {
  write_gguf("a.gguf");
  convert_file(folder.path("a.gguf"), folder.path("a.safetensors"));
  for (const char* in : {"a.gguf", "a.safetensors"}) {
    for (const char* type : {"f16", "bf16"}) {
      const ConvertReport report = convert_file(folder.path(in), folder.path("h.gguf"), {.type = type});
      EXPECT_EQ(report.changed, 1) << in;
      const GgufFile file = GgufFile::open(folder.path("h.gguf"));
      EXPECT_EQ(file.tensor("w.weight").type.name, type) << in;
      EXPECT_EQ(file.tensor("norm").type.name, "f32") << in;
    }
  }
  convert_file(folder.path("a.gguf"), folder.path("h.safetensors"), {.type = "f16"});
  convert_file(folder.path("h.safetensors"), folder.path("s.gguf"), {.type = "f32"});
  EXPECT_EQ(GgufFile::open(folder.path("s.gguf")).tensor("norm").type.name, "f32");
  // A file of tensors that is no model has no such names: every tensor changes.
  const TensorView t{
      "norm", StorageType::of(DType::f32), {256}, std::as_bytes(std::span(values)).first(1024), nullptr};
  write_safetensors(folder.path("t.safetensors"), std::span(&t, 1));
  convert_file(folder.path("t.safetensors"), folder.path("t.gguf"), {.type = "f16"});
  EXPECT_EQ(GgufFile::open(folder.path("t.gguf")).tensor("norm").type.name, "f16");
}

TEST_F(Convert, plain_types_apply_to_every_float_tensor) {
  write_gguf("a.gguf");
  convert_file(folder.path("a.gguf"), folder.path("h.safetensors"), {.type = "bf16"});
  const SafetensorsFile file = SafetensorsFile::open(folder.path("h.safetensors"));
  EXPECT_EQ(file.tensor("norm").type.dtype, DType::bf16);
  EXPECT_EQ(file.tensor("ids").type.dtype, DType::i32);
}

TEST_F(Convert, refuses_with_reasons) {
  write_gguf("a.gguf");
  const auto refusal = [&](const std::string& in, const std::string& out, ConvertOptions options = {}) {
    return message_of([&] { convert_file(folder.path(in), folder.path(out), options); });
  };
  EXPECT_NE(refusal("a.gguf", "b.bin").find("must end in .gguf, .safetensors or .npz"), std::string::npos);
  EXPECT_NE(refusal("a.gguf", "a.gguf").find("is the input"), std::string::npos);
  EXPECT_NE(refusal("none.gguf", "b.npz").find("cannot open"), std::string::npos);
  EXPECT_NE(refusal("a.gguf", "b.gguf", {.type = "q9"})
                .find("nothing can be stored as 'q9'; types: f32, f16, q4_0"),
            std::string::npos);
  EXPECT_NE(
      refusal("a.gguf", "b.npz", {.type = "q4_0"}).find("npz files cannot hold q4_0; write a .gguf file"),
      std::string::npos);
  EXPECT_NE(refusal("a.gguf", "b.gguf", {.deflate = true}).find("only .npz files can be deflated"),
            std::string::npos);
  const std::vector<std::byte> bytes(8);
  const TensorView odd[] = {{"u", StorageType::of(DType::u8), {8}, bytes, nullptr},
                            {"c", StorageType::of(DType::c64), {1}, bytes, nullptr}};
  write_safetensors(folder.path("u.safetensors"), odd);
  EXPECT_NE(refusal("u.safetensors", "u.gguf").find("'u' (u8), 'c' (c64)"), std::string::npos);
  write_file(folder.path("text.gguf"), "hello");
  EXPECT_NE(refusal("text.gguf", "b.npz").find("does not begin with 'GGUF'"), std::string::npos);
  write_file(folder.path("text.txt"), "hello");
  EXPECT_NE(refusal("text.txt", "b.npz")
                .find("is no model file; gguf, safetensors, npy or npz, a safetensors index"),
            std::string::npos);
}

TEST_F(Convert, tells_its_progress) {
  write_gguf("a.gguf");
  std::vector<int64_t> seen;
  const ConvertReport report = convert_file(folder.path("a.gguf"), folder.path("b.npz"),
                                            {.progress = [&](int64_t done, int64_t total) {
                                              seen.push_back(done);
                                              EXPECT_EQ(total, 2048 + 1024 + 16);
                                            }});
  EXPECT_EQ(seen, (std::vector<int64_t>{0, 2048, 3072, 3088}));
  EXPECT_EQ(report.from, "gguf");
  EXPECT_EQ(report.to, "npz");
}

TEST_F(Convert, an_input_that_becomes_shorter_is_named_and_nothing_is_left) {
  values.assign(1 << 20, 1.0f);
  const TensorView t{
      "w", StorageType::of(DType::f32), {1 << 10, 1 << 10}, std::as_bytes(std::span(values)), nullptr};
  const std::string in = folder.path("in.safetensors");
  for (const char* out : {"out.npz", "out.gguf"}) {
    write_safetensors(in, std::span(&t, 1));
    const auto cut = [&](int64_t done, int64_t) {
      if (done == 0) std::filesystem::resize_file(in, 1 << 16);
    };
    for (const bool encoded : {false, true}) {
      ConvertOptions options{.progress = cut};
      if (encoded) options.type = "f16";
      EXPECT_NE(message_of([&] {
                  convert_file(in, folder.path(out), options);
                }).find("file: '" + in + "' became shorter while it was read: it had "),
                std::string::npos);
      write_safetensors(in, std::span(&t, 1));
    }
  }
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++files;
  EXPECT_EQ(files, 1u);
}

TEST_F(Convert, typed_metadata_that_was_tampered_with_is_refused) {
  const auto refusal = [&](const std::string& json) {
    write_safetensors(folder.path("x.safetensors"), {}, {{"gguf.metadata", json}});
    return message_of([&] { convert_file(folder.path("x.safetensors"), folder.path("x.gguf")); });
  };
  EXPECT_NE(refusal("[]").find("gguf metadata must be an object"), std::string::npos);
  EXPECT_NE(refusal(R"({"k": 1})").find("gguf metadata 'k': [type, value] expected"), std::string::npos);
  EXPECT_NE(refusal(R"({"k": ["u9", 1]})").find("unknown type 'u9'"), std::string::npos);
  EXPECT_NE(refusal(R"({"k": ["u8", 256]})").find("an integer does not fit its type"), std::string::npos);
  EXPECT_NE(refusal(R"({"k": ["u8", -1]})").find("an integer does not fit its type"), std::string::npos);
  EXPECT_NE(refusal(R"({"k": ["string[]", ["a", 1]]})").find("a string expected"), std::string::npos);
  EXPECT_NE(refusal(R"({"k": ["array[]", [["u8", 1]]]})").find("an array expected"), std::string::npos);
  EXPECT_NE(refusal(R"({"k": ["f32", "much"]})").find("a number expected"), std::string::npos);
  EXPECT_EQ(refusal(R"({"k": ["array[]", [["u8[]", [1, 2]], ["f64[]", ["inf"]]]]})"), "no error");
  const GgufFile file = GgufFile::open(folder.path("x.gguf"));
  const auto rows = file.at("k").elements();
  EXPECT_EQ(rows[0].integers(), (std::vector<int64_t>{1, 2}));
}

TEST(ModelFile, describes_itself_as_json) {
  RLX_REQUIRE_DATA("gguf/llama-Q4_K_M.gguf");
  const Json json =
      Json::parse(describe_json(ModelFile::open(test::data_path("gguf/llama-Q4_K_M.gguf"))), "described");
  EXPECT_EQ(json.at("kind").string(), "gguf");
  EXPECT_EQ(json.at("architecture").string(), "llama");
  EXPECT_EQ(json.at("tensors").size(), 30u);
  EXPECT_EQ(json.at("metadata").at("llama.block_count").integer(), 3);
  EXPECT_EQ(json.at("metadata").at("tokenizer.ggml.tokens").at("size").integer(), 512);
  int64_t parameters = 0;
  for (const auto [name, type] : json.at("types").members()) parameters += type.at("parameters").integer();
  EXPECT_EQ(json.at("parameters").integer(), parameters);
}

TEST(ModelFile, knows_folders_by_their_config) {
  RLX_REQUIRE_DATA("checkpoints/llama");
  const ModelFile file = ModelFile::open(test::data_path("checkpoints/llama"));
  EXPECT_EQ(file.architecture(), "llama");
  EXPECT_EQ(Json::parse(describe_json(file), "described").at("config").at("vocab_size").integer(), 512);
}

}  // namespace
}  // namespace rlx::io
