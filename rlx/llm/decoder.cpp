#include "rlx/llm/decoder.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "rlx/base/error.h"

namespace rlx::llm {

namespace {

// Keys that a run looks at. Each number is a plan of its own, so it grows in steps; what is not used yet is masked.
int64_t keys_for(int64_t length, int64_t capacity) {
  constexpr int64_t kFewest = 128;
  const auto rounded = int64_t(std::bit_ceil(uint64_t(std::max(length, kFewest))));
  // Between two powers of two there is one more step, so that at most a third is masked.
  const int64_t between = rounded / 4 * 3;
  return std::min(capacity, length <= between && rounded > kFewest ? between : rounded);
}

bool keeps_running_state(const models::Config& c) {
  return std::any_of(c.mixers.begin(), c.mixers.end(), [](models::Mixer m) {
    return m == models::Mixer::linear || m == models::Mixer::recurrent || m == models::Mixer::both;
  });
}

}  // namespace

Decoder::Decoder(const models::Model& model, DecoderOptions options)
    : config_(model.config()), options_(std::move(options)) {
  if (config_.encoder)
    throw invalid("model '", model.file().path, "': ", config_.architecture,
                  " is an encoder and generates no text");
  if (config_.max_positions > 0) options_.capacity = std::min(options_.capacity, config_.max_positions);
  if (options_.capacity < 1)
    throw invalid("decoder: a capacity of ", options_.capacity, " tokens; 1 or more expected");
  models::ModelGraph g = model.graph({.capacity = options_.capacity,
                                      .batch = options_.batch,
                                      .cache_type = options_.cache_type,
                                      .last_only = !options_.all_logits,
                                      .linear = options_.linear});
  for (const auto& [name, value] : options_.adapter_weights) g.weights.insert_or_assign(name, value);
  states_ = std::move(g.states);
  for (const models::State& s : states_) options_.compile.states.push_back({s.input, s.output});
  graph_ = std::make_unique<CompiledGraph>(g.graph, g.weights, options_.compile);
  for (const Port& p : graph_->inputs()) takes_context_length_ |= p.name == "context_length";
  can_truncate_ = !keeps_running_state(config_) && !takes_context_length_;
  tokens_.resize(size_t(options_.batch));
  slots_.assign(size_t(options_.batch * options_.capacity), -1);
}

TensorView Decoder::feed(std::span<const TokenId> ids, std::span<const int64_t> padding) {
  const int64_t batch = options_.batch, n = int64_t(ids.size()) / batch;
  RLX_CHECK(n > 0 && n * batch == int64_t(ids.size()), ids.size(), " ids for ", batch, " rows");
  RLX_CHECK(padding.empty() || length_ == 0, "padding behind a text");
  if (length_ + n > options_.capacity)
    throw invalid("decoder: ", length_ + n, " tokens are more than the ", options_.capacity,
                  " that are remembered");
  for (const TokenId id : ids)
    if (id < 0 || id >= config_.vocab) throw invalid("decoder: token ", id, " is not below ", config_.vocab);
  read_again_if_long(n);
  context_length_ = std::max(context_length_, length_ + n);
  if (n <= options_.chunk) return feed_piece(ids, n, padding);
  gathered_.clear();
  std::vector<int64_t> left(padding.begin(), padding.end());
  TensorView last;
  for (int64_t at = 0; at < n; at += options_.chunk) {
    const int64_t size = std::min(options_.chunk, n - at);
    piece_.clear();
    for (int64_t row = 0; row < batch; ++row) {
      const auto part = ids.subspan(size_t(row * n + at), size_t(size));
      piece_.insert(piece_.end(), part.begin(), part.end());
    }
    std::vector<int64_t> now(left.size());
    for (size_t r = 0; r < left.size(); ++r) now[r] = std::min(left[r], size), left[r] -= now[r];
    const std::vector<TokenId> piece = piece_;
    last = feed_piece(piece, size, now);
    if (!options_.all_logits) continue;
    RLX_CHECK(batch == 1, "logits of all tokens in pieces are for one row");
    const auto values = last.as<const float>();
    gathered_.insert(gathered_.end(), values.begin(), values.end());
  }
  return options_.all_logits ? view(gathered_.data(), {1, n, config_.vocab}) : last;
}

TensorView Decoder::feed_piece(std::span<const TokenId> ids, int64_t n, std::span<const int64_t> padding) {
  const int64_t batch = options_.batch, capacity = options_.capacity;
  const int64_t keys = std::max(keys_for(length_ + n, capacity), n);
  positions_.resize(size_t(batch * n));
  key_positions_.resize(size_t(batch * keys));
  for (int64_t row = 0; row < batch; ++row) {
    std::vector<TokenId>& text = tokens_[size_t(row)];
    const int64_t pad = padding.empty() ? 0 : padding[size_t(row)];
    for (int64_t i = 0; i < n; ++i) {
      const bool none = i < pad;
      positions_[size_t(row * n + i)] = none ? -1 : int32_t(text.size());
      slots_[size_t(row * capacity + length_ + i)] = positions_[size_t(row * n + i)];
      if (!none) text.push_back(ids[size_t(row * n + i)]);
    }
    std::memcpy(&key_positions_[size_t(row * keys)], &slots_[size_t(row * capacity)],
                size_t(keys) * sizeof(int32_t));
  }
  context_length_ = std::max(context_length_, int64_t(tokens_[0].size()));
  const auto start = int32_t(length_), total = int32_t(context_length_);
  Input inputs[5] = {{"input_ids", view(ids.data(), {batch, n})},
                     {"positions", view(positions_.data(), {batch, n})},
                     {"start", view(&start, {1})},
                     {"key_positions", view(key_positions_.data(), {batch, keys})},
                     {"context_length", view(&total, {1})}};
  const Outputs out = graph_->run(std::span<const Input>(inputs, takes_context_length_ ? 5 : 4));
  length_ += n;
  return out.view("logits");
}

// A model whose frequencies depend on the length of the text reads the text again when it has become long.
void Decoder::read_again_if_long(int64_t more) {
  const int64_t limit = config_.rope.original_positions;
  if (!takes_context_length_ || length_ == 0 || length_ > limit || length_ + more <= limit) return;
  RLX_CHECK(options_.batch == 1, "a text that becomes long in a batch");
  const std::vector<TokenId> text = tokens_[0];
  truncate(0);
  // The length that decides is that of the text with what is to come.
  context_length_ = limit + 1;
  feed_piece(text, int64_t(text.size()), {});
}

void Decoder::truncate(int64_t length) {
  RLX_CHECK(length >= 0 && length <= length_, "cut to ", length, " of ", length_);
  if (length == length_) return;
  RLX_CHECK(can_truncate_ || length == 0, "a running state cannot be cut back");
  const int64_t capacity = options_.capacity;
  for (int64_t row = 0; row < options_.batch; ++row) {
    int32_t* const slots = &slots_[size_t(row * capacity)];
    tokens_[size_t(row)].resize(
        size_t(std::count_if(slots, slots + length, [](int32_t p) { return p >= 0; })));
    std::fill(slots + length, slots + length_, -1);
  }
  length_ = length;
  context_length_ = length;
  if (length == 0 && !can_truncate_)
    for (const models::State& s : states_) graph_->truncate_state(s.input, 0);
}

Decoder::Snapshot Decoder::save() { return {graph_->save_states(), length_, tokens_}; }

void Decoder::restore(const Snapshot& s) {
  graph_->load_states(s.states);
  length_ = context_length_ = s.length;
  tokens_ = s.tokens;
  RLX_CHECK(options_.batch == 1, "snapshots are of one row");
  for (int64_t i = 0; i < options_.capacity; ++i) slots_[size_t(i)] = i < length_ ? int32_t(i) : -1;
}

void Decoder::reorder(std::span<const int64_t> from) {
  RLX_CHECK(int64_t(from.size()) == options_.batch, from.size(), " rows");
  const auto rows = size_t(options_.batch);
  for (const models::State& s : states_) {
    const TensorView state = graph_->state(s.input);
    RLX_CHECK(state.dims[0] == options_.batch, "state '", s.input, "' is not by row");
    const size_t row_bytes = state.bytes() / rows;
    const std::vector<std::byte> before(state.data, state.data + state.bytes());
    for (size_t i = 0; i < rows; ++i)
      if (size_t(from[i]) != i)
        std::memcpy(state.data + i * row_bytes, &before[size_t(from[i]) * row_bytes], row_bytes);
  }
  const auto tokens = tokens_;
  const auto slots = slots_;
  const auto capacity = size_t(options_.capacity);
  for (size_t i = 0; i < rows; ++i) {
    tokens_[i] = tokens[size_t(from[i])];
    std::memcpy(&slots_[i * capacity], &slots[size_t(from[i]) * capacity], capacity * sizeof(int32_t));
  }
}

}  // namespace rlx::llm
