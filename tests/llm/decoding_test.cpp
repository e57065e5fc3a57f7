// Generation over the stored checkpoints: greedy tokens, pieces, prefixes, batches, guesses, beams.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "rlx/io/literal.h"
#include "rlx/io/safetensors.h"
#include "rlx/llm/language_model.h"
#include "tests/support/data.h"
#include "tests/support/errors.h"

namespace rlx::llm {
namespace {

using Ids = std::vector<TokenId>;

struct Expected {
  explicit Expected(const std::string& folder) {
    for (const io::TensorView& t :
         io::ModelFile::open(test::data_path(folder + "/expected.safetensors")).tensors)
      tensors[t.name] = io::to_literal(t);
  }
  Ids ids(const std::string& name) const {
    Ids out;
    const Literal value = tensors.at(name).cast(DType::i32);
    for (const int32_t id : value.data<int32_t>()) out.push_back(id);
    return out;
  }
  /// The stored tokens start with the prompt.
  Ids answer() const {
    Ids tokens = ids("greedy_tokens");
    tokens.erase(tokens.begin(), tokens.begin() + long(ids("greedy_prompt").size()));
    return tokens;
  }
  std::map<std::string, Literal> tensors;
};

LanguageModel open(const std::string& folder, int64_t context = 128, int64_t chunk = 512) {
  return LanguageModel::open(
      test::data_path(folder),
      {.context = context, .chunk = chunk, .compile = {.device = test::test_device()}});
}

GenerateOptions greedy(size_t tokens) {
  return {.max_tokens = int64_t(tokens), .sampling = {.temperature = 0}, .ignore_end = true};
}

// Two tokens of the answer, then one that is not.
class OftenWrong final : public Guesser {
 public:
  explicit OftenWrong(Ids answer) : answer_(std::move(answer)) {}
  Ids guess(std::span<const TokenId> text, int64_t most) override {
    if (start_ == 0) start_ = text.size() - 1;
    const size_t at = text.size() - start_;
    Ids out;
    for (size_t i = at; i < std::min(at + 2, answer_.size()); ++i) out.push_back(answer_[i]);
    out.push_back(3);
    out.resize(std::min(out.size(), size_t(std::max<int64_t>(0, most))));
    return out;
  }

