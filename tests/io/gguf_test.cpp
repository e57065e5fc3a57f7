#include "rlx/io/gguf.h"

#include <filesystem>

#include "rlx/base/file.h"
#include "tests/io/gguf_bytes.h"
#include "tests/support/data.h"
#include "tests/support/errors.h"
#include "tests/support/scratch.h"

namespace rlx::io {
namespace {

using test::message_of;

TEST(Gguf, reads_every_metadata_type) {
  GgufBytes b(3, 0, 13);
  b.key("u8", GgufType::u8).put(uint8_t(200));
  b.key("i8", GgufType::i8).put(int8_t(-100));
  b.key("u16", GgufType::u16).put(uint16_t(60000));
  b.key("i16", GgufType::i16).put(int16_t(-30000));
  b.key("u32", GgufType::u32).put(uint32_t(4000000000));
  b.key("i32", GgufType::i32).put(int32_t(-2000000000));
  b.key("f32", GgufType::f32).put(1.5f);
  b.key("bool", GgufType::bool_).put(uint8_t(1));
  b.key("string", GgufType::string).text("h\xc3\xa9");
  b.key("u64", GgufType::u64).put(UINT64_MAX);
  b.key("i64", GgufType::i64).put(INT64_MIN);
  b.key("f64", GgufType::f64).put(0.1);
  b.key("array", GgufType::array).put(uint32_t(GgufType::string)).size(2).text("a").text("");
  const GgufFile file = b.parse();
  EXPECT_EQ(file.version(), 3u);
  EXPECT_EQ(file.entries().size(), 13u);
  EXPECT_EQ(file.entries()[0].key, "u8");
  EXPECT_EQ(file.at("u8").integer(), 200);
  EXPECT_EQ(file.at("i8").integer(), -100);
  EXPECT_EQ(file.at("u16").integer(), 60000);
  EXPECT_EQ(file.at("i16").integer(), -30000);
  EXPECT_EQ(file.at("u32").integer(), 4000000000);
  EXPECT_EQ(file.at("i32").integer(), -2000000000);
  EXPECT_EQ(file.at("i64").integer(), INT64_MIN);
  EXPECT_EQ(file.at("f32").real(), 1.5);
  EXPECT_EQ(file.at("f64").real(), 0.1);
  EXPECT_EQ(file.at("u64").real(), double(UINT64_MAX));
  EXPECT_EQ(file.at("u8").real(), 200.0);
  EXPECT_TRUE(file.at("bool").boolean());
  EXPECT_EQ(file.at("string").string(), "h\xc3\xa9");
  EXPECT_EQ(file.at("array").strings(), (std::vector<std::string_view>{"a", ""}));
  EXPECT_EQ(file.find("nothing"), nullptr);
}

TEST(Gguf, says_what_a_value_is_when_asked_for_something_else) {
  GgufBytes b(3, 0, 2);
  b.key("a", GgufType::string).text("x").key("b", GgufType::u64).put(UINT64_MAX);
  const GgufFile file = b.parse();
  EXPECT_EQ(message_of([&] { file.at("a").integer(); }),
            "gguf value: asked for an integer, the value is string");
  EXPECT_EQ(message_of([&] { file.at("a").real(); }), "gguf value: asked for a number, the value is string");
  EXPECT_EQ(message_of([&] { file.at("a").boolean(); }), "gguf value: asked for a bool, the value is string");
  EXPECT_EQ(message_of([&] { file.at("a").size(); }), "gguf value: asked for an array, the value is string");
  EXPECT_EQ(message_of([&] { file.at("b").string(); }), "gguf value: asked for a string, the value is u64");
  EXPECT_EQ(message_of([&] { file.at("b").integer(); }),
            "gguf value: 18446744073709551615 does not fit a signed 64-bit integer");
  EXPECT_EQ(message_of([&] { file.at("c"); }), "gguf 'test': has no metadata key 'c'");
}

TEST(Gguf, reads_nested_arrays) {
  GgufBytes b(3, 0, 1);
  b.key("n", GgufType::array).put(uint32_t(GgufType::array)).size(2);
  b.put(uint32_t(GgufType::i32)).size(2).put(int32_t(1)).put(int32_t(-2));
  b.put(uint32_t(GgufType::f32)).size(1).put(0.5f);
  const GgufFile file = b.parse();
  const auto rows = file.at("n").elements();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].integers(), (std::vector<int64_t>{1, -2}));
  EXPECT_EQ(rows[1].reals(), (std::vector<double>{0.5}));
}

