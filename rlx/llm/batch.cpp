#include <algorithm>
#include <chrono>

#include "rlx/base/error.h"
#include "rlx/llm/model_state.h"
#include "rlx/llm/writer.h"

namespace rlx::llm {

Decoder& LanguageModel::State::batch_decoder(int64_t rows, const std::shared_ptr<const Adapter>& adapter) {
  if (!batch || batch->decoder->batch() != rows || batch->adapter != adapter) {
    batch.reset();
    DecoderOptions o{.capacity = options.context,
                     .batch = rows,
                     .cache_type = options.cache_type,
                     .round_activations = options.round_activations,
                     .chunk = options.chunk,
                     .compile = options.compile};
    if (adapter) {
      adapter->check_fits(*model);
      o.linear = adapter->hook();
      o.adapter_weights = adapter->weights();
    }
    batch = std::make_unique<Held>(Held{false, adapter, std::make_unique<Decoder>(*model, std::move(o))});
  }
  return *batch->decoder;
}

namespace {

/// What one row of a batch is asked for.
const GenerateOptions& options_of(std::span<const GenerateOptions> options, size_t row) {
  return options[options.size() == 1 ? 0 : row];
}

// Tokens of the longest prompt.
size_t checked_length(std::span<const std::vector<TokenId>> prompts,
                      std::span<const GenerateOptions> options) {
  if (options.size() != 1 && options.size() != prompts.size())
    throw invalid("generate: ", options.size(), " sets of options for ", prompts.size(),
                  " prompts; one, or one for each");
  size_t longest = 0;
  for (size_t row = 0; row < prompts.size(); ++row) {
    const GenerateOptions& o = options_of(options, row);
    if (prompts[row].empty())
      throw invalid("generate: prompt ", row, " is empty; at least one token expected");
    if (o.adapter != options[0].adapter)
      throw invalid("generate: one adapter for all texts of a batch expected");
    if (o.lookup > 0 || o.guesser || o.mtp > 0)
      throw invalid("generate: decoding with guesses is for one text at a time");
    longest = std::max(longest, prompts[row].size());
  }
  return longest;
}

}  // namespace

std::vector<Generation> LanguageModel::generate_batch(std::span<const std::vector<TokenId>> prompts,
                                                      std::span<const GenerateOptions> options) {
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const size_t longest = checked_length(prompts, options);
  if (prompts.empty()) return {};
  Decoder& d = state_->batch_decoder(int64_t(prompts.size()), options[0].adapter);
  if (int64_t(longest) > d.capacity())
    throw invalid("generate: the longest prompt has ", longest, " tokens, and the context is ", d.capacity());
  d.truncate(0);

  std::vector<std::unique_ptr<Writer>> writers;
  std::vector<TokenId> ids;
  std::vector<int64_t> padding;
  const OnToken none;
  for (size_t row = 0; row < prompts.size(); ++row) {
    writers.push_back(std::make_unique<Writer>(*this, prompts[row], options_of(options, row), none));
    padding.push_back(int64_t(longest - prompts[row].size()));
    ids.insert(ids.end(), size_t(padding.back()), 0);
    ids.insert(ids.end(), prompts[row].begin(), prompts[row].end());
  }
  TensorView logits = d.feed(ids, padding);
  double first = 0;
  int64_t runs = 0;
  std::vector<TokenId> next(prompts.size());
  for (;;) {
    bool open = false;
    for (size_t row = 0; row < writers.size(); ++row) {
      const auto vocab = size_t(d.vocab());
      // A row that has ended goes on with its last token; nobody reads it.
      if (const auto token = writers[row]->write(logits.as<const float>().subspan(row * vocab, vocab)))
        next[row] = *token;
      open |= !writers[row]->ended();
    }
    if (runs == 0) first = seconds();
    if (!open) break;
    if (d.length() == d.capacity()) {
      for (auto& writer : writers) writer->end(Finish::context_full);
      break;
    }
    logits = d.feed(next);
    ++runs;
  }
  std::vector<Generation> out;
  for (auto& writer : writers) {
    out.push_back(writer->take());
    out.back().runs = runs;
    out.back().first_token_seconds = first;
    out.back().seconds = seconds();
  }
  return out;
}

}  // namespace rlx::llm
