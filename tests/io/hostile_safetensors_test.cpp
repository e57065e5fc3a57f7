#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "rlx/base/file.h"
#include "rlx/io/model_file.h"
#include "rlx/io/safetensors.h"
#include "tests/support/hostile.h"
#include "tests/support/scratch.h"

namespace rlx::io {
namespace {

using test::Attack, test::attack_name, test::expect_only_errors_near;

std::string with_header(const std::string& header, size_t data = 0) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(data, '\0');
}

std::string one(const std::string& info, size_t data = 4) {
  return with_header("{\"x\":" + info + "}", data);
}

const Attack kAttacks[] = {
    {"empty_file", [] { return std::string(); }, "header length at offset 0: needs 8 bytes, 0 are left"},
    {"header_length_absurd", [] { return std::string(8, '\xff') + "{}"; }, "is above the limit of 100000000"},
    {"header_beyond_the_end", [] { return std::string("\x40\0\0\0\0\0\0\0{}", 10); },
     "needs 64 bytes, 2 are left"},
    {"header_is_a_list", [] { return with_header("[]"); }, "must begin with '{'"},
    {"header_cut_short", [] { return with_header("{\"x\":"); }, "JSON is malformed"},
    {"header_with_text_behind", [] { return with_header("{} {}"); }, "JSON is malformed"},
    {"header_not_utf8", [] { return with_header("{\"\xff\":1}"); }, "JSON is malformed"},
    {"header_nested_too_deep",
     [] { return with_header("{\"x\":" + std::string(100000, '[') + std::string(100000, ']') + "}"); },
     "nests deeper than 512 levels"},
    {"tensor_is_a_number", [] { return one("3"); }, "tensor 'x' must be an object"},
    {"dtype_unknown", [] { return one(R"({"dtype":"F31","shape":[1],"data_offsets":[0,4]})"); },
     "unknown dtype 'F31'"},
    {"dtype_missing", [] { return one(R"({"shape":[1],"data_offsets":[0,4]})"); },
     "needs dtype, shape and data_offsets"},
    {"field_unknown", [] { return one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4],"evil":1})"); },
     "tensor 'x' has the field 'evil'"},
    {"field_twice", [] { return one(R"({"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]})"); },
     "the key 'dtype' occurs twice in one object"},
    {"shape_negative", [] { return one(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})"); },
     "shape must be a whole number, not negative"},
    {"shape_fraction", [] { return one(R"({"dtype":"F32","shape":[1.5],"data_offsets":[0,4]})"); },
     "shape must be a whole number"},
    {"shape_overflows",
     [] { return one(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]})"); },
     "overflows"},
    {"shape_overflows_behind_a_zero",
     [] {
       return one(
           R"({"dtype":"F32","shape":[0,4611686018427387904,4611686018427387904],"data_offsets":[0,0]})", 0);
     },
     "overflows"},
    {"shape_disagrees_with_offsets",
     [] { return one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})"); },
     "f32[2] takes 8 bytes, data_offsets give 4"},
    {"half_a_byte", [] { return one(R"({"dtype":"F4","shape":[7],"data_offsets":[0,4]})"); },
     "splits a byte"},
    {"offsets_backwards", [] { return one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})"); },
     "data_offsets run backwards: 4 to 0"},
    {"offsets_three", [] { return one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4,8]})"); },
     "must be an array of two numbers"},
    {"offsets_absurd",
     [] {
       return one(
           R"({"dtype":"F32","shape":[1],"data_offsets":[18446744073709551612,18446744073709551615]})");
     },
     "is 18446744073709551612, too large"},
    {"tensor_beyond_the_end", [] { return one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})"); },
     "ends at 8, the data has 4 bytes"},
    {"tensors_overlap",
     [] {
       return with_header(
           R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
           4);
     },
     "tensor 'b' at data offset 2: overlaps the tensor before it, which ends at 3"},
    {"tensors_leave_a_hole",
     [] {
       return with_header(
           R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
           4);
     },
     "leaves a hole"},
    {"bytes_after_the_last_tensor", [] { return one(R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]})"); },
     "3 bytes follow the last tensor"},
    {"tensor_name_twice",
     [] {
       return with_header(
           R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
           2);
     },
     "the key 'a' occurs twice in one object"},
    {"metadata_not_strings", [] { return with_header(R"({"__metadata__":{"a":1}})"); },
     "__metadata__ 'a' must be a string"},
    {"metadata_twice", [] { return with_header(R"({"__metadata__":{},"__metadata__":{}})"); },
     "the key '__metadata__' occurs twice in one object"},
    {"metadata_key_twice", [] { return with_header(R"({"__metadata__":{"a":"1","a":"2"}})"); },
     "the key 'a' occurs twice in one object"},
};

