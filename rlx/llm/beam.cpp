#include <algorithm>
#include <cmath>
#include <numeric>

#include "rlx/base/error.h"
#include "rlx/llm/model_state.h"

namespace rlx::llm {

namespace {

struct Beam {
  std::vector<TokenId> tokens;
  std::vector<float> log_probabilities;
  double score = 0;  // their sum
};

struct Step {
  double score;
  int64_t beam;
  TokenId token;
};

// The best continuations of one beam, as many as there are beams and one more for each way to end.
void add_best(std::vector<Step>& steps, std::span<const float> logits, int64_t beam, double score,
              size_t keep) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(double(x) - largest);
  const double log_sum = largest + std::log(sum);
  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  keep = std::min(keep, order.size());
  std::partial_sort(order.begin(), order.begin() + long(keep), order.end(), [&](TokenId a, TokenId b) {
    return logits[size_t(a)] != logits[size_t(b)] ? logits[size_t(a)] > logits[size_t(b)] : a < b;
  });
  for (size_t i = 0; i < keep; ++i)
    steps.push_back({score + double(logits[size_t(order[i])]) - log_sum, beam, order[i]});
}

/// The texts on their way, and those that have ended.
struct Search {
  std::vector<Beam> open = std::vector<Beam>(1), done;  // all rows hold the prompt: one beam to start with

  /// Goes on with the best steps, at most so many; returns which beam each open one continues.
  template <class IsEnd>
  std::vector<int64_t> extend(const std::vector<Step>& steps, int64_t beams, IsEnd is_end) {
    std::vector<Beam> next;
    std::vector<int64_t> from;
    for (const Step& s : steps) {
      if (int64_t(next.size()) == beams) break;
      Beam beam = open[size_t(s.beam)];
      if (is_end(s.token)) {
        beam.score = s.score;
        done.push_back(std::move(beam));
        continue;
      }
      beam.tokens.push_back(s.token);
      beam.log_probabilities.push_back(float(s.score - beam.score));
      beam.score = s.score;
      next.push_back(std::move(beam));
      from.push_back(s.beam);
    }
    open = std::move(next);
    return from;
  }

  // Scores only fall: an ended text better than all open ones stays the best.
  bool is_decided() const {
    double best = -INFINITY;
    for (const Beam& b : done) best = std::max(best, b.score);
    return open.empty() || best >= open[0].score;
  }

  Generation best() const {
    Generation out;
    out.finish = Finish::max_tokens;
    const Beam* best = open.empty() ? nullptr : &open[0];
    for (const Beam& b : done)
      if (!best || b.score >= best->score) best = &b, out.finish = Finish::end_token;
    if (best) out.tokens = best->tokens, out.log_probabilities = best->log_probabilities;
    return out;
  }
};

}  // namespace

// Beams are rows of a batch. A step keeps the best continuations over all of them; a row then goes on with the memory of the
// beam it continues.
Generation LanguageModel::beam_search(std::span<const TokenId> prompt, int64_t beams,
                                      const GenerateOptions& options) {
  if (prompt.empty()) throw invalid("generate: the prompt is empty; at least one token expected");
  if (beams < 1) throw invalid("generate: ", beams, " beams; 1 or more expected");
  if (!options.stop.empty() || options.grammar)
    throw invalid("generate: beam search knows no stop texts and no grammars");
  Decoder& d = state_->batch_decoder(beams, options.adapter);
  if (int64_t(prompt.size()) + options.max_tokens > d.capacity())
    throw invalid("generate: ", prompt.size(), " and ", options.max_tokens,
                  " tokens are more than the context of ", d.capacity());
  // The prompt is read once, behind what is remembered of the text before.
  Decoder& one = decoder(false, options.adapter);
  const int64_t reused = one.reuse(prompt);
  TensorView logits = one.feed(prompt.subspan(size_t(reused)));
  d.adopt(one);

  const auto is_end = [&](TokenId id) {
    const auto among = [&](const std::vector<TokenId>& list) {
      return std::find(list.begin(), list.end(), id) != list.end();
    };
    return among(options.end_tokens) || (!options.ignore_end && among(end_tokens()));
  };
  Search search;
  const size_t keep = size_t(beams) + end_tokens().size() + options.end_tokens.size();
  for (int64_t step = 0; step < options.max_tokens; ++step) {
    std::vector<Step> steps;
    for (size_t b = 0; b < search.open.size(); ++b)
      add_best(steps, logits.as<const float>().subspan(b * size_t(d.vocab()), size_t(d.vocab())), int64_t(b),
               search.open[b].score, keep);
    std::stable_sort(steps.begin(), steps.end(),
                     [](const Step& x, const Step& y) { return x.score > y.score; });
    std::vector<int64_t> from = search.extend(steps, beams, is_end);
    if (search.is_decided() || step + 1 == options.max_tokens) break;
    std::vector<TokenId> fed;
    for (const Beam& b : search.open) fed.push_back(b.tokens.back());
    while (int64_t(from.size()) < beams) from.push_back(0), fed.push_back(fed[0]);
    d.reorder(from);
    logits = d.feed(fed);
  }
  Generation out = search.best();
  if (state_->tokenizer) out.text = state_->tokenizer->decode(out.tokens);
  out.prompt_tokens = int64_t(prompt.size());
  out.reused_tokens = reused;
  return out;
}

}  // namespace rlx::llm
