// The tokens of a vocabulary by the bytes they stand for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rlx/text/tokenizer.h"

namespace rlx::llm {

using text::TokenId;

/// The bytes that a token adds to a text before which others stand; empty for special tokens and ids without a token.
std::vector<std::string> token_bytes(const text::Tokenizer&);

/// A prefix tree as a list in the order of a walk: a node is followed by its children, and knows where its subtree ends.
class TokenTrie {
 public:
  /// By id; tokens without bytes are in no node. `end_tokens` end a text.
  TokenTrie(std::vector<std::string> bytes, std::vector<TokenId> end_tokens);
  TokenTrie(const text::Tokenizer&, std::vector<TokenId> end_tokens);

  struct Node {
    unsigned char byte;
    int32_t depth;  // of the children of the root: 0
    int32_t after;  // the first node behind the subtree
    int32_t first_token, last_token;
  };
  const std::vector<Node>& nodes() const { return nodes_; }
  std::span<const TokenId> tokens(const Node& n) const {
    return {tokens_.data() + n.first_token, size_t(n.last_token - n.first_token)};
  }
  const std::string& bytes(TokenId id) const { return bytes_[size_t(id)]; }
  const std::vector<TokenId>& end_tokens() const { return end_tokens_; }
  bool is_end(TokenId id) const;
  /// The token of this name: a special one by its spelling, any other by its bytes.
  std::optional<TokenId> named(const std::string& name) const;
  size_t vocab_size() const { return bytes_.size(); }
  /// Bytes of the longest token.
  int32_t depth() const { return depth_; }

 private:
  std::vector<std::string> bytes_;
  std::vector<TokenId> end_tokens_;
  std::map<std::string, TokenId> special_;
  std::vector<Node> nodes_;
  std::vector<TokenId> tokens_;
  int32_t depth_ = 0;
};

}  // namespace rlx::llm
