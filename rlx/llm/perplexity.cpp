#include <algorithm>
#include <cmath>

#include "rlx/base/error.h"
#include "rlx/lang/operators.h"
#include "rlx/lang/trace.h"
#include "rlx/llm/model_state.h"

namespace rlx::llm {

namespace {

// The log-probability of a token in each row of logits.
Graph scores_graph(int64_t vocab) {
  return trace("scores", [&](Tracer& t) {
    const Dim n = Dim::symbol("n");
    const Tensor logits = t.input("logits", {n, vocab}), targets = t.input("targets", {n, 1}, DType::i32);
    return take_along(logits, targets, {.axis = 1}).squeeze(1) - logits.logsumexp({1});
  });
}

}  // namespace

double LanguageModel::Perplexity::value() const { return tokens > 0 ? std::exp(nll / double(tokens)) : 0; }

// Windows overlap by half: each token is judged once, with at least half a window before it, except in the first window.
LanguageModel::Perplexity LanguageModel::perplexity(std::span<const TokenId> text, int64_t window,
                                                    const std::function<void(const Perplexity&)>& progress) {
  Decoder& d = decoder(true);
  if (window < 2 || window > d.capacity())
    throw invalid("perplexity: a window of ", window, " tokens; 2 to ", d.capacity(), " expected");
  if (text.size() < 2)
    throw invalid("perplexity: the text has ", text.size(), " tokens; at least 2 expected");
  CompileOptions options = state_->options.compile;
  options.states.clear();
  CompiledGraph scores = compile(scores_graph(d.vocab()), {}, options);
  const auto size = int64_t(text.size());
  constexpr int64_t kPiece = 128;
  Perplexity total;
  for (int64_t begin = 0, judged = 1; judged < size; begin += window / 2) {
    const int64_t end = std::min(begin + window, size);
    d.truncate(0);
    for (int64_t at = begin; at < end; at += kPiece) {
      const int64_t n = std::min(kPiece, end - at);
      const TensorView logits = d.feed(text.subspan(size_t(at), size_t(n)));
      // Row i is about token at + i + 1.
      const int64_t first = std::max(judged - 1 - at, int64_t(0)), last = std::min(n, size - 1 - at);
      if (first >= last) continue;
      const TensorView rows =
          view(logits.as<const float>().data() + first * d.vocab(), {last - first, d.vocab()});
      const TensorView targets = view(text.data() + at + first + 1, {last - first, 1});
      const Outputs out = scores.run({{"logits", rows}, {"targets", targets}});
      for (const float x : out[0].as<const float>()) total.nll -= double(x);
      total.tokens += last - first;
    }
    judged = std::min(end + 1, size);
    if (progress) progress(total);
  }
  return total;
}

}  // namespace rlx::llm