TEST(Gguf, reads_version_1_and_writes_it_as_version_3) {
  GgufBytes b(1, 1, 2);
  b.key("name", GgufType::string).text("old");
  b.key("list", GgufType::array).put(uint32_t(GgufType::string)).size(2).text("a").text("bc");
  b.tensor("w", {2, 3}, 0, 0).pad().zeros(24);
  const GgufFile file = b.parse();
  EXPECT_EQ(file.version(), 1u);
  EXPECT_EQ(file.tensor("w").dims, (std::vector<int64_t>{3, 2}));
  const std::string out = gguf_copy(file).to_bytes();
  const GgufFile again = GgufFile::parse(std::as_bytes(std::span(out)), nullptr, "again");
  EXPECT_EQ(again.version(), 3u);
  EXPECT_EQ(again.at("name").string(), "old");
  EXPECT_EQ(again.at("list").strings(), (std::vector<std::string_view>{"a", "bc"}));
  EXPECT_EQ(again.tensor("w").bytes.size(), 24u);
}

TEST(Gguf, follows_the_alignment_entry) {
  GgufWriter writer(128);
  EXPECT_EQ(message_of([&] { writer.to_bytes(); }),
            "gguf write: alignment 128 needs the entry general.alignment");
  EXPECT_EQ(message_of([&] { writer.add_u32("general.alignment", 64); }),
            "gguf write: general.alignment must be a u32 of 128, the alignment of this file");
  writer.add_u32("general.alignment", 128);
  const std::vector<std::byte> data(6, std::byte{7});
  writer.add_tensor({"a", StorageType::of(DType::i8), {6}, data, nullptr});
  writer.add_tensor({"b", StorageType::of(DType::i16), {3}, data, nullptr});
  const std::string out = writer.to_bytes();
  EXPECT_EQ(out.size() % 128, 0u);
  const GgufFile file = GgufFile::parse(std::as_bytes(std::span(out)), nullptr, "x");
  EXPECT_EQ(file.alignment(), 128u);
  EXPECT_EQ(file.tensor("b").bytes.data() - file.tensor("a").bytes.data(), 128);
}

class StoredModel : public testing::TestWithParam<const char*> {};

TEST_P(StoredModel, opens_decodes_and_copies_to_the_same_bytes) {
  const std::string name = std::string("gguf/llama-") + GetParam() + ".gguf";
  RLX_REQUIRE_DATA(name);
  const GgufFile file = GgufFile::open(test::data_path(name));
  EXPECT_EQ(file.at("general.architecture").string(), "llama");
  EXPECT_EQ(file.at("llama.embedding_length").integer(), 256);
  EXPECT_EQ(file.at("tokenizer.ggml.tokens").strings().size(), 512u);
  EXPECT_EQ(file.tensors().size(), 30u);
  EXPECT_EQ(file.tensor("token_embd.weight").dims, (std::vector<int64_t>{512, 256}));
  for (const TensorView& t : file.tensors()) {
    double sum = 0;
    for (const float v : to_f32(t)) sum += double(v) * v;
    EXPECT_TRUE(sum > 0 && sum < 1e9) << t.name;
  }
  EXPECT_TRUE(gguf_copy(file).to_bytes() == MappedFile::open(test::data_path(name)).text());
}

INSTANTIATE_TEST_SUITE_P(Gguf, StoredModel,
                         testing::Values("F16", "Q4_0", "Q4_1", "Q8_0", "Q2_K", "Q3_K_M", "Q4_K_M", "Q5_K_M",
                                         "Q6_K", "IQ4_NL", "IQ4_XS"),
                         [](const auto& info) { return std::string(info.param); });

// A model in two parts, as llama.cpp splits them.
void write_split(const std::string& stem, uint16_t second_number) {
  const std::vector<std::byte> data(8, std::byte{1});
  for (uint16_t part = 0; part < 2; ++part) {
    GgufWriter writer;
    const uint16_t number = part == 0 ? 0 : second_number, count = 2;
    writer.add("split.no", GgufValue(GgufType::u16, std::as_bytes(std::span(&number, 1)), true));
    writer.add("split.count", GgufValue(GgufType::u16, std::as_bytes(std::span(&count, 1)), true));
    writer.add_i32("split.tensors.count", 2);
    writer.add_tensor({part == 0 ? "a" : "b", StorageType::of(DType::f32), {2}, data, nullptr});
    writer.write(cat(stem, "-0000", part + 1, "-of-00002.gguf"));
  }
}

