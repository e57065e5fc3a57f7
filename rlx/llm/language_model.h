// A language model with its tokenizer: text in, text out.
//
//   LanguageModel model = LanguageModel::open("SmolLM2-135M-Instruct.gguf");
//   Generation g = model.generate("Once upon a time", {.max_tokens = 32}, [](const GeneratedToken& t) {
//     std::cout << t.text << std::flush;
//     return true;
//   });
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rlx/llm/adapter.h"
#include "rlx/llm/decoder.h"
#include "rlx/llm/grammar/matcher.h"
#include "rlx/llm/guess.h"
#include "rlx/llm/sampler.h"
#include "rlx/text/chat_template.h"
#include "rlx/text/tokenizer.h"

namespace rlx::llm {

/// How much a model remembers, and how it is compiled.
struct ModelOptions {
  int64_t context = 4096;  // tokens of prompt and answer together; at most what the model was made for
  models::CacheType cache_type;
  bool round_activations = true;  // to 8 bits in products with packed weights; false keeps f32
  int64_t chunk = 512;
  CompileOptions compile;
};

/// How an answer is chosen, and where it ends.
struct GenerateOptions {
  int64_t max_tokens = 128;
  Sampling sampling{.temperature = 0};
  std::vector<std::string> stop;    // texts that end the answer; they are not part of it
  std::vector<TokenId> end_tokens;  // besides those of the model
  bool ignore_end = false;          // go on behind end tokens
  std::shared_ptr<const Grammar> grammar;
  // Guesses from the text so far, checked many at a time: the tokens stay those of one-by-one decoding, drawn
  // ones of the same seed too. 0: none.
  int64_t lookup = 0;
  int64_t mtp = 0;                   // the same with as many guesses of the model's own draft head
  std::shared_ptr<Guesser> guesser;  // in place of look-up: a draft model, or anything else that guesses
  std::shared_ptr<const Adapter> adapter;  // LoRA beside the weights, for this text alone
};

/// A token of an answer as it comes.
struct GeneratedToken {
  TokenId token = 0;
  float log_probability = 0;
  std::string_view text;  // what became certain; may be empty, and may stand for several tokens
};

/// Why an answer ended.
enum class Finish : uint8_t { end_token, stop_text, max_tokens, context_full, grammar_done, cancelled };
/// "end", "stop", "length" and so on, for messages and JSON.
std::string_view finish_name(Finish);

/// An answer, with what it took.
struct Generation {
  std::vector<TokenId> tokens;           // without an end token
  std::vector<float> log_probabilities;  // by token
  std::string text;
  Finish finish = Finish::max_tokens;
  int64_t prompt_tokens = 0, reused_tokens = 0;  // reused: remembered from the last text
  int64_t runs = 0;                              // of the model, for answers
  double first_token_seconds = 0, seconds = 0;   // of generating: first token, all
  /// Behind the first token, whose time is the prompt's.
  double tokens_per_second() const;
};

/// Called for every token; false ends the generation.
using OnToken = std::function<bool(const GeneratedToken&)>;

class LanguageModel {
 public:
  /// A GGUF file or a folder; a model without a tokenizer takes ids only.
  static LanguageModel open(const std::string& path, const ModelOptions& options = {});
  explicit LanguageModel(std::shared_ptr<const models::Model>, ModelOptions options = {});
  ~LanguageModel();
  LanguageModel(LanguageModel&&) noexcept;

  /// The graph side of it.
  const models::Model& model() const;
  /// Its sizes and settings.
  const models::Config& config() const { return model().config(); }
  /// A user error where the model has none.
  const text::Tokenizer& tokenizer() const;
  /// Tokens that end a text.
  const std::vector<TokenId>& end_tokens() const;
  /// The vocabulary for grammars.
  std::shared_ptr<const TokenTrie> token_trie();

  /// Ids of a prompt, with what the tokenizer puts before a text.
  std::vector<TokenId> encode(std::string_view text) const;
  /// The model's chat template over messages ({role, content}), ready for the answer.
  std::string chat_prompt(const text::Value& messages) const;

  /// Goes on behind a prompt until a stop, an end token or max_tokens.
  Generation generate(std::string_view prompt, const GenerateOptions& options = {},
                      const OnToken& on_token = {});
  /// As generate, on ids.
  Generation generate_ids(std::span<const TokenId> prompt, const GenerateOptions& options = {},
                          const OnToken& on_token = {});
  /// Texts of different lengths together. Each is as alone but for rounding. One GenerateOptions for all, or one for each.
  std::vector<Generation> generate_batch(std::span<const std::vector<TokenId>> prompts,
                                         std::span<const GenerateOptions> options);
  /// The continuation of highest total log-probability among `beams` that are kept; of max_tokens, or to an end token.
  Generation beam_search(std::span<const TokenId> prompt, int64_t beams, const GenerateOptions& options = {});

  /// Sum of log-probabilities of the tokens behind the first, given those before; `window` tokens at a time.
  struct Perplexity {
    double nll = 0;  // negative log-likelihood
    int64_t tokens = 0;
    /// e to the mean negative log-likelihood.
    double value() const;
  };
  /// Of a text; `progress` is called behind each window.
  Perplexity perplexity(std::span<const TokenId> text, int64_t window,
                        const std::function<void(const Perplexity&)>& progress = {});

  /// The decoder that generation uses; with logits of all tokens fed or of the last alone.
  Decoder& decoder(bool all_logits = false, const std::shared_ptr<const Adapter>& adapter = {},
                   bool draft_hidden = false);
  /// What chooses tokens from logits.
  Sampler& sampler();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rlx::llm
