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

struct DecoderOptions {
  int64_t capacity = 4096;  // tokens that are remembered; at most what the model was made for
  int64_t batch = 1;        // texts that grow together
  DType cache_type = DType::f32;
  bool all_logits = false;  // of every token fed, not of the last alone
  int64_t chunk = 512;      // a longer prompt is read in pieces of this size
  models::LinearHook linear;
  ir::NamedLiterals adapter_weights;  // of params that the hook makes
  CompileOptions compile;
};

/// The compiled graph of a model with its caches. Rows of a batch grow by the same number of tokens; rows of different lengths
/// have padding in front.
class Decoder {
 public:
  /// An encoder is a user error.
  Decoder(const models::Model&, DecoderOptions);

  int64_t vocab() const { return config_.vocab; }
  int64_t capacity() const { return options_.capacity; }
  int64_t batch() const { return options_.batch; }
  /// Tokens (and padding) remembered by every row.
  int64_t length() const { return length_; }
  /// What a row remembers, without padding.
  const std::vector<TokenId>& tokens(size_t row = 0) const { return tokens_[row]; }

  /// Appends to each row; `ids` is [batch, n]. The first `padding[row]` ids of a row are none, which only an empty memory may be
  /// given. Logits f32 [batch, 1, vocab] of the last token, or [batch, n, vocab] with all_logits; valid until the next call.
  /// More than the capacity is a user error.
  TensorView feed(std::span<const TokenId> ids, std::span<const int64_t> padding = {});

  /// Whether the memory can be cut back: not where layers keep a running state.
  bool can_truncate() const { return can_truncate_; }
  /// Forgets all but the first tokens. Needs can_truncate() unless nothing, or everything, is kept.
  void truncate(int64_t length);
  /// Copies of all that is remembered, for models that cannot be cut back.
  struct Snapshot {
    NamedLiterals states;
    int64_t length = 0;
    std::vector<std::vector<TokenId>> tokens;
  };
  Snapshot save();
  void restore(const Snapshot&);

  /// Row i goes on with what row from[i] remembers.
  void reorder(std::span<const int64_t> from);

  CompiledGraph& compiled() { return *graph_; }

 private:
  TensorView feed_piece(std::span<const TokenId> ids, int64_t n, std::span<const int64_t> padding);
  void read_again_if_long(int64_t more);

  models::Config config_;
  DecoderOptions options_;
  std::unique_ptr<CompiledGraph> graph_;
  bool can_truncate_ = true;
  bool takes_context_length_ = false;
  std::vector<models::State> states_;
  int64_t length_ = 0;
  int64_t context_length_ = 0;                // tokens the text is known to have
  std::vector<std::vector<TokenId>> tokens_;  // by row
  std::vector<int32_t> slots_;  // [batch, capacity]: the position that each slot holds, -1: none
  std::vector<int32_t> positions_, key_positions_;
  std::vector<TokenId> piece_;
  std::vector<float> gathered_;  // logits of all pieces of a call
};

}  // namespace rlx::llm
