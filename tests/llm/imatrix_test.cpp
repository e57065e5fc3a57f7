// Importance matrices: what is measured, their files, and what quantising wins by them.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "rlx/base/file.h"
#include "rlx/llm/imatrix.h"
#include "rlx/llm/quantize_model.h"
#include "tests/support/data.h"
#include "tests/support/errors.h"
#include "tests/support/scratch.h"

namespace rlx::llm {
namespace {

using test::Scratch;

std::vector<text::TokenId> some_text(int64_t vocab, size_t size) {
  std::vector<text::TokenId> out;
  uint64_t x = 12345;
  for (size_t i = 0; i < size; ++i) {
    x = x * 6364136223846793005ull + 1442695040888963407ull;
    out.push_back(text::TokenId((x >> 33) % uint64_t(vocab)));
  }
  return out;
}

ImportanceMatrix measured(const std::string& path, int64_t chunk = 48) {
  const models::Model model = models::open_model(path);
  return measure_importance(model, some_text(model.config().vocab, 200), {.chunk = chunk});
}

TEST(Imatrix, EveryProductIsMeasured) {
  RLX_REQUIRE_DATA("gguf/llama-F16.gguf");
  const ImportanceMatrix m = measured(test::data_path("gguf/llama-F16.gguf"));
  EXPECT_EQ(m.chunks, 4);  // of 48 tokens; the rest of 8 is left out
  const models::Model model = models::open_model(test::data_path("gguf/llama-F16.gguf"));
  for (const io::TensorView& t : model.file().tensors) {
    const bool product = t.dims.size() == 2 && t.name.find("token_embd") == t.name.npos;
    const ImportanceMatrix::Entry* e = m.find(t.name);
    ASSERT_EQ(e != nullptr, product) << t.name;
    if (e == nullptr) continue;
    EXPECT_EQ(e->columns(), t.dims[1]) << t.name;
    EXPECT_EQ(e->counts, std::vector<double>{192}) << t.name;
    for (const double v : e->sums) ASSERT_GE(v, 0);
  }
  // q, k and v read one tensor.
  EXPECT_EQ(m.entries.at("blk.0.attn_q.weight").sums, m.entries.at("blk.0.attn_v.weight").sums);
}

// A norm scales its tokens to a mean square of 1 before the weight of the norm.
TEST(Imatrix, SumsAreThoseOfTheActivations) {
  RLX_REQUIRE_DATA("checkpoints/llama");
  const models::Model model = models::open_model(test::data_path("checkpoints/llama"));
  const ImportanceMatrix m = measure_importance(model, some_text(model.config().vocab, 64), {.chunk = 64});
  std::vector<float> gamma;
  for (const io::TensorView& t : model.file().tensors)
    if (t.name == "model.layers.0.input_layernorm.weight") gamma = io::to_f32(t);
  const ImportanceMatrix::Entry& e = m.entries.at("blk.0.attn_q.weight");
  ASSERT_EQ(int64_t(gamma.size()), e.columns());
  double sum = 0;
  for (size_t i = 0; i < gamma.size(); ++i) sum += e.sums[i] / (double(gamma[i]) * double(gamma[i]));
  EXPECT_NEAR(sum / (64.0 * double(gamma.size())), 1, 1e-2);  // less by the epsilon of the norm
}

TEST(Imatrix, ExpertsHaveTheirOwn) {
  RLX_REQUIRE_DATA("checkpoints/mixtral");
  const models::Model model = models::open_model(test::data_path("checkpoints/mixtral"));
  const models::Experts& moe = model.config().moe;
  const ImportanceMatrix m = measure_importance(model, some_text(model.config().vocab, 64), {.chunk = 64});
  const ImportanceMatrix::Entry& e = m.entries.at("blk.0.ffn_gate_exps.weight");
  ASSERT_EQ(int64_t(e.counts.size()), moe.experts);
  EXPECT_EQ(e.columns(), model.config().hidden);
  double rows = 0;
  for (const double c : e.counts) rows += c;
  EXPECT_EQ(rows, double(64 * moe.chosen));
}

TEST(Imatrix, FilesKeepIt) {
  RLX_REQUIRE_DATA("checkpoints/mixtral");
  ImportanceMatrix m = measured(test::data_path("checkpoints/mixtral"));
  m.datasets = {"words.txt"};
  const Scratch scratch;
  m.write(scratch.path("m.gguf"));
  const ImportanceMatrix again = ImportanceMatrix::open(scratch.path("m.gguf"));
  EXPECT_EQ(again.chunks, m.chunks);
  EXPECT_EQ(again.datasets, m.datasets);
  ASSERT_EQ(again.entries.size(), m.entries.size());
  for (const auto& [name, e] : m.entries) {
    EXPECT_EQ(again.entries.at(name).counts, e.counts) << name;
    for (size_t i = 0; i < e.sums.size(); ++i)
      ASSERT_FLOAT_EQ(float(again.entries.at(name).sums[i]), float(e.sums[i])) << name;
  }
  // The older form has means.
  m.write(scratch.path("m.dat"));
  const ImportanceMatrix older = ImportanceMatrix::open(scratch.path("m.dat"));
  ASSERT_EQ(older.entries.size(), m.entries.size());
  const std::vector<float> mine = m.entries.at("blk.0.attn_q.weight").means(),
                           theirs = older.entries.at("blk.0.attn_q.weight").means();
  for (size_t i = 0; i < mine.size(); ++i) ASSERT_NEAR(theirs[i], mine[i], 1e-5 * mine[i]);
}

TEST(Imatrix, RefusesOtherFiles) {
  const Scratch scratch;
  write_file(scratch.path("words.txt"), std::string_view("no matrix at all, but a text"));
  EXPECT_NE(test::message_of([&] { ImportanceMatrix::open(scratch.path("words.txt")); }).find("imatrix '"),
            std::string::npos);
  RLX_REQUIRE_DATA("gguf/llama-F16.gguf");
  const std::string message =
      test::message_of([] { ImportanceMatrix::open(test::data_path("gguf/llama-F16.gguf")); });
  EXPECT_NE(message.find("general.type imatrix expected"), std::string::npos) << message;
}

class WeighedMix : public testing::TestWithParam<const char*> {};

// The weighed error falls, and what is written opens.
TEST_P(WeighedMix, ErrorFalls) {
  RLX_REQUIRE_DATA("gguf/llama-F16.gguf");
  const std::string source = test::data_path("gguf/llama-F16.gguf");
  const ImportanceMatrix m = measured(source);
  const Scratch scratch;
  const QuantMix& mix = quant_mix_named(GetParam());
  const QuantizeReport with = quantize_model(source, scratch.path("with.gguf"), mix, {.importance = &m});
  quantize_model(source, scratch.path("without.gguf"), mix);
  EXPECT_GT(with.weighed, 0);
  // Both files measured alike, over the tensors that the matrix knows.
  const io::GgufFile exact = io::GgufFile::open(source);
  const auto error = [&](const std::string& path) {
    const io::GgufFile file = io::GgufFile::open(path);
    double difference = 0, size = 0;
    for (const io::TensorView& t : file.tensors()) {
      const ImportanceMatrix::Entry* e = m.find(t.name);
      if (t.type.format->is_plain() || e == nullptr) continue;
      const std::vector<float> w = e->means(), a = io::to_f32(t), b = io::to_f32(exact.tensor(t.name));
      for (size_t i = 0; i < a.size(); ++i) {
        difference += double(w[i % w.size()]) * std::pow(double(a[i]) - double(b[i]), 2);
        size += double(w[i % w.size()]) * double(b[i]) * double(b[i]);
      }
    }
    return std::sqrt(difference / size);
  };
  const double after = error(scratch.path("with.gguf")), before = error(scratch.path("without.gguf"));
  EXPECT_NEAR(after, with.weighed_error, 1e-6 + 1e-4 * after);
  EXPECT_LT(after, before);
  EXPECT_EQ(io::GgufFile::open(scratch.path("with.gguf")).at("quantize.imatrix.chunks_count").integer(),
            m.chunks);
}
INSTANTIATE_TEST_SUITE_P(Mixes, WeighedMix,
                         testing::Values("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K_M", "Q4_K_M", "Q5_K_M",
                                         "Q6_K", "IQ4_NL", "IQ4_XS", "IQ3_S", "IQ2_XXS", "IQ1_S", "TQ2_0",
                                         "MXFP4"),
                         [](const auto& info) { return std::string(info.param); });

TEST(WeighedMixes, AMatrixOfAnotherModelIsRefused) {
  RLX_REQUIRE_DATA("gguf/llama-F16.gguf");
  ImportanceMatrix m;
  m.entries["blk.0.attn_q.weight"] = {{1, 2, 3}, {4}};
  const Scratch scratch;
  const std::string message = test::message_of([&] {
    quantize_model(test::data_path("gguf/llama-F16.gguf"), scratch.path("x.gguf"), quant_mix_named("Q4_0"),
                   {.importance = &m});
  });
  EXPECT_NE(message.find("was it measured on this model?"), std::string::npos) << message;
  EXPECT_FALSE(std::filesystem::exists(scratch.path("x.gguf")));
}

}  // namespace
}  // namespace rlx::llm