class HostileSafetensors : public testing::TestWithParam<Attack> {};

TEST_P(HostileSafetensors, is_refused_with_place_and_reason) {
  const std::string bytes = GetParam().bytes();
  const std::string message =
      test::message_of([&] { SafetensorsFile::parse(std::as_bytes(std::span(bytes)), nullptr, "evil"); });
  EXPECT_NE(message.find(GetParam().refusal), std::string::npos) << message;
  EXPECT_TRUE(message.starts_with("safetensors 'evil': ")) << message;
}

INSTANTIATE_TEST_SUITE_P(Io, HostileSafetensors, testing::ValuesIn(kAttacks), attack_name);

TEST(HostileSafetensors, prefixes_and_changed_bytes_give_errors_only) {
  const std::string good = with_header(
      R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"b":{"dtype":"I8","shape":[],"data_offsets":[16,17]}})",
      17);
  expect_only_errors_near(good, [](const std::string& bytes) {
    const SafetensorsFile file = SafetensorsFile::parse(std::as_bytes(std::span(bytes)), nullptr, "x");
    for (const TensorView& t : file.tensors()) {
      if (t.type.dtype && *t.type.dtype != DType::c64) (void)to_f32(t);
    }
  });
}

TEST(HostileSafetensors, an_index_that_names_itself_or_a_folder_is_refused) {
  const test::Scratch folder;
  const std::string index = folder.path("model.safetensors.index.json");
  write_file(index, R"({"weight_map":{"a":"model.safetensors.index.json"}})");
  EXPECT_NE(test::message_of([&] {
              SafetensorsFile::open(folder.path());
            }).find("safetensors '" + index + "': header length"),
            std::string::npos);
  EXPECT_NE(test::message_of([&] { SafetensorsFile::open(index); }).find("header length"), std::string::npos);
  std::filesystem::create_directory(folder.path("inner"));
  write_file(index, R"({"weight_map":{"a":"inner"}})");
  EXPECT_NE(test::message_of([&] { SafetensorsFile::open(index); }), "no error");
}

TEST(HostileSafetensors, a_loop_of_links_in_a_folder_is_an_error_that_names_it) {
  const test::Scratch folder;
  write_file(folder.path("config.json"), "{}");
  std::filesystem::create_symlink("b", folder.path("model.safetensors"));
  std::filesystem::create_symlink("model.safetensors", folder.path("b"));
  EXPECT_EQ(
      test::message_of([&] { ModelFile::open(folder.path()); }),
      "file: cannot look at '" + folder.path("model.safetensors") + "': Too many levels of symbolic links");
}

TEST(HostileSafetensors, pipes_in_a_folder_are_refused_at_once) {
  const test::Scratch folder;
  for (const char* name : {"config.json", "chat_template.jinja", "model.safetensors"}) {
    const std::string path = folder.path(name);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    EXPECT_EQ(test::message_of([&] {
                if (path_kind(folder.path("model.safetensors")) != PathKind::missing)
                  ModelFile::open(folder.path());
                HfFolder::open(folder.path());
              }),
              "file: '" + path + "' is not a regular file; it is a pipe");
    ::unlink(path.c_str());
  }
}

TEST(HostileSafetensors, a_file_cut_in_its_header_is_still_called_safetensors) {
  const test::Scratch folder;
  const std::string good = safetensors_bytes({}, {{"a", "b"}});
  write_file(folder.path("cut"), good.substr(0, 20));
  EXPECT_EQ(test::message_of([&] { ModelFile::open(folder.path("cut")); }),
            cat("safetensors '", folder.path("cut"), "': header at offset 8: needs ", good.size() - 8,
                " bytes, 12 are left"));
}

}  // namespace
}  // namespace rlx::io
