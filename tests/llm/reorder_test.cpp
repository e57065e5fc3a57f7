// Rows of a batch that go on with what other rows remember, as beams do.
#include <gtest/gtest.h>

#include <algorithm>

#include "rlx/llm/decoder.h"
#include "tests/models/tiny.h"
#include "tests/support/data.h"

namespace rlx::llm {
namespace {

using Ids = std::vector<TokenId>;

// Texts of three rows, token by token; then rows are given out anew and go on. The logits must be those of rows that had these texts from the
// start.
void check_reorder(const models::Model& model, int64_t tokens) {
  const std::vector<int64_t> from{2, 0, 0};
  const DecoderOptions options{.capacity = 64, .batch = 3, .chunk = 4, .page = 4};
  Decoder moved(model, options), straight(model, options);
  const auto token = [](int64_t row, int64_t i) { return TokenId((row * 5 + i * 3 + 1) % 16); };
  for (int64_t i = 0; i < tokens; ++i) {
    Ids mine, theirs;
    for (size_t row = 0; row < from.size(); ++row) {
      mine.push_back(token(int64_t(row), i));
      theirs.push_back(token(from[row], i));
    }
    moved.feed(mine);
    straight.feed(theirs);
  }
  moved.reorder(from);
  for (size_t row = 0; row < from.size(); ++row) EXPECT_EQ(moved.tokens(row), straight.tokens(row));
  for (int i = 0; i < 7; ++i) {
    const Ids next{TokenId(i), TokenId(i + 1), TokenId(i + 2)};
    const auto a = moved.feed(next).as<const float>(), b = straight.feed(next).as<const float>();
    ASSERT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << i << " behind " << tokens;
  }
}

// Three rows go on with the text that one row has read: the logits of rows that read it themselves.
void check_adopt(const models::Model& model, int64_t tokens) {
  DecoderOptions options{.capacity = 64, .batch = 1, .chunk = 4, .page = 4};
  Decoder one(model, options);
  options.batch = 3;
  Decoder adopting(model, options), straight(model, options);
  adopting.feed(Ids{1, 2, 3});  // forgotten
  for (int64_t i = 0; i < tokens; ++i) {
    const auto id = TokenId((i * 3 + 1) % 16);
    one.feed({&id, 1});
    straight.feed(Ids{id, id, id});
  }
  adopting.adopt(one);
  for (size_t row = 0; row < 3; ++row) EXPECT_EQ(adopting.tokens(row), one.tokens());
  for (int i = 0; i < 7; ++i) {
    const Ids next{TokenId(i), TokenId(i + 1), TokenId(i + 2)};
    const auto a = adopting.feed(next).as<const float>(), b = straight.feed(next).as<const float>();
    ASSERT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << i << " behind " << tokens;
  }
}

TEST(Reorder, RowsGoOnWithTheTextOfOthers) {
  test::TinyLlama tiny;
  tiny.config["max_position_embeddings"] = "64";
  const test::Scratch scratch;
  const models::Model model = models::open_model(tiny.write(scratch));
  for (const int64_t tokens : {1, 3, 4, 9, 40}) check_reorder(model, tokens), check_adopt(model, tokens);
}

// Behind a window tokens go round: a row has four pages of four slots for 40 tokens.
TEST(Reorder, AndWithWhatTheirWindowHolds) {
  test::TinyLlama tiny;
  tiny.config["model_type"] = "\"mistral\"";
  tiny.config["sliding_window"] = "6";
  tiny.config["num_key_value_heads"] = "2";
  tiny.config["max_position_embeddings"] = "64";
  const test::Scratch scratch;
  const models::Model model = models::open_model(tiny.write(scratch));
  for (const int64_t tokens : {1, 9, 17, 40}) check_reorder(model, tokens), check_adopt(model, tokens);
}

// Layers with a running state, and with both.
TEST(Reorder, AndWithRunningStates) {
  for (const char* name : {"checkpoints/mamba2", "checkpoints/falcon_h1", "checkpoints/qwen3next"}) {
    RLX_REQUIRE_DATA(name);
    SCOPED_TRACE(name);
    const models::Model model = models::open_model(test::data_path(name));
    check_reorder(model, 9);
    check_adopt(model, 9);
  }
}

}  // namespace
}  // namespace rlx::llm
