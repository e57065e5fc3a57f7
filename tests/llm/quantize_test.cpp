// Models quantised here against the same models quantised by others.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "rlx/llm/quantize_model.h"
#include "tests/support/data.h"
#include "tests/support/errors.h"

namespace rlx::llm {
namespace {

std::vector<float> values_of(const io::TensorView& t) {
  std::vector<float> out(size_t(t.elements()));
  quant::decode(*t.type.format, t.bytes, out);
  return out;
}

// Norm of the difference over norm of the values, over all tensors that `file` holds in blocks.
double error_of(const io::GgufFile& file, const io::GgufFile& exact) {
  double difference = 0, size = 0;
  for (const io::TensorView& t : file.tensors()) {
    if (t.type.format->is_plain()) continue;
    const std::vector<float> mine = values_of(t), theirs = values_of(exact.tensor(t.name));
    for (size_t i = 0; i < mine.size(); ++i) {
      difference += std::pow(double(mine[i]) - double(theirs[i]), 2);
      size += double(theirs[i]) * double(theirs[i]);
    }
  }
  return std::sqrt(difference / size);
}

class Mix : public testing::TestWithParam<const char*> {};

TEST_P(Mix, IsNotWorseThanTheStoredFile) {
  const std::string stored = std::string("gguf/llama-") + GetParam() + ".gguf";
  RLX_REQUIRE_DATA(stored);
  const std::string source = test::data_path("gguf/llama-F16.gguf");
  const std::string out = testing::TempDir() + "rlx_quantize_" + GetParam() + ".gguf";
  const QuantizeReport report = quantize_model(source, out, quant_mix_named(GetParam()));
  EXPECT_GT(report.changed, 0);
  const io::GgufFile exact = io::GgufFile::open(source), mine = io::GgufFile::open(out),
                     theirs = io::GgufFile::open(test::data_path(stored));
  EXPECT_EQ(mine.tensors().size(), theirs.tensors().size());
  EXPECT_LE(error_of(mine, exact), 1.05 * error_of(theirs, exact));
  EXPECT_EQ(mine.at("general.file_type").integer(), theirs.at("general.file_type").integer());
  std::filesystem::remove(out);
}
INSTANTIATE_TEST_SUITE_P(Stored, Mix,
                         testing::Values("Q4_0", "Q4_1", "Q8_0", "Q2_K", "Q3_K_M", "Q4_K_M", "Q5_K_M", "Q6_K",
                                         "IQ4_NL", "IQ4_XS"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Quantize, RefusesByName) {
  EXPECT_EQ(test::message_of([] { quant_mix_named("Q7"); }).substr(0, 44),
            "quantize: unknown type 'Q7'; known: F32, F16");
  RLX_REQUIRE_DATA("gguf/llama-Q4_0.gguf");
  const std::string again = test::message_of([] {
    quantize_model(test::data_path("gguf/llama-Q4_0.gguf"), testing::TempDir() + "rlx_twice.gguf",
                   quant_mix_named("Q8_0"));
  });
  EXPECT_NE(again.find("start from f32, f16 or bf16"), again.npos) << again;
}

}  // namespace
}  // namespace rlx::llm
