// Every folder of the test data: logits, greedy tokens, pieces, batches of different lengths.
#include <gtest/gtest.h>

#include "tests/models/session.h"
#include "tests/support/data.h"

namespace rlx::test {
namespace {

class Checkpoint : public testing::TestWithParam<std::string> {
 protected:
  std::string path() const { return data_path("checkpoints/" + GetParam()); }
  NamedLiterals expected() const { return expected_values(path() + "/expected.safetensors"); }
};

INSTANTIATE_TEST_SUITE_P(All, Checkpoint, testing::ValuesIn(checkpoint_folders()),
                         [](const auto& info) { return info.param; });

void expect_rows(const Literal& got, const Literal& want, const Literal* mask) {
  ASSERT_EQ(cat(got.shape()), cat(want.shape()));
  const int64_t rows = got.elements() / got.shape().dim(-1).value();
  for (int64_t r = 0; r < rows; ++r) {
    if (mask != nullptr && mask->integer_at(r) == 0) continue;
    ASSERT_LT(largest_difference(got, r, want, r, 1), kLogitTolerance) << "row " << r;
  }
}

TEST_P(Checkpoint, whole_sequence) {
  RLX_REQUIRE_DATA("checkpoints");
  const models::Model model = models::open_model(path());
  const NamedLiterals want = expected();
  const bool encoder = model.config().encoder;
  const models::ModelGraph g = model.graph({.mask = encoder});
  CompiledGraph run = compile(g.graph, g.weights, options_of(g));
  NamedLiterals in{{"input_ids", want.at("input_ids")}};
  if (encoder) in.emplace("mask", want.at("attention_mask"));
  const NamedLiterals got = run.run(in);
  const Literal* mask = encoder ? &want.at("attention_mask") : nullptr;
  for (const char* name : {"logits", "last_hidden_state"}) {
    if (want.contains(name)) expect_rows(got.at(name), want.at(name), mask);
  }
  if (encoder) expect_rows(got.at("mean_pooled"), want.at("mean_pooled"), nullptr);
  if (want.contains("input_ids_short"))
    expect_rows(run.run({{"input_ids", want.at("input_ids_short")}}).at("logits"), want.at("logits_short"),
                nullptr);
}

void expect_greedy(const models::Model& model, const Literal& prompt, const Literal& tokens) {
  Tokens text = row_of(prompt, 0);
  const Tokens want = row_of(tokens, 0);
  Session session(model, 1, int64_t(want.size()) + 3, int64_t(want.size()));
  Literal logits = session.step({text});
  int64_t last = int64_t(text.size()) - 1;
  while (text.size() < want.size()) {
    text.push_back(largest(logits, last));
    logits = session.step({{text.back()}});
    last = 0;
  }
  EXPECT_EQ(text, want);
}

TEST_P(Checkpoint, greedy_tokens) {
  RLX_REQUIRE_DATA("checkpoints");
  const models::Model model = models::open_model(path());
  if (model.config().encoder) GTEST_SKIP() << "an encoder";
  const NamedLiterals want = expected();
  expect_greedy(model, want.at("greedy_prompt"), want.at("greedy_tokens"));
  if (want.contains("greedy_long_prompt"))
    expect_greedy(model, want.at("greedy_long_prompt"), want.at("greedy_long_tokens"));
}

TEST_P(Checkpoint, one_piece_and_many) {
  RLX_REQUIRE_DATA("checkpoints");
  const models::Model model = models::open_model(path());
  if (model.config().encoder) GTEST_SKIP() << "an encoder";
  const NamedLiterals want = expected();
  const Tokens text = row_of(want.at("input_ids"), 0);
  const auto n = int64_t(text.size());
  const Literal whole = Session(model, 1, n, n).step({text});
  EXPECT_LT(largest_difference(whole, 0, want.at("logits"), 0, n), kLogitTolerance);
  for (const int64_t size : {int64_t(1), int64_t(5)}) {
    SCOPED_TRACE(cat("pieces of ", size));
    Session session(model, 1, n + 2, n);
    for (int64_t at = 0; at < n; at += size) {
      const int64_t count = std::min(size, n - at);
      const Literal got = session.step({Tokens(text.begin() + at, text.begin() + at + count)});
      ASSERT_LT(largest_difference(got, 0, whole, at, count), agreement(whole)) << "from token " << at;
    }
  }
}

// Sums over a long text are no less exact than those over a short one. Pieces begin and end inside of chunks and at their borders.
TEST_P(Checkpoint, a_long_text_in_pieces) {
  RLX_REQUIRE_DATA("checkpoints");
  const models::Model model = models::open_model(path());
  if (model.config().ssm.inner == 0) GTEST_SKIP() << "no state-space layers";
  Tokens text;
  for (int32_t i = 0; i < 500; ++i) text.push_back((i * 37 + i * i % 11) % 280);
  const Literal whole = Session(model, 1, 500).step({text});
  for (const int64_t size : {20, 64, 70, 193}) {
    SCOPED_TRACE(cat("pieces of ", size));
    Session session(model, 1, 500);
    for (int64_t at = 0; at < 500; at += size) {
      const int64_t count = std::min(size, 500 - at);
      const Literal got = session.step({Tokens(text.begin() + at, text.begin() + at + count)});
      ASSERT_LT(largest_difference(got, 0, whole, at, count), agreement(whole)) << "from token " << at;
    }
  }
  // And without states.
  const models::ModelGraph g = model.graph();
  const Literal plain = compile(g.graph, g.weights, options_of(g))
                            .run({{"input_ids", Literal::of<int32_t>({1, 500}, text)}})
                            .at("logits");
  EXPECT_LT(largest_difference(plain, 0, whole, 0, 500), agreement(whole));
}

// Texts of 11, 7 and 2 tokens, padded in front, then three tokens more.
TEST_P(Checkpoint, a_batch_of_different_lengths) {
  RLX_REQUIRE_DATA("checkpoints");
  const models::Model model = models::open_model(path());
  if (model.config().encoder) GTEST_SKIP() << "an encoder";
  const Literal ids = expected().at("input_ids");
  const int64_t lengths[] = {11, 7, 2}, longest = 11, more = 3;
  std::vector<Tokens> texts, padded;
  for (int64_t r = 0; r < 3; ++r) {
    const Tokens row = row_of(ids, r % 2);
    texts.emplace_back(row.begin() + r, row.begin() + r + lengths[r] + more);
    padded.emplace_back(size_t(longest - lengths[r]), -1);
    padded.back().insert(padded.back().end(), texts.back().begin(), texts.back().begin() + lengths[r]);
  }
  Session session(model, 3, 20, 14);
  Literal got = session.step(padded);
  std::vector<Literal> alone;
  for (int64_t r = 0; r < 3; ++r) {
    const Tokens& text = texts[size_t(r)];
    alone.push_back(Session(model, 1, 20, 14).step({text}));
    EXPECT_LT(largest_difference(got, r * longest + longest - lengths[r], alone.back(), 0, lengths[r]),
              agreement(alone.back()))
        << "row " << r;
  }
  for (int64_t i = 0; i < more; ++i) {
    std::vector<Tokens> next;
    for (int64_t r = 0; r < 3; ++r) next.push_back({texts[size_t(r)][size_t(lengths[r] + i)]});
    got = session.step(next);
    for (int64_t r = 0; r < 3; ++r)
      EXPECT_LT(largest_difference(got, r, alone[size_t(r)], lengths[r] + i, 1), agreement(alone[size_t(r)]))
          << "row " << r;
  }
}

}  // namespace
}  // namespace rlx::test
