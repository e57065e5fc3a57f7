// What a LanguageModel holds; for the files that implement it.
#pragma once

#include "rlx/llm/draft_head.h"
#include "rlx/llm/language_model.h"

namespace rlx::llm {

struct LanguageModel::State {
  struct Chat {
    text::ChatTemplate tmpl;
    std::string bos, eos;
  };
  // One for each way of compiling the model; each has a memory of its own.
  struct Held {
    bool all_logits;
    std::shared_ptr<const Adapter> adapter;
    std::unique_ptr<Decoder> decoder;
    bool draft_hidden = false;
    std::unique_ptr<DraftHead> head = {};  // follows the decoder
  };

  std::shared_ptr<const models::Model> model;
  ModelOptions options;
  std::optional<text::Tokenizer> tokenizer;
  std::string why_no_tokenizer;
  std::vector<TokenId> end_tokens;
  std::shared_ptr<const TokenTrie> trie;
  std::optional<Chat> chat;
  std::vector<Held> decoders;
  std::unique_ptr<Held> batch;  // of the last number of rows
  std::unique_ptr<Sampler> sampler;

  DraftHead& draft_head(const Decoder&, int64_t tokens);
  Decoder& batch_decoder(int64_t rows, const std::shared_ptr<const Adapter>& adapter);
};

}  // namespace rlx::llm