 private:
  Ids answer_;
  size_t start_ = 0;
};

class Checkpoint : public testing::TestWithParam<const char*> {
 protected:
  std::string folder() const { return std::string("checkpoints/") + GetParam(); }
};

TEST_P(Checkpoint, GreedyTokensAreTheStoredOnes) {
  RLX_REQUIRE_DATA(folder());
  const Expected expected(folder());
  const Ids prompt = expected.ids("greedy_prompt"), tokens = expected.answer();
  LanguageModel model = open(folder());
  const Generation g = model.generate_ids(prompt, greedy(tokens.size()));
  EXPECT_EQ(g.tokens, tokens);
  EXPECT_EQ(g.log_probabilities.size(), tokens.size());
  // The prompt in small pieces, and read again from what is remembered.
  LanguageModel pieces = open(folder(), 128, 3);
  EXPECT_EQ(pieces.generate_ids(prompt, greedy(tokens.size())).tokens, tokens);
  EXPECT_EQ(model.generate_ids(prompt, greedy(tokens.size())).tokens, tokens);
  // Guesses from the text change no token.
  GenerateOptions guessed = greedy(tokens.size());
  guessed.lookup = 4;
  EXPECT_EQ(model.generate_ids(prompt, guessed).tokens, tokens);
  // Nor do those of a draft model that is right, and of one that is wrong now and then.
  guessed.guesser = std::make_shared<DraftModel>(pieces, 3);
  EXPECT_EQ(model.generate_ids(prompt, guessed).tokens, tokens);
  guessed.guesser = std::make_shared<OftenWrong>(tokens);
  EXPECT_EQ(model.generate_ids(prompt, guessed).tokens, tokens);
}

// A draw is of its seed and place alone: guesses that hold, hold now and then, or never, leave the text of the seed.
TEST_P(Checkpoint, DrawnTokensStayThoseOfTheSeed) {
  RLX_REQUIRE_DATA(folder());
  const Ids prompt = Expected(folder()).ids("greedy_prompt");
  LanguageModel model = open(folder()), draft = open(folder());
  GenerateOptions options = greedy(12);
  options.sampling = {.temperature = 0.7, .top_k = 20, .top_p = 0.95, .repetition_penalty = 1.1, .seed = 11};
  const Ids drawn = model.generate_ids(prompt, options).tokens;
  ASSERT_EQ(drawn.size(), 12u);
  options.lookup = 4;
  EXPECT_EQ(model.generate_ids(prompt, options).tokens, drawn);
  options.guesser = std::make_shared<DraftModel>(draft, 3);
  EXPECT_EQ(model.generate_ids(prompt, options).tokens, drawn);
  options.guesser = std::make_shared<OftenWrong>(drawn);
  const Generation often = model.generate_ids(prompt, options);
  EXPECT_EQ(often.tokens, drawn);
  EXPECT_EQ(often.runs,
            4);  // one token comes with the prompt; a run adds two right guesses and the token behind them
}

TEST_P(Checkpoint, BatchesOfMixedLengths) {
  RLX_REQUIRE_DATA(folder());
  const Expected expected(folder());
  const Ids prompt = expected.ids("greedy_prompt");
  LanguageModel model = open(folder());
  const std::vector<Ids> prompts{prompt, Ids(prompt.begin(), prompt.begin() + 2),
                                 Ids(prompt.begin() + 1, prompt.end())};
  const std::vector<GenerateOptions> options{greedy(6), greedy(4), greedy(5)};
  const std::vector<Generation> together = model.generate_batch(prompts, options);
  for (size_t i = 0; i < prompts.size(); ++i)
    EXPECT_EQ(together[i].tokens, model.generate_ids(prompts[i], options[i]).tokens) << "row " << i;
}

INSTANTIATE_TEST_SUITE_P(Decoders, Checkpoint,
                         testing::Values("llama", "llama3_rope", "llama_yarn", "llama_sharded", "mistral",
                                         "mixtral", "qwen2", "qwen2_bf16", "qwen2_f16", "qwen2_moe", "qwen3",
                                         "qwen3_moe", "qwen3_5", "qwen3next", "gemma2", "gemma3", "granite",
                                         "olmo2", "phi3", "deepseek_v2", "deepseek_v3", "gpt2", "gpt_neox",
                                         "mamba", "mamba2", "falcon_h1"),
                         [](const auto& info) { return std::string(info.param); });

// The memory in small pages, windows in rings, against one page for all.
TEST_P(Checkpoint, SmallPagesAndRings) {
  RLX_REQUIRE_DATA(folder());
  const models::Model model = models::open_model(test::data_path(folder()));
  Decoder whole(model, {.capacity = 100, .all_logits = true}),
      ring(model, {.capacity = 100, .all_logits = true, .chunk = 6, .page = 4});
  std::mt19937 random(4);
  Ids text(60);
  for (TokenId& id : text) id = TokenId(random() % uint64_t(model.config().vocab));
  const auto feed = [&](const Ids& ids) {
    const TensorView a = whole.feed(ids), b = ring.feed(ids);
    float worst = 0, largest = 1;
    for (size_t i = 0; i < a.as<const float>().size(); ++i) {
      worst = std::max(worst, std::fabs(a.as<const float>()[i] - b.as<const float>()[i]));
      largest = std::max(largest, std::fabs(a.as<const float>()[i]));
    }
    EXPECT_LT(worst, 3e-5f * largest);
  };
  feed(text);
  feed({5});
  if (!whole.keeps_running_state() && ring.can_truncate(58)) {
    whole.truncate(58);
    ring.truncate(58);
    feed({7, 8, 9});
  }
  const std::vector<models::Mixer>& layers = model.config().mixers;
  if (std::find(layers.begin(), layers.end(), models::Mixer::window) != layers.end()) {
    EXPECT_FALSE(ring.can_truncate(20));  // what its window sees is written over
    EXPECT_TRUE(whole.can_truncate(20));
  }
  ring.truncate(0);
  whole.truncate(0);
  feed(Ids(text.begin() + 3, text.begin() + 30));
}

// Where frequencies depend on the length of a text, those of a row are by its own: 20 tokens stay short, 28 become long on the way, and 36
// are long from the start.
TEST(Generate, RowsOfABatchBecomeLongByThemselves) {
  RLX_REQUIRE_DATA("checkpoints/phi3");
  LanguageModel model = open("checkpoints/phi3");
  ASSERT_EQ(model.config().rope.original_positions, 32);
  std::vector<Ids> prompts;
  for (const int64_t length : {20, 28, 36}) {
    prompts.emplace_back();
    for (int64_t i = 0; i < length; ++i) prompts.back().push_back(TokenId((i * 37 + length) % 200));
  }
  const GenerateOptions options = greedy(10);
  const std::vector<Generation> together = model.generate_batch(prompts, {&options, 1});
  for (size_t row = 0; row < prompts.size(); ++row) {
    EXPECT_EQ(together[row].tokens, model.generate_ids(prompts[row], options).tokens) << "row " << row;
    EXPECT_EQ(model.beam_search(prompts[row], 1, options).tokens, together[row].tokens) << "row " << row;
  }
  // Beams go over the border too.
  EXPECT_EQ(model.beam_search(prompts[1], 3, options).tokens.size(), 10u);
}

TEST(Decoder, KeysAndValuesOfEveryType) {
  RLX_REQUIRE_DATA("checkpoints/gemma3");
  const models::Model model = models::open_model(test::data_path("checkpoints/gemma3"));
  std::mt19937 random(4);
  Ids text(40);
  for (TokenId& id : text) id = TokenId(random() % uint64_t(model.config().vocab));
  Decoder exact(model, {.capacity = 64});
  const TensorView want = exact.feed(text);
  const std::vector<float> logits(want.as<const float>().begin(), want.as<const float>().end());
  const std::map<std::string_view, std::pair<float, int64_t>> expected{
      {"f32", {0.0f, 256}}, {"f16", {2e-3f, 128}}, {"bf16", {2e-2f, 128}}, {"q8_0", {2e-2f, 68}}};
  for (const std::string_view type : models::CacheType::names()) {
    Decoder d(model, {.capacity = 64, .cache_type = models::CacheType::named(type)});
    const auto got = d.feed(text).as<const float>();
    float worst = 0, largest = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      worst = std::max(worst, std::fabs(got[i] - logits[i]));
      largest = std::max(largest, std::fabs(logits[i]));
    }
    EXPECT_LE(worst, expected.at(type).first * largest) << type;
    const TensorView keys = d.compiled().state("layer.0.k");
    EXPECT_EQ(int64_t(keys.bytes()) / keys.dims[0], expected.at(type).second) << type;
  }
  EXPECT_EQ(test::message_of([] { models::CacheType::named("q4_0"); }),
            "keys and values in 'q4_0'; f32, f16, bf16, q8_0 expected");
}

// Tokens that are checked together are those that would have been written one by one: the same bits, with packed weights, whose
// activations are rounded, with windows and with every type of cache.
TEST(Decoder, PiecesHaveTheBitsOfSingleTokens) {
  for (const char* path :
       {"gguf/llama-Q4_0.gguf", "gguf/llama-Q4_K_M.gguf", "gguf/qwen2-Q8_0.gguf", "checkpoints/gemma3"}) {
    RLX_REQUIRE_DATA(path);
    const models::Model model = models::open_model(test::data_path(path));
    for (const char* type : {"f32", "f16"}) {
      SCOPED_TRACE(cat(path, " ", type));
      const auto logits = [&](int64_t piece) {
        Decoder d(model, {.capacity = 96, .cache_type = models::CacheType::named(type), .all_logits = true});
        std::vector<float> out;
        for (int64_t at = 0; at < 64; at += piece) {
          std::vector<TokenId> ids;
          for (int64_t i = at; i < std::min<int64_t>(64, at + piece); ++i)
            ids.push_back(TokenId((i * 37 + 11) % 200));
          const auto values = d.feed(ids).as<const float>();
          out.insert(out.end(), values.begin(), values.end());
        }
        return out;
      };
      const std::vector<float> single = logits(1);
      for (const int64_t piece : {3, 5, 9, 17, 32})
        EXPECT_TRUE(logits(piece) == single) << "pieces of " << piece;
    }
  }
}

TEST(Generate, RemembersThePrefixOfTheLastText) {
  RLX_REQUIRE_DATA("checkpoints/llama");
  LanguageModel model = open("checkpoints/llama"), fresh = open("checkpoints/llama");
  Ids text{5, 9, 100, 7, 30, 31};
  const Generation first = model.generate_ids(text, greedy(8));
  EXPECT_EQ(first.reused_tokens, 0);
  text.insert(text.end(), first.tokens.begin(), first.tokens.end());
  text.push_back(77);
  const Generation second = model.generate_ids(text, greedy(8));
  EXPECT_EQ(second.reused_tokens, 13);  // all but the last token of the answer and the new one
  EXPECT_EQ(second.tokens, fresh.generate_ids(text, greedy(8)).tokens);
  text[2] = 101;  // the texts part here
  const Generation third = model.generate_ids(text, greedy(8));
  EXPECT_EQ(third.reused_tokens, 2);
  LanguageModel other = open("checkpoints/llama");
  EXPECT_EQ(third.tokens, other.generate_ids(text, greedy(8)).tokens);
}

TEST(Generate, ADraftModelChangesNoToken) {
  RLX_REQUIRE_DATA("checkpoints/llama");
  LanguageModel model = open("checkpoints/llama"), same = open("checkpoints/llama"),
                other = open("checkpoints/mistral");
  const Ids prompt{5, 9, 100, 7};
  const Generation plain = model.generate_ids(prompt, greedy(12));
  GenerateOptions drafted = greedy(12);
  drafted.guesser = std::make_shared<DraftModel>(same, 3);
  const Generation good = model.generate_ids(prompt, drafted);
  EXPECT_EQ(good.tokens, plain.tokens);
  EXPECT_EQ(good.runs, 3);  // the first token comes with the prompt, then 3 guesses and 1 more a run
  EXPECT_EQ(plain.runs, 11);
  drafted.guesser = std::make_shared<DraftModel>(other, 3);
  if (other.config().vocab <= model.config().vocab) {
    EXPECT_EQ(model.generate_ids(prompt, drafted).tokens, plain.tokens);
  }
}

TEST(Generate, SameSeedSameText) {
  RLX_REQUIRE_DATA("checkpoints/llama");
  LanguageModel model = open("checkpoints/llama");
  GenerateOptions options{
      .max_tokens = 20, .sampling = {.temperature = 1, .top_p = 0.95, .seed = 3}, .ignore_end = true};
  const Ids prompt{1, 2, 3};
  const Ids a = model.generate_ids(prompt, options).tokens, b = model.generate_ids(prompt, options).tokens;
  options.sampling.seed = 4;
  const Ids c = model.generate_ids(prompt, options).tokens;
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
}

// Pairs of tokens under a draft model, counted over seeds, against the probabilities of the model.
TEST(Generate, DrawsUnderADraftModelFollowTheDistribution) {
  RLX_REQUIRE_DATA("checkpoints/mistral");
  constexpr int kKept = 5, kSeeds = 1500;
  LanguageModel model = open("checkpoints/mistral"), other = open("checkpoints/llama_yarn");
  const Ids prompt{5, 9, 100, 7};
  GenerateOptions options = greedy(2);
  options.sampling = {.temperature = 1.5, .top_k = kKept};
  options.guesser = std::make_shared<DraftModel>(other, 1);
  std::map<std::pair<TokenId, TokenId>, double> counts;
  for (int seed = 0; seed < kSeeds; ++seed) {
    options.sampling.seed = uint64_t(seed);
    const Ids pair = model.generate_ids(prompt, options).tokens;
    counts[{pair.at(0), pair.at(1)}] += 1;
  }
  // The most likely tokens behind a text with their probabilities among themselves.
  const auto likely = [&](const Ids& text) {
    Decoder& d = model.decoder();
    d.truncate(0);
    const auto logits = d.feed(text).as<const float>();
    std::vector<std::pair<double, TokenId>> all;
    for (size_t id = 0; id < logits.size(); ++id) all.emplace_back(std::exp(logits[id] / 1.5), TokenId(id));
    std::sort(all.rbegin(), all.rend());
    all.resize(kKept);
    double total = 0;
    for (const auto& [weight, id] : all) total += weight;
    for (auto& [weight, id] : all) weight /= total;
    return all;
  };
  double chi_square = 0, seen = 0;
  for (const auto& [p, first] : likely(prompt)) {
    Ids text = prompt;
    text.push_back(first);
    for (const auto& [q, second] : likely(text)) {
      const double expected = kSeeds * p * q, count = counts[{first, second}];
      chi_square += (count - expected) * (count - expected) / expected;
      seen += count;
    }
  }
  EXPECT_EQ(seen, kSeeds);      // no pair that the filters take out
  EXPECT_LT(chi_square, 59.6);  // 24 degrees of freedom: exceeded once in 10,000
}

TEST(Generate, EndTokensCallbackAndContext) {
  RLX_REQUIRE_DATA("checkpoints/llama");
  LanguageModel model = open("checkpoints/llama", 16);
  const Ids prompt{1, 2, 3};
  const Ids tokens = model.generate_ids(prompt, greedy(6)).tokens;
  GenerateOptions ends = greedy(6);
  ends.end_tokens = {tokens[3]};
  const Generation g = model.generate_ids(prompt, ends);
  EXPECT_EQ(g.finish, Finish::end_token);
  EXPECT_EQ(g.tokens.size(), size_t(std::find(tokens.begin(), tokens.end(), tokens[3]) - tokens.begin()));
  int seen = 0;
  const Generation cancelled =
      model.generate_ids(prompt, greedy(6), [&](const GeneratedToken&) { return ++seen < 3; });
  EXPECT_EQ(cancelled.finish, Finish::cancelled);
  EXPECT_EQ(cancelled.tokens, Ids(tokens.begin(), tokens.begin() + 3));
  const Generation full = model.generate_ids(prompt, greedy(100));
  EXPECT_EQ(full.finish, Finish::context_full);
  EXPECT_EQ(full.tokens.size(), 14u);
  EXPECT_EQ(test::message_of([&] { model.generate_ids(Ids(17, 1), greedy(1)); }),
            "generate: the prompt has 17 tokens, and the context is 16");
  EXPECT_EQ(test::message_of([&] { model.generate_ids(Ids{}, greedy(1)); }),
            "generate: the prompt is empty; at least one token expected");
}

double score_of(LanguageModel& model, const Ids& prompt, const Ids& answer) {
  Ids text = prompt;
  text.insert(text.end(), answer.begin(), answer.end());
  Decoder& d = model.decoder(true);
  d.truncate(0);
  const TensorView logits = d.feed(text);
  double sum = 0;
  for (size_t i = 0; i < answer.size(); ++i) {
    const auto row =
        logits.as<const float>().subspan((prompt.size() + i - 1) * size_t(d.vocab()), size_t(d.vocab()));
    double total = 0;
    for (const float x : row) total += std::exp(double(x));
    sum += double(row[size_t(answer[i])]) - std::log(total);
  }
  return sum;
}

TEST(Beams, OneIsGreedyAndMoreAreBetter) {
  RLX_REQUIRE_DATA("checkpoints/llama");
  LanguageModel model = open("checkpoints/llama");
  const Ids prompt{5, 9, 100};
  const Ids plain = model.generate_ids(prompt, greedy(5)).tokens;
  EXPECT_EQ(model.beam_search(prompt, 1, greedy(5)).tokens, plain);
  const Generation four = model.beam_search(prompt, 4, greedy(5));
  EXPECT_GE(score_of(model, prompt, four.tokens), score_of(model, prompt, plain) - 1e-4);
  double sum = 0;
  for (const float x : four.log_probabilities) sum += double(x);
  EXPECT_NEAR(sum, score_of(model, prompt, four.tokens), 1e-3);
  // Two tokens with as many beams as tokens leave nothing out: the best pair of all.
  const Generation all = model.beam_search(prompt, model.config().vocab, greedy(2));
  Decoder& d = model.decoder(true);
  double best = -INFINITY;
  for (TokenId first = 0; first < model.config().vocab; ++first) {
    Ids text = prompt;
    text.push_back(first);
    d.truncate(0);
    const TensorView logits = d.feed(text);
    const auto rows = logits.as<const float>();
    const auto vocab = size_t(d.vocab());
    const auto log_sum = [&](std::span<const float> row) {
      double total = 0;
      for (const float x : row) total += std::exp(double(x));
      return std::log(total);
    };
    const auto before = rows.subspan(2 * vocab, vocab), after = rows.subspan(3 * vocab, vocab);
    best = std::max(best, double(before[size_t(first)]) - log_sum(before) +
                              double(*std::max_element(after.begin(), after.end())) - log_sum(after));
  }
  EXPECT_NEAR(score_of(model, prompt, all.tokens), best, 1e-4);
}

TEST(Perplexity, IsThatOfTheLogits) {
  RLX_REQUIRE_DATA("checkpoints/llama");
  LanguageModel model = open("checkpoints/llama", 64);
  std::mt19937 random(5);
  Ids text;
  for (int i = 0; i < 40; ++i) text.push_back(TokenId(random() % 512));
  const Ids head(text.begin(), text.begin() + 1), rest(text.begin() + 1, text.end());
  const auto whole = model.perplexity(text, 64);
  EXPECT_EQ(whole.tokens, 39);
  EXPECT_NEAR(whole.nll, -score_of(model, head, rest), 1e-3);
  const auto windows = model.perplexity(text, 16);
  EXPECT_EQ(windows.tokens, 39);  // each token once, whatever the window
  EXPECT_NE(windows.nll, whole.nll);
}

class StoredAdapter : public testing::TestWithParam<const char*> {};

TEST_P(StoredAdapter, LogitsAndGreedyTokens) {
  const std::string folder = std::string("lora/") + GetParam();
  RLX_REQUIRE_DATA(folder);
  const Expected expected(folder);
  const auto adapter = std::make_shared<const Adapter>(Adapter::open(test::data_path(folder)));
  LanguageModel model = open("checkpoints/llama");
  const Ids prompt = expected.ids("greedy_prompt"), tokens = expected.answer();
  GenerateOptions with = greedy(tokens.size());
  with.adapter = adapter;
  const Ids without = model.generate_ids(prompt, greedy(tokens.size())).tokens;
  EXPECT_EQ(model.generate_ids(prompt, with).tokens, tokens);
  EXPECT_EQ(model.generate_ids(prompt, greedy(tokens.size())).tokens, without);  // switched per request
  Decoder& d = model.decoder(true, adapter);
  d.truncate(0);
  const Ids ids = expected.ids("input_ids");
  const Literal logits = expected.tensors.at("logits");
  const int64_t length = logits.shape().dim(1).value(), rows = logits.shape().dim(0).value();
  for (int64_t row = 0; row < rows; ++row) {
    d.truncate(0);
    const TensorView mine = d.feed(std::span(ids).subspan(size_t(row * length), size_t(length)));
    const auto theirs =
        logits.data<float>().subspan(size_t(row * length * d.vocab()), size_t(length * d.vocab()));
    float worst = 0;
    for (size_t i = 0; i < theirs.size(); ++i)
      worst = std::max(worst, std::fabs(mine.as<const float>()[i] - theirs[i]));
    EXPECT_LT(worst, 2e-4f);
  }
}
INSTANTIATE_TEST_SUITE_P(Peft, StoredAdapter, testing::Values("llama", "llama_rslora"),
                         [](const auto& info) { return std::string(info.param); });

TEST(StoredAdapter, GgufForm) {
  RLX_REQUIRE_DATA("gguf/qwen2-F16.lora.gguf");
  const auto adapter =
      std::make_shared<const Adapter>(Adapter::open(test::data_path("gguf/qwen2-F16.lora.gguf")));
  LanguageModel model = open("gguf/qwen2-F16.gguf");
  std::map<std::string, Literal> expected;
  for (const io::TensorView& t :
       io::ModelFile::open(test::data_path("gguf/qwen2-F16.expected.safetensors")).tensors)
    expected[t.name] = io::to_literal(t);
  Ids ids;
  const Literal stored = expected.at("input_ids").cast(DType::i32);
  for (const int32_t id : stored.data<int32_t>()) ids.push_back(id);
  Decoder& d = model.decoder(true, adapter);
  const TensorView mine = d.feed(ids);
  const auto theirs = expected.at("logits_lora_f32").data<float>();
  double difference = 0, size = 0;
  for (size_t i = 0; i < theirs.size(); ++i) {
    difference += std::pow(double(mine.as<const float>()[i] - theirs[i]), 2);
    size += double(theirs[i]) * double(theirs[i]);
  }
  EXPECT_LT(std::sqrt(difference / size), 5e-3);
  const std::string refused = test::message_of(
      [&] { adapter->check_fits(models::open_model(test::data_path("checkpoints/llama"))); });
  EXPECT_NE(refused.find("is in GGUF form"), refused.npos) << refused;
}

}  // namespace
}  // namespace rlx::llm
