#include "rlx/llm/writer.h"

#include <algorithm>

#include "rlx/base/error.h"
#include "rlx/llm/model_state.h"

namespace rlx::llm {

Writer::Writer(LanguageModel& model, std::span<const TokenId> prompt, const GenerateOptions& options,
               const OnToken& on_token)
    : model_(model), prompt_(prompt), options_(options), on_token_(on_token), stop_(options.stop) {
  check_sampling(options.sampling, model.config().vocab);
  if (options.max_tokens < 0)
    throw invalid("generate: max_tokens is ", options.max_tokens, "; 0 or more expected");
  if (options.grammar) matcher_.emplace(options.grammar, model.token_trie());
  bool has_text = true;
  try {
    stream_.emplace(model.tokenizer());
  } catch (const Error&) {
    has_text = false;
  }
  if (!has_text && !options.stop.empty()) (void)model.tokenizer();  // says that there is none
  // So that the usual answer allocates nothing for its tokens.
  const auto expected = size_t(std::min<int64_t>(options.max_tokens, 4096));
  out_.tokens.reserve(expected);
  out_.log_probabilities.reserve(expected);
  if (options.max_tokens == 0) end(Finish::max_tokens);
}

bool Writer::is_end(TokenId id) const {
  const auto among = [&](const std::vector<TokenId>& list) {
    return std::find(list.begin(), list.end(), id) != list.end();
  };
  return among(options_.end_tokens) || (!options_.ignore_end && among(model_.end_tokens()));
}

std::optional<TokenId> Writer::write(std::span<const float> logits) {
  if (ended_) return {};
  Sampler::Row row{.sampling = &options_.sampling, .prompt = prompt_, .generated = out_.tokens};
  if (matcher_) {
    row.mask = matcher_->mask(options_.max_tokens - int64_t(out_.tokens.size()));
    if (std::all_of(row.mask.begin(), row.mask.end(), [](uint32_t w) { return w == 0; })) {
      end(matcher_->may_end() ? Finish::grammar_done : Finish::max_tokens);
      return {};
    }
  }
  const Sampler::Choice choice = model_.sampler().choose(logits, row);
  if (matcher_) {
    matcher_->accept(choice.token);
    if (matcher_->ended()) {
      end(Finish::grammar_done);
      return {};
    }
  }
  if (!matcher_ && is_end(choice.token)) {
    end(Finish::end_token);
    return {};
  }
  out_.tokens.push_back(choice.token);
  out_.log_probabilities.push_back(choice.log_probability);
  hand_on(choice.token, choice.log_probability,
          stream_ ? stop_.push(stream_->push(choice.token)) : std::string());
  if (ended_) return {};
  if (stop_.stopped())
    end(Finish::stop_text);
  else if (int64_t(out_.tokens.size()) >= options_.max_tokens)
    end(Finish::max_tokens);
  return choice.token;
}

void Writer::hand_on(TokenId id, float log_probability, const std::string& certain) {
  out_.text += certain;
  if (on_token_ && !on_token_({id, log_probability, certain})) end(Finish::cancelled);
}

void Writer::end(Finish why) {
  if (ended_) return;
  ended_ = true;
  out_.finish = why;
  if (!stream_) return;
  std::string rest = stop_.push(stream_->finish());
  if (stop_.stopped() && why != Finish::cancelled)
    out_.finish = Finish::stop_text;
  else if (!stop_.stopped())
    rest += stop_.finish();
  out_.text += rest;
  if (on_token_ && !rest.empty())
    on_token_({out_.tokens.empty() ? TokenId(-1) : out_.tokens.back(), 0, rest});
}

Generation Writer::take() {
  out_.prompt_tokens = int64_t(prompt_.size());
  return std::move(out_);
}

}  // namespace rlx::llm
