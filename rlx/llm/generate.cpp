#include <algorithm>
#include <chrono>

#include "rlx/base/error.h"
#include "rlx/llm/guess.h"
#include "rlx/llm/model_state.h"
#include "rlx/llm/writer.h"

namespace rlx::llm {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::span<const float> row_of(const TensorView& logits, int64_t index) {
  const int64_t vocab = logits.dims[2];
  return logits.as<const float>().subspan(size_t(index * vocab), size_t(vocab));
}

// The tokens of one-by-one decoding, several for a run where guesses hold: a run reads the last token and the guesses behind
// it; each guess that is what the model would have written stays. A draw depends on its place and the seed alone, so this
// holds for drawn tokens too: a guess of probability p stays with probability p, and the text is that of the seed.
int64_t write_guessed(Decoder& decoder, Writer& writer, std::vector<TokenId> text, int64_t max_tokens,
                      Guesser& guesser) {
  int64_t runs = 0;
  while (!writer.ended()) {
    std::vector<TokenId> piece{text.back()};
    const int64_t room = decoder.capacity() - decoder.length() - 1;
    if (room < 0) {
      writer.end(Finish::context_full);
      break;
    }
    const int64_t left = max_tokens - int64_t(writer.tokens().size()) - 1;
    const std::vector<TokenId> guess =
        guesser.guess(text, std::min({room, left, decoder.most_at_once() - 1}));
    piece.insert(piece.end(), guess.begin(), guess.end());
    const int64_t before = decoder.length();
    std::optional<Decoder::Mark> mark;
    if (!guess.empty() && decoder.keeps_running_state()) mark = decoder.mark();
    const TensorView logits = decoder.feed(piece);
    ++runs;
    size_t held = 0;  // guesses that turned out right
    for (size_t i = 0; i < piece.size(); ++i) {
      const std::optional<TokenId> token = writer.write(row_of(logits, int64_t(i)));
      if (token) text.push_back(*token);
      if (!token || writer.ended() || i == guess.size() || *token != guess[i]) break;
      ++held;
    }
    size_t fed = piece.size();
    if (held < guess.size()) {
      if (mark) {
        fed = held + 1;
        decoder.undo(*mark);
        decoder.feed(std::span(piece).first(fed));
      } else {
        decoder.truncate(before + 1 + int64_t(held));
      }
    }
    const auto hidden = decoder.draft_hidden();
    guesser.follow(before, hidden.first(hidden.size() / fed * (held + 1)));
  }
  return runs;
}

int64_t write_plain(Decoder& decoder, Writer& writer, TokenId token) {
  int64_t runs = 0;
  while (!writer.ended()) {
    if (decoder.length() == decoder.capacity()) {
      writer.end(Finish::context_full);
      break;
    }
    const TensorView logits = decoder.feed({&token, 1});
    ++runs;
    if (const auto next = writer.write(row_of(logits, 0))) token = *next;
  }
  return runs;
}

}  // namespace

Generation LanguageModel::generate_ids(std::span<const TokenId> prompt, const GenerateOptions& options,
                                       const OnToken& on_token) {
  const Clock::time_point start = Clock::now();
  if (prompt.empty()) throw invalid("generate: the prompt is empty; at least one token expected");
  const bool guessed = options.lookup > 0 || options.guesser || options.mtp > 0;
  const bool with_head = options.mtp > 0 && !options.guesser;
  Decoder& d = decoder(guessed, options.adapter, with_head);
  PromptLookup lookup(options.lookup);
  Guesser* const guesser = options.guesser ? options.guesser.get()
                           : with_head     ? static_cast<Guesser*>(&state_->draft_head(d, options.mtp))
                                           : &lookup;
  if (int64_t(prompt.size()) > d.capacity())
    throw invalid("generate: the prompt has ", prompt.size(), " tokens, and the context is ", d.capacity());
  Writer writer(*this, prompt, options, on_token);
  const int64_t reused = d.reuse(prompt);
  int64_t runs = 0;
  double first = 0;
  if (!writer.ended()) {
    const TensorView logits = d.feed(prompt.subspan(size_t(reused)));
    guesser->follow(reused, d.draft_hidden());
    const auto token = writer.write(row_of(logits, logits.dims[1] - 1));
    first = seconds_since(start);
    if (token && !writer.ended()) {
      if (guessed) {
        std::vector<TokenId> text(prompt.begin(), prompt.end());
        text.push_back(*token);
        runs = write_guessed(d, writer, std::move(text), options.max_tokens, *guesser);
      } else {
        runs = write_plain(d, writer, *token);
      }
    }
  }
  Generation out = writer.take();
  out.reused_tokens = reused;
  out.runs = runs;
  out.first_token_seconds = first;
  out.seconds = seconds_since(start);
  return out;
}

}  // namespace rlx::llm
