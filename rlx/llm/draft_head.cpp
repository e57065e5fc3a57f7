#include "rlx/llm/draft_head.h"

#include <algorithm>
#include <numeric>

#include "rlx/base/error.h"

namespace rlx::llm {

DraftHead::DraftHead(const models::Model& model, int64_t tokens, int64_t capacity, CompileOptions compile)
    : tokens_(tokens),
      width_(model.config().hidden),
      capacity_(model.config().max_positions > 0 ? std::min(capacity, model.config().max_positions)
                                                 : capacity),
      layout_(model.config(), capacity_, capacity_) {
  models::GraphOptions g{.last_only = true, .draft_hidden = true, .draft = true};
  g.pages = layout_.store(1);
  models::ModelGraph made = model.graph(g);
  for (const models::State& s : made.states) compile.states.push_back({s.input, s.output});
  graph_ = std::make_unique<CompiledGraph>(made.graph, made.weights, compile);
  pages_.resize(size_t(layout_.pages));
  std::iota(pages_.begin(), pages_.end(), 1);
}

void DraftHead::follow(int64_t first, std::span<const float> hidden) {
  RLX_CHECK(first * width_ <= int64_t(hidden_.size()), "what the model made of token ", first,
            " comes too early");
  hidden_.resize(size_t(first * width_));
  hidden_.insert(hidden_.end(), hidden.begin(), hidden.end());
  // Pair i is token i + 1 with what the model made of token i: from first on tokens are new.
  read_ = std::clamp<int64_t>(first - 1, 0, read_);
}

std::vector<TokenId> DraftHead::guess(std::span<const TokenId> text, int64_t most) {
  const auto known = int64_t(hidden_.size()) / width_;
  const int64_t wanted = std::min({tokens_, most, capacity_ - known});
  // The last token of the text is not read by the model yet, all others are.
  if (wanted <= 0 || known == 0 || known + 1 != int64_t(text.size())) return {};
  std::vector<TokenId> out;
  const auto of = [&](int64_t i, int64_t n) {
    return std::span(hidden_).subspan(size_t(i * width_), size_t(n * width_));
  };
  const int64_t pairs = known - read_;
  out.push_back(read(text.subspan(size_t(read_ + 1), size_t(pairs)), read_, of(read_, pairs)));
  read_ = known;
  // What it reads of its own guesses is forgotten: the next pairs take the same places.
  while (int64_t(out.size()) < wanted) {
    const std::vector<float> hidden = last_;
    const TokenId id = out.back();
    out.push_back(read({&id, 1}, known + int64_t(out.size()) - 1, hidden));
  }
  return out;
}

TokenId DraftHead::read(std::span<const TokenId> ids, int64_t position, std::span<const float> hidden) {
  const auto n = int64_t(ids.size());
  positions_.resize(ids.size());
  std::iota(positions_.begin(), positions_.end(), int32_t(position));
  const Input inputs[] = {{"input_ids", view(ids.data(), {1, n})},
                          {"draft_hidden", view(hidden.data(), {1, n, width_})},
                          {"positions", view(positions_.data(), {1, n})},
                          {"pages", view(pages_.data(), {1, layout_.pages})}};
  const Outputs out = graph_->run(inputs);
  ++runs_;
  const auto made = out.view("draft_hidden.next").as<const float>().last(size_t(width_));
  last_.assign(made.begin(), made.end());
  const auto logits = out.view("logits").as<const float>();
  return TokenId(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace rlx::llm
