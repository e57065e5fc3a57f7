#include "rlx/io/safetensors.h"

#include <cstring>
#include <filesystem>

#include "rlx/base/file.h"
#include "tests/support/data.h"
#include "tests/support/errors.h"
#include "tests/support/scratch.h"

namespace rlx::io {
namespace {

using test::message_of;

SafetensorsFile parse(const std::string& bytes) {
  return SafetensorsFile::parse(std::as_bytes(std::span(bytes)), nullptr, "test");
}

std::string file_of(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

TEST(Safetensors, reads_every_dtype_of_the_format) {
  const std::tuple<const char*, const char*, int, int> types[] = {{"BOOL", "bool", 8, 8},
                                                                  {"F4", "f4", 8, 4},
                                                                  {"F6_E2M3", "f6e2m3", 8, 6},
                                                                  {"F6_E3M2", "f6e3m2", 8, 6},
                                                                  {"U8", "u8", 8, 8},
                                                                  {"I8", "i8", 8, 8},
                                                                  {"F8_E5M2", "f8e5m2", 8, 8},
                                                                  {"F8_E4M3", "f8e4m3", 8, 8},
                                                                  {"F8_E8M0", "f8e8m0", 8, 8},
                                                                  {"F8_E4M3FNUZ", "f8e4m3fnuz", 8, 8},
                                                                  {"F8_E5M2FNUZ", "f8e5m2fnuz", 8, 8},
                                                                  {"I16", "i16", 8, 16},
                                                                  {"U16", "u16", 8, 16},
                                                                  {"F16", "f16", 8, 16},
                                                                  {"BF16", "bf16", 8, 16},
                                                                  {"I32", "i32", 8, 32},
                                                                  {"U32", "u32", 8, 32},
                                                                  {"F32", "f32", 8, 32},
                                                                  {"C64", "c64", 8, 64},
                                                                  {"F64", "f64", 8, 64},
                                                                  {"I64", "i64", 8, 64},
                                                                  {"U64", "u64", 8, 64}};
  for (const auto& [word, name, elements, bytes] : types) {
    const std::string header = cat("{\"x\":{\"dtype\":\"", word, "\",\"shape\":[2,", elements / 2,
                                   "],\"data_offsets\":[0,", bytes, "]}}");
    const std::string data(size_t(bytes), '\x11'), in = file_of(header, data);
    const SafetensorsFile file = parse(in);
    EXPECT_EQ(file.tensor("x").type.name, name);
    EXPECT_EQ(safetensors_dtype(file.tensor("x").type), word);
    const std::string out = safetensors_bytes(file.tensors());
    EXPECT_EQ(parse(out).tensor("x").bytes.size(), size_t(bytes)) << word;
  }
}

TEST(Safetensors, keeps_metadata_names_and_order) {
  const std::string in = file_of(
      R"({"__metadata__":{"format":"pt","quote\"d":"a\u00e9\n"},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},)"
      R"("a b":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}   )",
      "xyz");
  const SafetensorsFile file = parse(in);
  EXPECT_EQ(file.metadata(), (Metadata{{"format", "pt"}, {"quote\"d", "a\xc3\xa9\n"}}));
  EXPECT_EQ(file.tensors()[0].name, "b");
  EXPECT_EQ(char(file.tensor("a b").bytes[0]), 'x');
  EXPECT_TRUE(file.tensor("a b").dims.empty());
  const std::string out = safetensors_bytes(file.tensors(), file.metadata());
  const SafetensorsFile again = parse(out);
  EXPECT_EQ(again.metadata(), file.metadata());
  EXPECT_EQ(char(again.tensor("b").bytes[1]), 'z');
  EXPECT_EQ(safetensors_bytes(again.tensors(), again.metadata()), out);
  uint64_t length = 0;
  std::memcpy(&length, out.data(), 8);
  EXPECT_EQ((8 + length) % 64, 0u);
}

