#include "rlx/llm/grammar/token_trie.h"

#include <algorithm>
#include <numeric>

#include "rlx/base/error.h"

namespace rlx::llm {

std::vector<std::string> token_bytes(const text::Tokenizer& tokenizer) {
  const size_t n = tokenizer.vocab_size();
  std::vector<std::string> bytes(n);
  // The spelling of a token may depend on standing first (a space that is left out), so each is decoded behind another one.
  TokenId anchor = -1;
  std::string before;
  for (TokenId id = 0; size_t(id) < n && anchor < 0; ++id) {
    if (tokenizer.is_special(id) || tokenizer.fallback_byte(id) >= 0) continue;
    before = tokenizer.decode(std::vector<TokenId>{id});
    if (before.size() == 1 && before[0] >= 'a' && before[0] <= 'z') anchor = id;
  }
  for (TokenId id = 0; size_t(id) < n; ++id) {
    if (tokenizer.is_special(id) || tokenizer.id_to_token(id).empty()) continue;
    if (const int byte = tokenizer.fallback_byte(id); byte >= 0) {
      bytes[size_t(id)] = std::string(1, char(byte));
    } else if (anchor >= 0) {
      const std::string both = tokenizer.decode(std::vector<TokenId>{anchor, id});
      if (both.starts_with(before)) bytes[size_t(id)] = both.substr(before.size());
    } else {
      bytes[size_t(id)] = tokenizer.decode(std::vector<TokenId>{id});
    }
  }
  return bytes;
}

TokenTrie::TokenTrie(std::vector<std::string> bytes, std::vector<TokenId> end_tokens)
    : bytes_(std::move(bytes)), end_tokens_(std::move(end_tokens)) {
  for (const TokenId id : end_tokens_)
    if (id < 0 || size_t(id) >= bytes_.size())
      throw invalid("token trie: end token ", id, " is not below ", bytes_.size(),
                    ", the size of the vocabulary");
  std::vector<TokenId> order;
  for (TokenId id = 0; size_t(id) < bytes_.size(); ++id)
    if (!bytes_[size_t(id)].empty() && !is_end(id)) order.push_back(id);
  std::sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
    const int c = bytes_[size_t(a)].compare(bytes_[size_t(b)]);
    return c != 0 ? c < 0 : a < b;
  });
  std::vector<int32_t> open;  // the nodes of the last token
  std::string last;
  for (const TokenId id : order) {
    const std::string& now = bytes_[size_t(id)];
    const size_t shared =
        size_t(std::mismatch(last.begin(), last.end(), now.begin(), now.end()).first - last.begin());
    for (; open.size() > shared; open.pop_back()) nodes_[size_t(open.back())].after = int32_t(nodes_.size());
    for (size_t i = shared; i < now.size(); ++i) {
      open.push_back(int32_t(nodes_.size()));
      nodes_.push_back({static_cast<unsigned char>(now[i]), int32_t(i), 0, int32_t(tokens_.size()),
                        int32_t(tokens_.size())});
    }
    tokens_.push_back(id);
    nodes_[size_t(open.back())].last_token = int32_t(tokens_.size());
    depth_ = std::max(depth_, int32_t(now.size()));
    last = now;
  }
  for (; !open.empty(); open.pop_back()) nodes_[size_t(open.back())].after = int32_t(nodes_.size());
}

TokenTrie::TokenTrie(const text::Tokenizer& tokenizer, std::vector<TokenId> end_tokens)
    : TokenTrie(token_bytes(tokenizer), std::move(end_tokens)) {
  for (TokenId id = 0; size_t(id) < tokenizer.vocab_size(); ++id)
    if (tokenizer.is_special(id)) special_.emplace(tokenizer.id_to_token(id), id);
}

std::optional<TokenId> TokenTrie::named(const std::string& name) const {
  if (const auto found = special_.find(name); found != special_.end()) return found->second;
  const auto found = std::find(bytes_.begin(), bytes_.end(), name);
  if (name.empty() || found == bytes_.end()) return std::nullopt;
  return TokenId(found - bytes_.begin());
}

bool TokenTrie::is_end(TokenId id) const {
  return std::find(end_tokens_.begin(), end_tokens_.end(), id) != end_tokens_.end();
}

}  // namespace rlx::llm
