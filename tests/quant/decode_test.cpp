// Every block format of the test data decodes to the stored values, bit for bit.
#include "rlx/io/safetensors.h"
#include "rlx/quant/format.h"
#include "tests/support/data.h"
#include "tests/support/errors.h"

namespace rlx::quant {
namespace {

struct Case {
  io::SafetensorsFile file;
  std::span<const std::byte> packed;
  std::vector<float> expected;
  int type, block, block_bytes;
};

Case read_case(const std::string& path) {
  io::SafetensorsFile file = io::SafetensorsFile::open(path);
  const auto number = [&](const char* key) { return std::stoi(*file.find_metadata(key)); };
  const auto packed = file.tensor("packed").bytes;
  std::vector<float> expected = io::to_f32(file.tensor("expected"));
  const int type = number("ggml_type"), block = number("block"), bytes = number("block_bytes");
  return {std::move(file), packed, std::move(expected), type, block, bytes};
}

class StoredBlocks : public testing::TestWithParam<const char*> {};

TEST_P(StoredBlocks, decode_bit_equal) {
  const std::string file = std::string("quant/") + GetParam() + ".safetensors";
  RLX_REQUIRE_DATA(file);
  const Case c = read_case(test::data_path(file));
  const BlockFormat* format = find_format(c.type);
  ASSERT_NE(format, nullptr);
  EXPECT_EQ(format, find_format(GetParam()));
  EXPECT_EQ(format->elements, c.block);
  EXPECT_EQ(format->bytes, c.block_bytes);
  std::vector<float> got(c.expected.size());
  decode(*format, c.packed, got);
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(c.expected[i]))
        << "element " << i << ": " << got[i] << " and " << c.expected[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Quant, StoredBlocks,
                         testing::Values("f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k",
                                         "q3_k", "q4_k", "q5_k", "q6_k", "iq1_s", "iq1_m", "iq2_xxs",
                                         "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq4_nl", "iq4_xs", "tq1_0",
                                         "tq2_0", "mxfp4", "nvfp4"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Quant, decodes_at_any_alignment) {
  RLX_REQUIRE_DATA("quant/q4_k.safetensors");
  const Case c = read_case(test::data_path("quant/q4_k.safetensors"));
  std::vector<std::byte> shifted(c.packed.size() + 1);
  std::copy(c.packed.begin(), c.packed.end(), shifted.begin() + 1);
  std::vector<float> got(c.expected.size());
  decode(*find_format("q4_k"), std::span(shifted).subspan(1), got);
  EXPECT_EQ(got, c.expected);
}

TEST(Quant, looks_formats_up_by_id_name_and_dtype) {
  EXPECT_EQ(find_format(12)->name, "q4_k");
  EXPECT_EQ(find_format("Q4_K"), find_format(12));
  EXPECT_EQ(find_format(4), nullptr);
  EXPECT_EQ(find_format(-1), nullptr);
  EXPECT_EQ(find_format(int64_t(1) << 32), nullptr);
  EXPECT_EQ(find_format("q4"), nullptr);
  EXPECT_EQ(format_of(DType::bf16)->ggml_id, 30);
  EXPECT_EQ(format_of(DType::c64), nullptr);
}

TEST(Quant, table_is_ascending_and_consistent) {
  int last = -1;
  for (const BlockFormat& f : formats()) {
    EXPECT_GT(f.ggml_id, last) << f.name;
    last = f.ggml_id;
    EXPECT_EQ(f.is_plain(), f.dtype.has_value()) << f.name;
    EXPECT_TRUE(!f.dtype || size_t(f.bytes) == dtype_size(*f.dtype)) << f.name;
    EXPECT_TRUE(!f.encode || f.decode) << f.name;
  }
}

TEST(Quant, refuses_what_it_cannot_do_and_says_what_it_can) {
  std::vector<float> values(256);
  std::vector<std::byte> bytes(200);
  EXPECT_EQ(test::message_of([&] {
              decode(*find_format("q4_0_4_4"), std::span(bytes).first(144), values);
            }).substr(0, 60),
            "quant: format q4_0_4_4 has no decoder; supported: f32, f16, ");
  EXPECT_EQ(test::message_of([&] { decode(*find_format("q4_k"), std::span(bytes).first(143), values); }),
            "quant decode: 256 elements of q4_k take 144 bytes, got 143");
  EXPECT_EQ(test::message_of([&] { encoded_bytes(*find_format("q4_0"), 33); }),
            "quant: 33 elements are no whole number of q4_0 blocks; a block has 32");
}

// One block by hand, so that the layout is known without stored data: where the scales lie, and their sign.
std::vector<float> one_block(const char* name, const std::vector<std::pair<size_t, uint8_t>>& set) {
  const BlockFormat& format = *find_format(name);
  std::vector<std::byte> block(size_t(format.bytes));
  for (const auto& [at, value] : set) block[at] = std::byte{value};
  std::vector<float> out(size_t(format.elements));
  decode(format, block, out);
  return out;
}

TEST(Quant, q6_k_scales_are_signed) {
  // Scale 0 of 16 is -1 (0xff), d = 1 at the end, all codes 0: (0 - 32) * -1.
  const auto w = one_block("q6_k", {{192, 0xff}, {208, 0x00}, {209, 0x3c}});
  EXPECT_EQ(w[0], 32.0f);
  EXPECT_EQ(w[16], 0.0f);
}

TEST(Quant, q2_k_keeps_its_halves_behind_scales_and_codes) {
  // 16 scale bytes (scale low nibble, min high), 64 code bytes, d, dmin: 1 * 3 * q - 2 * 1, q = 0 and 1.
  const auto w =
      one_block("q2_k", {{0, 0x13}, {16 + 1, 0x01}, {80, 0x00}, {81, 0x3c}, {82, 0x00}, {83, 0x40}});
  EXPECT_EQ(w[0], -2.0f);
  EXPECT_EQ(w[1], 1.0f);
}

TEST(Quant, q3_k_keeps_its_half_behind_masks_codes_and_scales) {
  // 32 mask bytes, 64 code bytes, 12 scale bytes, d: scale 0 has low bits 1 and high bits 2, so 33 - 32 = 1.
  // A clear mask bit takes 4 away.
  const auto w =
      one_block("q3_k", {{0, 0x01}, {32, 0x02}, {96, 0x01}, {104, 0x02}, {108, 0x00}, {109, 0x3c}});
  EXPECT_EQ(w[0], 2.0f);
  EXPECT_EQ(w[1], -4.0f);
}

TEST(Quant, a_q8_k_block_has_292_bytes) { EXPECT_EQ(find_format("q8_k")->bytes, 292); }

}  // namespace
}  // namespace rlx::quant