TEST(Safetensors, empty_files_and_empty_tensors_are_fine) {
  EXPECT_TRUE(parse(file_of("{}", "")).tensors().empty());
  const std::string in = file_of(
      R"({"x":{"dtype":"F32","shape":[0,5],"data_offsets":[0,0]},"y":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      "abcd");
  EXPECT_EQ(parse(in).tensor("x").elements(), 0);
  EXPECT_EQ(safetensors_bytes({}).size(), 64u);
}

TEST(Safetensors, stored_checkpoints_open_and_copy) {
  RLX_REQUIRE_DATA("checkpoints");
  int files = 0;
  using Folder = std::filesystem::recursive_directory_iterator;
  for (const auto& entry :
       Folder(test::data_path(""), std::filesystem::directory_options::follow_directory_symlink)) {
    if (entry.path().extension() != ".safetensors") continue;
    const SafetensorsFile file = SafetensorsFile::open(entry.path().string());
    const std::string bytes = safetensors_bytes(file.tensors(), file.metadata());
    const SafetensorsFile again = parse(bytes);
    ASSERT_EQ(again.tensors().size(), file.tensors().size()) << entry.path();
    EXPECT_EQ(again.metadata(), file.metadata());
    for (const TensorView& t : file.tensors()) {
      const TensorView& copy = again.tensor(t.name);
      EXPECT_EQ(copy.dims, t.dims);
      EXPECT_TRUE(copy.type == t.type);
      EXPECT_TRUE(std::equal(copy.bytes.begin(), copy.bytes.end(), t.bytes.begin(), t.bytes.end()));
    }
    ++files;
  }
  EXPECT_GT(files, 100);
}

class Sharded : public testing::Test {
 protected:
  void write_shards() {
    const std::vector<std::byte> data(4, std::byte{1});
    const TensorView a{"a", StorageType::of(DType::f32), {1}, data, nullptr};
    TensorView b = a;
    b.name = "b";
    write_safetensors(folder.path("model-00001-of-00002.safetensors"), std::span(&a, 1), {{"format", "pt"}});
    write_safetensors(folder.path("model-00002-of-00002.safetensors"), std::span(&b, 1), {{"format", "pt"}});
  }
  void write_index(const std::string& map) {
    write_file(folder.path("model.safetensors.index.json"),
               R"({"metadata":{"total_size":8},"weight_map":)" + map + "}");
  }
  std::string refusal() {
    return message_of([&] { SafetensorsFile::open(folder.path()); });
  }
  test::Scratch folder;
};

TEST_F(Sharded, model_opens_from_folder_and_from_index) {
  write_shards();
  write_index(R"({"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"})");
  for (const std::string& path : {folder.path(), folder.path("model.safetensors.index.json")}) {
    const SafetensorsFile file = SafetensorsFile::open(path);
    EXPECT_EQ(file.file_count(), 2u);
    EXPECT_EQ(file.tensors().size(), 2u);
    EXPECT_EQ(file.metadata(), (Metadata{{"format", "pt"}}));
    EXPECT_EQ(file.tensor("b").bytes.size(), 4u);
  }
}

TEST_F(Sharded, index_that_disagrees_with_the_shards_is_refused) {
  write_shards();
  write_index(R"({"a":"model-00001-of-00002.safetensors","c":"model-00002-of-00002.safetensors"})");
  EXPECT_NE(refusal().find(
                "weight_map puts tensor 'c' in 'model-00002-of-00002.safetensors', which does not have it"),
            std::string::npos);
  write_index(R"({"a":"model-00001-of-00002.safetensors","b":"../model-00002-of-00002.safetensors"})");
  EXPECT_NE(refusal().find("a plain file name expected"), std::string::npos);
  write_index(R"({"a":"model-00001-of-00002.safetensors","b":3})");
  EXPECT_NE(refusal().find("weight_map 'b' must be a string"), std::string::npos);
  write_index("[]");
  EXPECT_NE(refusal().find("needs an object 'weight_map'"), std::string::npos);
  write_index(R"({"a":"model-00001-of-00002.safetensors","b":"model-00003-of-00002.safetensors"})");
  EXPECT_NE(refusal().find("cannot open"), std::string::npos);
}

TEST_F(Sharded, folder_without_a_model_says_what_it_looked_for) {
  EXPECT_NE(refusal().find("neither model.safetensors nor model.safetensors.index.json"), std::string::npos);
}

TEST(Safetensors, writer_refuses_what_the_format_cannot_hold) {
  const std::vector<std::byte> data(18);
  const auto write = [&](std::vector<TensorView> tensors) {
    return message_of([&] { safetensors_bytes(tensors); });
  };
  EXPECT_EQ(write({{"q", StorageType::of(*quant::find_format("q4_0")), {32}, data, nullptr}}),
            "safetensors write: tensor 'q' has type q4_0, which the format cannot hold; decode it first");
  EXPECT_EQ(write({{"x", StorageType::of(DType::i8), {17}, data, nullptr}}),
            "safetensors write: tensor 'x' i8[17] does not fit its 18 bytes");
  const TensorView ok{"x", StorageType::of(DType::i8), {18}, data, nullptr};
  EXPECT_EQ(write({ok, ok}), "safetensors write: tensor 'x' was given twice");
  EXPECT_EQ(write({{"__metadata__", StorageType::of(DType::i8), {18}, data, nullptr}}),
            "safetensors write: no tensor may be called __metadata__");
}

}  // namespace
}  // namespace rlx::io