TEST(Gguf, joins_the_parts_of_a_split_model) {
  const test::Scratch folder;
  const std::string stem = folder.path("model");
  write_split(stem, 1);
  const GgufFile file = GgufFile::open(stem + "-00001-of-00002.gguf");
  EXPECT_EQ(file.file_count(), 2u);
  EXPECT_NE(file.find_tensor("a"), nullptr);
  EXPECT_NE(file.find_tensor("b"), nullptr);
  const std::string joined = gguf_copy(file).to_bytes();
  const GgufFile one = GgufFile::parse(std::as_bytes(std::span(joined)), nullptr, "joined");
  EXPECT_EQ(one.find("split.count"), nullptr);
  EXPECT_EQ(one.tensors().size(), 2u);
}

TEST(Gguf, refuses_split_models_that_do_not_fit_together) {
  const test::Scratch folder;
  const std::string stem = folder.path("model"), first = stem + "-00001-of-00002.gguf";
  write_split(stem, 7);
  EXPECT_NE(
      message_of([&] { GgufFile::open(first); }).find("split.no and split.count do not say part 2 of 2"),
      std::string::npos);
  write_split(stem, 1);
  EXPECT_NE(message_of([&] {
              GgufFile::open(stem + "-00002-of-00002.gguf");
            }).find("is part 2 of 2 of a split model"),
            std::string::npos);
  std::filesystem::rename(first, folder.path("other.gguf"));
  EXPECT_NE(message_of([&] {
              GgufFile::open(folder.path("other.gguf"));
            }).find("its name must end in -00001-of-00002"),
            std::string::npos);
  write_split(stem, 1);
  std::filesystem::remove(stem + "-00002-of-00002.gguf");
  EXPECT_NE(message_of([&] { GgufFile::open(first); }).find("cannot open"), std::string::npos);
}

TEST(Gguf, writer_refuses_what_the_format_cannot_hold) {
  const std::vector<std::byte> data(16);
  GgufWriter writer;
  const auto add = [&](const char* name, StorageType type, std::vector<int64_t> dims) {
    return message_of([&] { writer.add_tensor({name, type, dims, data, nullptr}); });
  };
  EXPECT_EQ(add("c", StorageType::of(DType::c64), {2}),
            "gguf write: tensor 'c' has type c64, which GGUF cannot hold");
  EXPECT_EQ(add("r", StorageType::of(DType::f32), {1, 1, 1, 1, 4}),
            "gguf write: tensor 'r' has 5 dimensions; at most 4");
  EXPECT_EQ(add("s", StorageType::of(DType::f32), {3}),
            "gguf write: tensor 's' f32[3] does not fit its 16 bytes");
  EXPECT_NE(add("", StorageType::of(DType::f32), {4}).find("must be valid UTF-8"), std::string::npos);
  EXPECT_EQ(add("x", StorageType::of(DType::f32), {4}), "no error");
  EXPECT_EQ(add("x", StorageType::of(DType::f32), {4}), "no error");
  EXPECT_EQ(message_of([&] { writer.to_bytes(); }), "gguf write: tensor 'x' was added twice");
  GgufWriter keys;
  keys.add_u32("k", 1), keys.add_f32("k", 2);
  EXPECT_EQ(message_of([&] { keys.to_bytes(); }), "gguf write: metadata key 'k' was added twice");
}

TEST(Gguf, names_the_nearest_tensor_when_one_is_missing) {
  GgufBytes b(3, 1, 0);
  b.tensor("blk.0.attn_q.weight", {1}, 0, 0).pad().zeros(4);
  EXPECT_EQ(message_of([&] { b.parse().tensor("blk.0.attn_q.weigth"); }),
            "gguf 'test': has no tensor 'blk.0.attn_q.weigth'; did you mean 'blk.0.attn_q.weight'");
}

TEST(Gguf, lists_types_without_decoder_and_names_them_when_decoded) {
  GgufBytes b(3, 1, 0);
  b.tensor("w", {256, 2}, 31, 0).pad().zeros(288);
  const GgufFile file = b.parse();
  EXPECT_EQ(file.tensor("w").type.name, "q4_0_4_4");
  EXPECT_EQ(message_of([&] { to_f32(file.tensor("w")); }).substr(0, 80),
            "io: tensor 'w' has type q4_0_4_4, which has no f32 form; decodable: f32, f16, q4");
}

}  // namespace
}  // namespace rlx::io
