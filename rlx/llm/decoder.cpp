#include "rlx/llm/decoder.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "rlx/base/error.h"
#include "rlx/runtime/devices.h"

namespace rlx::llm {

namespace {

bool has_running_state(const models::Config& c) {
  return std::any_of(c.mixers.begin(), c.mixers.end(), [](models::Mixer m) {
    return m == models::Mixer::linear || m == models::Mixer::recurrent || m == models::Mixer::both;
  });
}

}  // namespace

// A page is as long as the parts that attention of one token is cut into. Behind a window there is room for the tokens of one call, so that
// these can be taken back.
MemoryLayout::MemoryLayout(const models::Config& c, int64_t capacity, int64_t chunk, int64_t page_tokens)
    : page(std::min(page_tokens, capacity)), pages((capacity + page - 1) / page), ring(pages) {
  if (c.window > 0) ring = std::min(pages, (c.window + chunk + page - 1) / page + 1);
}

models::PageStore MemoryLayout::store(int64_t batch) const {
  return {.page = page, .count = 1 + batch * pages, .window_count = 1 + batch * ring, .rows = batch};
}

Decoder::Decoder(const models::Model& model, DecoderOptions options)
    : config_(model.config()), options_(std::move(options)) {
  if (config_.encoder)
    throw invalid("model '", model.file().path, "': ", config_.architecture,
                  " is an encoder and generates no text");
  if (config_.max_positions > 0) options_.capacity = std::min(options_.capacity, config_.max_positions);
  if (options_.capacity < 1)
    throw invalid("decoder: a capacity of ", options_.capacity, " tokens; 1 or more expected");
  if (options_.chunk < 1) throw invalid("decoder: pieces of ", options_.chunk, " tokens; 1 or more expected");
  if (options_.page < 1) throw invalid("decoder: pages of ", options_.page, " tokens; 1 or more expected");
  layout_ = MemoryLayout(config_, options_.capacity, options_.chunk, options_.page);
  models::GraphOptions g{.cache_type = options_.cache_type,
                         .last_only = !options_.all_logits,
                         .round_activations = options_.round_activations,
                         .draft_hidden = options_.draft_hidden,
                         .linear = options_.linear};
  g.pages = layout_.store(options_.batch);
  models::ModelGraph made = model.graph(g);
  for (const auto& [name, value] : options_.adapter_weights) made.weights.insert_or_assign(name, value);
  states_ = std::move(made.states);
  options_.compile.device = device_named(options_.compile.device).name();
  for (const models::State& s : states_) options_.compile.states.push_back({s.input, s.output});
  graph_ = std::make_unique<CompiledGraph>(made.graph, made.weights, options_.compile);
  for (const Port& p : graph_->inputs()) {
    takes_pages_ |= p.name == "pages";
    takes_window_pages_ |= p.name == "window_pages";
    takes_rows_ |= p.name == "rows";
    takes_context_length_ |= p.name == "context_length";
  }
  keeps_running_state_ = has_running_state(config_);
  tokens_.resize(size_t(options_.batch));
  lengths_.resize(size_t(options_.batch), 0);
  for (auto& text : tokens_) text.reserve(size_t(options_.capacity));
  for (int64_t row = 0; row < options_.batch; ++row) rows_.push_back(int32_t(row));
}

int64_t Decoder::length() const {
  size_t most = 0;
  for (const auto& text : tokens_) most = std::max(most, text.size());
  return int64_t(most);
}

TensorView Decoder::feed(std::span<const TokenId> ids, std::span<const int64_t> padding) {
  const int64_t batch = options_.batch, n = int64_t(ids.size()) / batch;
  RLX_CHECK(n > 0 && n * batch == int64_t(ids.size()), ids.size(), " ids for ", batch, " rows");
  RLX_CHECK(padding.empty() || length() == 0, "padding behind a text");
  for (int64_t row = 0; row < batch; ++row) {
    const int64_t more = n - (padding.empty() ? 0 : padding[size_t(row)]);
    if (int64_t(tokens_[size_t(row)].size()) + more > options_.capacity)
      throw invalid("decoder: ", int64_t(tokens_[size_t(row)].size()) + more, " tokens are more than the ",
                    options_.capacity, " that are remembered");
  }
  for (const TokenId id : ids)
    if (id < 0 || id >= config_.vocab) throw invalid("decoder: token ", id, " is not below ", config_.vocab);
  read_again_if_long(n);
  for (size_t row = 0; row < tokens_.size(); ++row) {
    const int64_t more = n - (padding.empty() ? 0 : padding[row]);
    lengths_[row] = std::max(lengths_[row], int32_t(int64_t(tokens_[row].size()) + more));
  }
  draft_hidden_.clear();
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

// Kernels of the CPU pass over the pages that hold tokens alone, so one table serves all lengths. Elsewhere all pages of the table may be
// gathered: it grows in steps, each of which is a plan of its own, and between two powers of two there is one more.
int64_t Decoder::pages_looked_at(int64_t length) const {
  if (options_.compile.device == "cpu") return layout_.pages;
  const int64_t needed = (length + layout_.page - 1) / layout_.page;
  const auto rounded = int64_t(std::bit_ceil(uint64_t(needed)));
  return std::min(layout_.pages, needed <= rounded / 4 * 3 ? rounded / 4 * 3 : rounded);
}

void Decoder::fill_tables() {
  const auto size = size_t(options_.batch * table_width_);
  pages_.resize(size);
  window_pages_.resize(size);
  for (int64_t row = 0; row < options_.batch; ++row)
    for (int64_t i = 0; i < table_width_; ++i) {
      pages_[size_t(row * table_width_ + i)] = int32_t(1 + row * layout_.pages + i);
      window_pages_[size_t(row * table_width_ + i)] = int32_t(1 + row * layout_.ring + i % layout_.ring);
    }
}

TensorView Decoder::feed_piece(std::span<const TokenId> ids, int64_t n, std::span<const int64_t> padding) {
  const int64_t batch = options_.batch;
  positions_.resize(size_t(batch * n));
  for (int64_t row = 0; row < batch; ++row) {
    std::vector<TokenId>& text = tokens_[size_t(row)];
    const int64_t pad = padding.empty() ? 0 : padding[size_t(row)];
    for (int64_t i = 0; i < n; ++i) {
      positions_[size_t(row * n + i)] = i < pad ? -1 : int32_t(text.size());
      if (i >= pad) text.push_back(ids[size_t(row * n + i)]);
    }
    lengths_[size_t(row)] = std::max(lengths_[size_t(row)], int32_t(text.size()));
  }
  const int64_t length = this->length();
  written_ = std::max(written_, length);
  if (const int64_t width = pages_looked_at(length); width != table_width_) {
    table_width_ = width;
    fill_tables();
  }
  Input inputs[6];
  size_t count = 0;
  const auto add = [&](const char* name, TensorView value) { inputs[count++] = {name, value}; };
  add("input_ids", view(ids.data(), {batch, n}));
  add("positions", view(positions_.data(), {batch, n}));
  if (takes_pages_) add("pages", view(pages_.data(), {batch, table_width_}));
  if (takes_window_pages_) add("window_pages", view(window_pages_.data(), {batch, table_width_}));
  if (takes_rows_) add("rows", view(rows_.data(), {batch}));
  if (takes_context_length_) add("context_length", view(lengths_.data(), {batch}));
  const Outputs out = graph_->run(std::span<const Input>(inputs, count));
  if (options_.draft_hidden) {
    const auto hidden = out.view("draft_hidden.next").as<const float>();
    draft_hidden_.insert(draft_hidden_.end(), hidden.begin(), hidden.end());
  }
  return out.view("logits");
}

// A model whose frequencies depend on the length of the text reads its texts again when one of them has become long.
void Decoder::read_again_if_long(int64_t more) {
  if (!takes_context_length_ || length() == 0) return;
  const int64_t limit = config_.rope.original_positions;
  const auto becomes_long = [&](const std::vector<TokenId>& text) {
    const auto now = int64_t(text.size());
    return now <= limit && now + more > limit;
  };
  if (std::none_of(tokens_.begin(), tokens_.end(), becomes_long)) return;
  const std::vector<std::vector<TokenId>> texts = tokens_;
  const int64_t longest = length();
  truncate(0);
  std::vector<TokenId> ids;
  std::vector<int64_t> padding;
  for (size_t row = 0; row < texts.size(); ++row) {
    // The length that decides is that of the text with what is to come.
    if (becomes_long(texts[row])) lengths_[row] = int32_t(limit + 1);
    padding.push_back(longest - int64_t(texts[row].size()));
    ids.insert(ids.end(), size_t(padding.back()), 0);
    ids.insert(ids.end(), texts[row].begin(), texts[row].end());
  }
  feed_piece(ids, longest, padding);
}

// Frequencies that depend on the length of the text change at its limit, or with every token behind it.
int64_t Decoder::most_at_once() const {
  const int64_t limit = config_.rope.original_positions, now = length();
  if (!takes_context_length_) return options_.chunk;
  if (now < limit) return std::min(options_.chunk, limit - now);
  return now == limit || config_.rope.kind == models::Rope::Kind::dynamic ? 1 : options_.chunk;
}

// What a window sees behind `length` tokens must not have been written over by later ones, which go round. Frequencies that
// depend on the length of the text must be those of the shorter one too.
bool Decoder::can_truncate(int64_t length) const {
  if (length == 0 || length == this->length()) return true;
  if (keeps_running_state_) return false;
  if (takes_context_length_) {
    const int64_t limit = config_.rope.original_positions;
    const int64_t known = *std::max_element(lengths_.begin(), lengths_.end());
    if (config_.rope.kind == models::Rope::Kind::dynamic ? known > limit
                                                         : (length > limit) != (known > limit))
      return false;
  }
  if (!takes_window_pages_ || layout_.ring == layout_.pages) return true;
  const int64_t seen = std::max<int64_t>(0, length - config_.window + 1) / layout_.page;
  return (written_ - 1) / layout_.page - seen < layout_.ring;
}

void Decoder::truncate(int64_t length) {
  RLX_CHECK(length >= 0 && length <= this->length(), "cut to ", length, " of ", this->length());
  RLX_CHECK(can_truncate(length), "what is remembered cannot be cut back to ", length);
  if (length == this->length()) return;
  for (size_t row = 0; row < tokens_.size(); ++row) {
    tokens_[row].resize(std::min(tokens_[row].size(), size_t(length)));
    lengths_[row] = int32_t(tokens_[row].size());
  }
  if (length == 0) written_ = 0;
}

int64_t Decoder::reuse(std::span<const TokenId> prompt) {
  const std::vector<TokenId>& held = tokens();
  const auto shared =
      int64_t(std::mismatch(held.begin(), held.end(), prompt.begin(), prompt.end()).first - held.begin());
  int64_t keep = std::min(shared, int64_t(prompt.size()) - 1);
  if (!can_truncate(keep)) keep = 0;
  truncate(keep);
  return keep;
}

Decoder::Mark Decoder::mark() {
  Mark m{.lengths = lengths_, .tokens = tokens_};
  for (const models::State& s : states_) {
    if (s.in_pages) continue;
    const TensorView state = graph_->state(s.input);
    m.states.emplace_back(state.data, state.data + state.bytes());
  }
  return m;
}

void Decoder::undo(const Mark& m) {
  size_t next = 0;
  for (const models::State& s : states_) {
    if (s.in_pages) continue;  // what was written behind the text is written over
    const TensorView state = graph_->state(s.input);
    std::memcpy(state.data, m.states[next].data(), m.states[next].size());
    ++next;
  }
  tokens_ = m.tokens;
  lengths_ = m.lengths;
}

void Decoder::reorder(std::span<const int64_t> from) {
  RLX_CHECK(int64_t(from.size()) == options_.batch, from.size(), " rows");
  const auto rows = size_t(options_.batch);
  std::vector<std::byte> moved;
  for (const models::State& s : states_) {
    const TensorView state = graph_->state(s.input);
    const auto all = size_t(state.dims[0]);
    // Rows of running states, or pages of each row behind the page that is nobody's: of these the slots that were written, all of
    // them where tokens went round.
    const size_t first = s.in_pages ? size_t(layout_.page) : 0, each = s.in_pages ? (all - first) / rows : 1;
    const size_t used = s.in_pages ? std::min(each, size_t(written_)) : 1;
    const size_t bytes = state.bytes() / all, row_bytes = each * bytes, used_bytes = used * bytes;
    std::byte* const data = state.data + first * bytes;
    moved.clear();
    for (size_t i = 0; i < rows; ++i) {
      const std::byte* source = data + size_t(from[i]) * row_bytes;
      if (size_t(from[i]) != i) moved.insert(moved.end(), source, source + used_bytes);
    }
    const std::byte* next = moved.data();
    for (size_t i = 0; i < rows; ++i) {
      if (size_t(from[i]) == i) continue;
      std::memcpy(data + i * row_bytes, next, used_bytes);
      next += used_bytes;
    }
  }
  const auto tokens = tokens_;
  const auto lengths = lengths_;
  for (size_t i = 0; i < rows; ++i) {
    tokens_[i] = tokens[size_t(from[i])];
    lengths_[i] = lengths[size_t(from[i])];
  }
}

void Decoder::adopt(Decoder& one) {
  RLX_CHECK(one.options_.batch == 1 && one.layout_.page == layout_.page &&
                one.layout_.pages == layout_.pages && one.layout_.ring == layout_.ring &&
                one.states_.size() == states_.size(),
            "another memory");
  for (const models::State& s : states_) {
    const TensorView to = graph_->state(s.input), from = one.graph_->state(s.input);
    const auto rows = size_t(options_.batch), bytes = to.bytes() / size_t(to.dims[0]);
    // As in reorder; the last row of running states is nobody's.
    const size_t first = s.in_pages ? size_t(layout_.page) : 0;
    const size_t each = s.in_pages ? (size_t(to.dims[0]) - first) / rows : 1;
    const size_t used = s.in_pages ? std::min(each, size_t(one.written_)) : 1;
    for (size_t row = 0; row < rows; ++row)
      std::memcpy(to.data + (first + row * each) * bytes, from.data + first * bytes, used * bytes);
  }
  for (auto& text : tokens_) text = one.tokens_[0];
  written_ = one.written_;
  lengths_.assign(size_t(options_.batch), one.lengths_[0]);
}

}  // namespace rlx::llm
