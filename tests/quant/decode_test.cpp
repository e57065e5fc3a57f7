// Every block format of the test data decodes to the stored values, bit for bit.
#include <cstring>
#include <nlohmann/json.hpp>

#include "rlx/base/error.h"
#include "rlx/base/file.h"
#include "rlx/quant/format.h"
#include "tests/support/data.h"

namespace rlx::quant {
namespace {

struct Case {
  std::string packed;
  std::vector<float> expected;
  int type = 0, block = 0, block_bytes = 0;
};

Case read_case(const std::string& path) {
  const std::string file = read_file(path);
  uint64_t header = 0;
  std::memcpy(&header, file.data(), 8);
  const auto json = nlohmann::json::parse(file.substr(8, header));
  const auto slice = [&](const char* name) {
    const uint64_t begin = json[name]["data_offsets"][0], end = json[name]["data_offsets"][1];
    return file.substr(8 + header + begin, end - begin);
  };
  const auto number = [&](const char* key) {
    return std::stoi(json["__metadata__"][key].get<std::string>());
  };
  Case c;
  c.packed = slice("packed");
  const std::string expected = slice("expected");
  c.expected.resize(expected.size() / 4);
  std::memcpy(c.expected.data(), expected.data(), expected.size());
  c.type = number("ggml_type"), c.block = number("block"), c.block_bytes = number("block_bytes");
  return c;
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
  decode(*format, std::as_bytes(std::span(c.packed)), got);
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(c.expected[i]))
        << "element " << i << ": " << got[i] << " and " << c.expected[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Quant, StoredBlocks,
                         testing::Values("f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k",
                                         "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs", "tq1_0", "tq2_0",
                                         "mxfp4", "nvfp4"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Quant, decodes_at_any_alignment) {
  RLX_REQUIRE_DATA("quant/q4_k.safetensors");
  const Case c = read_case(test::data_path("quant/q4_k.safetensors"));
  const std::string shifted = "x" + c.packed;
  std::vector<float> got(c.expected.size());
  decode(*find_format("q4_k"), std::as_bytes(std::span(shifted)).subspan(1), got);
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

template <class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}

TEST(Quant, refuses_what_it_cannot_do_and_says_what_it_can) {
  std::vector<float> values(256);
  std::vector<std::byte> bytes(200);
  EXPECT_EQ(
      message_of([&] { decode(*find_format("iq2_s"), std::span(bytes).first(82), values); }).substr(0, 57),
      "quant: format iq2_s has no decoder; supported: f32, f16, ");
  EXPECT_EQ(message_of([&] { decode(*find_format("q4_k"), std::span(bytes).first(143), values); }),
            "quant decode: 256 elements of q4_k take 144 bytes, got 143");
  EXPECT_EQ(message_of([&] { encoded_bytes(*find_format("q4_0"), 33); }),
            "quant: 33 elements are no whole number of q4_0 blocks; a block has 32");
}

}  // namespace
}  // namespace rlx::quant
