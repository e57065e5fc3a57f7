// A language model with a memory: tokens go in, logits come out, what was read stays.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "rlx/models/model.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/text/vocab.h"

namespace rlx::llm {

using text::TokenId;

/// What is remembered, and which form of the graph is run.
struct DecoderOptions {
  int64_t capacity = 4096;  // tokens that are remembered; at most what the model was made for
  int64_t batch = 1;        // texts that grow together
  models::CacheType cache_type;
  bool round_activations = true;  // models::GraphOptions
  bool all_logits = false;        // of every token fed, not of the last alone
  bool draft_hidden = false;      // keeps what the model's draft head reads; for one text
  int64_t chunk = 512;            // a longer prompt is read in pieces of this size
  int64_t page = 256;             // tokens of a page of the memory
  models::LinearHook linear;
  ir::NamedLiterals adapter_weights;  // of params that the hook makes
  CompileOptions compile;
};

/// How a memory for texts of `capacity` tokens is laid out: each row has pages one behind the other, in order; those of layers with a window
/// go round.
struct MemoryLayout {
  int64_t page = 0, pages = 0,
          ring = 0;  // tokens of a page; pages of a row, and of one in the store of windows
  MemoryLayout() = default;
  MemoryLayout(const models::Config&, int64_t capacity, int64_t chunk, int64_t page_tokens = 256);
  /// The store of pages for so many rows.
  models::PageStore store(int64_t batch) const;
};

/// The compiled graph of a model with its caches. Rows of a batch are given the same number of tokens at a time; rows of different
/// lengths have padding in front.
class Decoder {
 public:
  /// An encoder is a user error.
  Decoder(const models::Model&, DecoderOptions);

  /// Logits of a token.
  int64_t vocab() const { return config_.vocab; }
  /// Tokens that a row can remember.
  int64_t capacity() const { return options_.capacity; }
  /// Rows.
  int64_t batch() const { return options_.batch; }
  /// Tokens that the longest row remembers.
  int64_t length() const;
  /// What a row remembers, without padding.
  const std::vector<TokenId>& tokens(size_t row = 0) const { return tokens_[row]; }

  /// Appends to each row; `ids` is [batch, n]. The first `padding[row]` ids of a row are none, which only an empty memory may be
  /// given. Logits f32 [batch, 1, vocab] of the last token, or [batch, n, vocab] with all_logits; valid until the next call.
  /// More than the capacity is a user error.
  TensorView feed(std::span<const TokenId> ids, std::span<const int64_t> padding = {});

  /// Whether the memory can be cut back to so many tokens: layers may keep a running state, or only their window.
  bool can_truncate(int64_t length) const;
  /// Whether layers keep a running state: then it cannot, but for nothing and all.
  bool keeps_running_state() const { return keeps_running_state_; }
  /// Tokens that can be fed together with the results of one after the other, and be taken back.
  int64_t most_at_once() const;
  /// Forgets all but the first tokens of each row. Needs can_truncate(length).
  void truncate(int64_t length);
  /// Cuts the memory of one text back to what it has in common with a prompt, leaving at least one token to read. Returns how much stays.
  int64_t reuse(std::span<const TokenId> prompt);
  /// A place to come back to, for models that keep a running state.
  struct Mark {
    std::vector<std::vector<std::byte>> states;  // those that run on
    std::vector<int32_t> lengths;
    std::vector<std::vector<TokenId>> tokens;
  };
  /// The place where it is now.
  Mark mark();
  /// Takes back what was fed since, at most `chunk` tokens.
  void undo(const Mark&);

  /// Row i goes on with what row from[i] remembers.
  void reorder(std::span<const int64_t> from);
  /// Every row goes on with what `one`, a decoder of the same model and options for one text, remembers.
  void adopt(Decoder& one);

  /// With the option draft_hidden: of the tokens of the last call, [n, hidden].
  std::span<const float> draft_hidden() const { return draft_hidden_; }

  /// The program, for plans and profiles.
  CompiledGraph& compiled() { return *graph_; }

 private:
  TensorView feed_piece(std::span<const TokenId> ids, int64_t n, std::span<const int64_t> padding);
  void read_again_if_long(int64_t more);
  void fill_tables();
  int64_t pages_looked_at(int64_t length) const;

  models::Config config_;
  DecoderOptions options_;
  MemoryLayout layout_;
  std::unique_ptr<CompiledGraph> graph_;
  bool keeps_running_state_ = false, takes_context_length_ = false;
  bool takes_pages_ = false, takes_window_pages_ = false, takes_rows_ = false;
  std::vector<models::State> states_;
  int64_t written_ = 0;                       // tokens of the longest row since the memory was empty
  std::vector<std::vector<TokenId>> tokens_;  // by row
  std::vector<int32_t> pages_, window_pages_, rows_;
  int64_t table_width_ = 0;  // pages of a row in the tables
  std::vector<int32_t> positions_;
  std::vector<int32_t> lengths_;  // by row: tokens its text is known to have
  std::vector<TokenId> piece_;
  std::vector<float> gathered_;  // logits of all pieces of a call
  std::vector<float> draft_hidden_;
};

}  // namespace rlx::llm
