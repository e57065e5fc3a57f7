// Many texts at once: requests come and go at any time, and every step writes one token of each.
//
//   Batcher batcher(model, {.rows = 8});
//   const auto id = batcher.submit(prompt, {.max_tokens = 64});
//   while (batcher.step()) {}
//   Generation g = *batcher.take(id);
//
// Keys and values lie in pages of one store; whole pages of prompts that begin alike are kept once. A prompt is read page by page,
// its rest in pieces of powers of two; then each step reads one token of every text in one run. What a text gets depends on its own
// request alone: bit for bit the same in any company and at any time.
#pragma once

#include <memory>
#include <optional>

#include "rlx/llm/language_model.h"

namespace rlx::llm {

/// How many texts grow together, and what they may remember.
struct BatcherOptions {
  int64_t rows = 8;        // texts that grow together; further ones wait
  int64_t context = 4096;  // tokens of one text; at most what the model was made for
  int64_t page = 64;       // tokens of a page
  int64_t pages = 0;       // of the store; 0: enough for `rows` texts of `context` tokens
  models::CacheType cache_type;
  bool round_activations = true;  // as in ModelOptions
  bool share_prefixes = true;
  int64_t prompt_tokens = 256;  // of prompts that a step reads before it goes on with the texts, about
  std::shared_ptr<const Adapter> adapter;
  CompileOptions compile;
};

class Batcher {
 public:
  /// The model lends its tokenizer and sampler and must outlive the batcher; it is not used by others during a step.
  Batcher(LanguageModel& model, BatcherOptions options = {});
  ~Batcher();

  using RequestId = int64_t;
  /// Any thread may submit and cancel. A request that can never run is a user error: an empty prompt, one longer than the
  /// context, more pages than there are, guesses, another adapter. One for which there is no room yet waits, first come first
  /// served. `on_token` is called from step().
  RequestId submit(std::vector<TokenId> prompt, GenerateOptions options = {}, OnToken on_token = {});
  /// Ends a request with what it has; nothing for one that has ended.
  void cancel(RequestId id);

  /// Reads some of the prompts and one token of every text. False when nothing is left to do.
  bool step();
  /// The answer of a request that has ended, once; what its callback threw is thrown here. Nothing while it runs. An
  /// unknown request is a user error.
  std::optional<Generation> take(RequestId id);

  /// What waits and what runs now, and how full the store is.
  struct Usage {
    int64_t waiting = 0, running = 0;
    int64_t pages = 0, free_pages = 0, prefix_pages = 0;  // of the store; in prefixes that nobody uses now
    int64_t window_pages = 0, free_window_pages = 0;      // of layers with a window, prefixes let go
    int64_t runs = 0, shared_tokens = 0;  // runs of the model, tokens of prompts that were not read again
  };
  /// From the thread that steps.
  Usage usage() const;
  /// Lets go the prefixes that nobody uses.
  void forget_prefixes();

  /// The model's program, for plans and profiles.
  CompiledGraph& compiled();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rlx::llm
