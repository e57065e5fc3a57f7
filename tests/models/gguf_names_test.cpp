// Every checkpoint of the test data written again as a GGUF file: the same logits. RLX_KEEP_GGUF names a folder where these files
// stay, for other programs to read.
#include <gtest/gtest.h>

#include <cstdlib>

#include "rlx/io/gguf.h"
#include "tests/models/gguf_form.h"
#include "tests/models/session.h"
#include "tests/support/data.h"
#include "tests/support/scratch.h"

namespace rlx::test {
namespace {

class GgufNames : public testing::TestWithParam<std::string> {
 protected:
  std::string folder() const { return data_path("checkpoints/" + GetParam()); }
  std::string written(bool older) const {
    const char* keep = std::getenv("RLX_KEEP_GGUF");
    const std::string name = GetParam() + (older ? "-older.gguf" : ".gguf");
    const std::string path = keep != nullptr ? cat(keep, "/", name) : scratch_.path(name);
    write_gguf_form(models::open_model(folder()), path, older);
    return path;
  }

 private:
  Scratch scratch_;
};

INSTANTIATE_TEST_SUITE_P(All, GgufNames, testing::ValuesIn(checkpoint_folders()),
                         [](const auto& info) { return info.param; });

void expect_same(const models::Model& model, const NamedLiterals& want) {
  const bool encoder = model.config().encoder;
  const models::ModelGraph g = model.graph({.mask = encoder});
  CompiledGraph run = compile(g.graph, g.weights);
  NamedLiterals in{{"input_ids", want.at("input_ids")}};
  if (encoder) in.emplace("mask", want.at("attention_mask"));
  const NamedLiterals got = run.run(in);
  const std::string name = encoder ? "last_hidden_state" : "logits";
  const Literal& expected = want.at(name);
  ASSERT_EQ(cat(got.at(name).shape()), cat(expected.shape()));
  const int64_t rows = want.at("input_ids").elements();
  for (int64_t r = 0; r < rows; ++r) {
    if (encoder && want.at("attention_mask").integer_at(r) == 0) continue;
    ASSERT_LT(largest_difference(got.at(name), r, expected, r, 1), kLogitTolerance) << "row " << r;
  }
  if (!want.contains("input_ids_short")) return;
  const Literal& ids = want.at("input_ids_short");
  EXPECT_LT(largest_difference(run.run({{"input_ids", ids}}).at("logits"), 0, want.at("logits_short"), 0,
                               ids.elements()),
            kLogitTolerance);
}

TEST_P(GgufNames, the_same_logits) {
  RLX_REQUIRE_DATA("checkpoints");
  const models::Model folder_model = models::open_model(folder());
  ASSERT_TRUE(has_gguf_form(folder_model.config()));
  const NamedLiterals want = expected_values(folder() + "/expected.safetensors");
  expect_same(models::open_model(written(false)), want);
  expect_same(models::open_model(written(true)), want);
}

// With states as well: recurrent layers and latent caches read their weights in another place.
TEST_P(GgufNames, token_by_token) {
  RLX_REQUIRE_DATA("checkpoints");
  const models::Model model = models::open_model(written(false));
  if (model.config().encoder) GTEST_SKIP() << "an encoder";
  const NamedLiterals want = expected_values(folder() + "/expected.safetensors");
  const Tokens text = row_of(want.at("input_ids"), 0);
  Session session(model, 1, int64_t(text.size()), int64_t(text.size()));
  for (size_t i = 0; i < text.size(); ++i)
    ASSERT_LT(largest_difference(session.step({{text[i]}}), 0, want.at("logits"), int64_t(i), 1),
              kLogitTolerance)
        << "token " << i;
}

// What GGUF's architecture does not tell apart by its name.
TEST(GgufArchitectures, are_told_by_their_metadata) {
  RLX_REQUIRE_DATA("checkpoints");
  const Scratch scratch;
  for (const char* name : {"mixtral", "llama", "deepseek_v2", "deepseek_v3"}) {
    const models::Model model = models::open_model(data_path(cat("checkpoints/", name)));
    write_gguf_form(model, scratch.path("model.gguf"));
    EXPECT_EQ(models::open_model(scratch.path("model.gguf")).config().architecture, name);
  }
}

// A key that is not understood is refused, as a field of config.json is.
TEST(GgufArchitectures, unknown_keys_are_refused) {
  RLX_REQUIRE_DATA("checkpoints/granite");
  const Scratch scratch;
  write_gguf_form(models::open_model(data_path("checkpoints/granite")), scratch.path("a.gguf"));
  const io::GgufFile file = io::GgufFile::open(scratch.path("a.gguf"));
  io::GgufWriter out = io::gguf_copy(file);
  out.add_f32("granite.attention.temperature_scale", 2);
  out.write(scratch.path("b.gguf"));
  try {
    models::open_model(scratch.path("b.gguf"));
    FAIL() << "no refusal";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("granite.attention.temperature_scale"), std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace rlx::test
