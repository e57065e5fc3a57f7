#include "tests/io/gguf_bytes.h"
#include "tests/support/hostile.h"

namespace rlx::io {
namespace {

using test::Attack, test::attack_name, test::expect_only_errors_near;

constexpr uint32_t kF32 = 0, kQ4K = 12;

GgufBytes one_tensor(std::initializer_list<uint64_t> extents, uint32_t type, uint64_t offset, size_t data) {
  GgufBytes b(3, 1, 0);
  b.tensor("w", extents, type, offset).pad().zeros(data);
  return b;
}

std::string nested_arrays(int levels) {
  GgufBytes b(3, 0, 1);
  b.key("deep", GgufType::array);
  for (int i = 0; i < levels; ++i) b.put(uint32_t(GgufType::array)).size(1);
  return b.put(uint32_t(GgufType::u8)).size(0).bytes;
}

const Attack kAttacks[] = {
    {"empty_file", [] { return std::string(); }, "magic at offset 0: needs 4 bytes, 0 are left"},
    {"wrong_magic", [] { return std::string("GGML\3\0\0\0", 8); }, "does not begin with 'GGUF'"},
    {"version_zero", [] { return GgufBytes(0).bytes; }, "version 0 at offset 4 is unknown"},
    {"version_from_the_future", [] { return GgufBytes(4).bytes; }, "version 4 at offset 4 is unknown"},
    {"big_endian", [] { return GgufBytes(0x03000000).bytes; }, "big-endian"},
    {"tensor_count_absurd", [] { return GgufBytes(3, UINT64_MAX, 0).bytes; },
     "18446744073709551615 tensors do not fit"},
    {"entry_count_absurd", [] { return GgufBytes(3, 0, uint64_t(1) << 60).bytes; }, "entries do not fit"},
    {"entry_count_beyond_the_end", [] { return GgufBytes(3, 0, 1).bytes; },
     "1 entries do not fit the 0 bytes left"},
    {"key_length_overflows", [] { return GgufBytes(3, 0, 1).size(UINT64_MAX).zeros(64).bytes; },
     "metadata key at offset 32: length 18446744073709551615 is above the limit"},
    {"key_beyond_the_end", [] { return GgufBytes(3, 0, 1).size(1000).zeros(64).bytes; },
     "needs 1000 bytes, 64 are left"},
    {"key_empty", [] { return GgufBytes(3, 0, 1).text("").zeros(64).bytes; },
     "metadata key at offset 32: is empty"},
    {"key_not_utf8", [] { return GgufBytes(3, 0, 1).key("a\xff", GgufType::u8).put(uint8_t(1)).bytes; },
     "metadata key at offset 34: is not valid UTF-8"},
    {"key_twice",
     [] {
       return GgufBytes(3, 0, 2)
           .key("k", GgufType::u8)
           .put(uint8_t(1))
           .key("k", GgufType::u8)
           .put(uint8_t(2))
           .bytes;
     },
     "metadata key 'k' occurs twice"},
    {"value_type_unknown", [] { return GgufBytes(3, 0, 1).text("k").put(uint32_t(13)).zeros(8).bytes; },
     "type of 'k' at offset 37: type number 13 is unknown"},
    {"string_length_absurd",
     [] { return GgufBytes(3, 0, 1).key("k", GgufType::string).size(UINT64_MAX).bytes; },
     "string at offset 45: needs 18446744073709551615 bytes, 0 are left"},
    {"bool_that_is_neither",
     [] { return GgufBytes(3, 0, 1).key("k", GgufType::bool_).put(uint8_t(2)).bytes; },
     "value 2; 0 or 1 expected"},
    {"array_length_times_size_overflows",
     [] {
       return GgufBytes(3, 0, 1)
           .key("k", GgufType::array)
           .put(uint32_t(GgufType::f64))
           .size(uint64_t(1) << 61)
           .zeros(8)
           .bytes;
     },
     "2305843009213693952 elements of f64 need more than the 8 bytes left"},
    {"array_of_strings_absurd",
     [] {
       return GgufBytes(3, 0, 1)
           .key("k", GgufType::array)
           .put(uint32_t(GgufType::string))
           .size(uint64_t(1) << 50)
           .bytes;
     },
     "1125899906842624 elements, only 0 bytes are left"},
    {"array_element_type_unknown",
     [] { return GgufBytes(3, 0, 1).key("k", GgufType::array).put(uint32_t(99)).size(0).bytes; },
     "type number 99 is unknown"},
    {"arrays_nested_too_deep", [] { return nested_arrays(1000); }, "nested deeper than 8 levels"},
    {"alignment_zero",
     [] { return GgufBytes(3, 0, 1).key("general.alignment", GgufType::u32).put(uint32_t(0)).bytes; },
     "general.alignment is 0; a power of two expected"},
    {"alignment_not_a_power_of_two",
     [] { return GgufBytes(3, 0, 1).key("general.alignment", GgufType::u32).put(uint32_t(48)).bytes; },
     "general.alignment is 48; a power of two expected"},
    {"alignment_of_another_type",
     [] { return GgufBytes(3, 0, 1).key("general.alignment", GgufType::string).text("32").bytes; },
     "general.alignment has type string; u32 expected"},
    {"tensor_name_twice",
     [] {
       return GgufBytes(3, 2, 0).tensor("w", {8}, kF32, 0).tensor("w", {8}, kF32, 32).pad().zeros(64).bytes;
     },
     "tensor 'w' occurs twice"},
    {"tensor_rank_absurd", [] { return GgufBytes(3, 1, 0).text("w").put(uint32_t(1000000)).zeros(64).bytes; },
     "tensor 'w' rank at offset 37: 1000000 dimensions; at most 4"},
    {"tensor_extents_overflow",
     [] { return one_tensor({uint64_t(1) << 40, uint64_t(1) << 40}, kF32, 0, 64).bytes; },
     "has no whole size"},
    {"tensor_extent_above_63_bits", [] { return one_tensor({UINT64_MAX}, kF32, 0, 64).bytes; },
     "is too large"},
    {"tensor_extents_overflow_behind_a_zero",
     [] { return one_tensor({0, uint64_t(1) << 62, uint64_t(1) << 62}, kF32, 0, 0).bytes; },
     "has no whole size"},
    {"tensor_bytes_overflow", [] { return one_tensor({uint64_t(1) << 62}, kF32, 0, 64).bytes; },
     "has no whole size"},
    {"tensor_row_splits_a_block", [] { return one_tensor({128, 2}, kQ4K, 0, 144).bytes; },
     "rows must be a multiple of 256 elements"},
    {"tensor_type_unknown", [] { return one_tensor({8}, 4, 0, 32).bytes; }, "type number 4 is unknown"},
    {"tensor_beyond_the_end", [] { return one_tensor({1000}, kF32, 0, 64).bytes; },
     "its 4000 bytes reach beyond the end of the file"},
    {"tensor_offset_overflows", [] { return one_tensor({8}, kF32, UINT64_MAX - 31, 64).bytes; },
     "reach beyond the end of the file"},
    {"tensor_misaligned", [] { return one_tensor({8}, kF32, 4, 64).bytes; },
     "tensor 'w' at data offset 4: is not a multiple of the alignment 32"},
    {"tensors_overlap",
     [] {
       return GgufBytes(3, 2, 0)
           .tensor("a", {16}, kF32, 0)
           .tensor("b", {16}, kF32, 32)
           .pad()
           .zeros(128)
           .bytes;
     },
     "tensor 'b' at data offset 32: overlaps the tensor before it, which ends at 64"},
    {"tensors_leave_a_hole",
     [] {
       return GgufBytes(3, 2, 0).tensor("a", {8}, kF32, 0).tensor("b", {8}, kF32, 64).pad().zeros(128).bytes;
     },
     "tensor 'b' at data offset 64: leaves a hole after the tensor before it, which ends at 32"},
    {"bytes_after_the_last_tensor", [] { return one_tensor({8}, kF32, 0, 32 + 100).bytes; },
     "100 bytes follow the last tensor"},
};

class HostileGguf : public testing::TestWithParam<Attack> {};

TEST_P(HostileGguf, is_refused_with_place_and_reason) {
  const std::string bytes = GetParam().bytes();
  const std::string message =
      test::message_of([&] { GgufFile::parse(std::as_bytes(std::span(bytes)), nullptr, "evil"); });
  EXPECT_NE(message.find(GetParam().refusal), std::string::npos) << message;
  EXPECT_TRUE(message.starts_with("gguf 'evil': ")) << message;
}

INSTANTIATE_TEST_SUITE_P(Io, HostileGguf, testing::ValuesIn(kAttacks), attack_name);

TEST(HostileGguf, prefixes_and_changed_bytes_give_errors_only) {
  GgufBytes b(3, 2, 3);
  b.key("s", GgufType::string).text("text");
  b.key("l", GgufType::array).put(uint32_t(GgufType::string)).size(2).text("a").text("b");
  b.key("n", GgufType::array)
      .put(uint32_t(GgufType::array))
      .size(1)
      .put(uint32_t(GgufType::i16))
      .size(1)
      .put(int16_t(5));
  b.tensor("w", {8}, kF32, 0).tensor("q", {32}, 2, 32).pad().zeros(50);
  expect_only_errors_near(b.bytes, [](const std::string& bytes) {
    const GgufFile file = GgufFile::parse(std::as_bytes(std::span(bytes)), nullptr, "x");
    for (const GgufEntry& e : file.entries()) {
      if (e.value.type() == GgufType::array) (void)e.value.elements();
    }
    for (const TensorView& t : file.tensors()) {
      if (t.type.format->decode) (void)to_f32(t);
    }
  });
}

}  // namespace
}  // namespace rlx::io
