#include "rlx/io/safetensors.h"
#include "tests/support/hostile.h"

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
     "nests deeper than 64 levels"},
    {"tensor_is_a_number", [] { return one("3"); }, "tensor 'x' must be an object"},
    {"dtype_unknown", [] { return one(R"({"dtype":"F31","shape":[1],"data_offsets":[0,4]})"); },
     "unknown dtype 'F31'"},
    {"dtype_missing", [] { return one(R"({"shape":[1],"data_offsets":[0,4]})"); },
     "needs dtype, shape and data_offsets"},
    {"field_unknown", [] { return one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4],"evil":1})"); },
     "tensor 'x' has the field 'evil'"},
    {"field_twice", [] { return one(R"({"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]})"); },
     "tensor 'x' has the field 'dtype'"},
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
     "tensor 'a' occurs twice"},
    {"metadata_not_strings", [] { return with_header(R"({"__metadata__":{"a":1}})"); },
     "__metadata__ 'a' must be a string"},
    {"metadata_twice", [] { return with_header(R"({"__metadata__":{},"__metadata__":{}})"); },
     "__metadata__ must be one object"},
    {"metadata_key_twice", [] { return with_header(R"({"__metadata__":{"a":"1","a":"2"}})"); },
     "__metadata__ 'a' occurs twice"},
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

}  // namespace
}  // namespace rlx::io
