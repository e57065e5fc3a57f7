#include "rlx/text/added_tokens.h"

#include <algorithm>

namespace rlx::text {

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const Normalizer* normalizer)
    : tokens_(std::move(tokens)) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& t = tokens_[i];
    by_id_.emplace(t.id, i);
    std::string content = t.content;
    if (t.normalized && normalizer) {
      TrackedText text;
      text.reset(t.content, 0, false);
      normalizer->apply(text);
      content = text.view();
    }
    tokens_[i].shown = content;
    if (content.empty()) continue;
    for (const bool special : {false, true}) {
      if (t.special && !special) continue;
      Finder& finder = finders_[t.normalized || t.as_spelled][special];
      // Two that normalise to the same form: a special one is found, and of equals the first.
      const Trie::Match same = finder.trie.longest(content);
      if (same.length == content.size() && tokens_[size_t(same.value)].special >= t.special) continue;
      finder.add(content, int32_t(i));
    }
  }
}

void AddedTokens::Finder::add(std::string_view content, int32_t token) {
  const auto first = static_cast<unsigned char>(content[0]);
  trie.set(content, token);
  first_bytes[first] = true;
  any = true;
  only = only == kNone || only == first ? first : kSeveral;
}

size_t AddedTokens::Finder::next(std::string_view text, size_t at) const {
  if (only >= 0) return std::min(text.find(char(only), at), text.size());
  while (at < text.size() && !first_bytes[static_cast<unsigned char>(text[at])]) ++at;
  return at;
}

const AddedToken* AddedTokens::find(TokenId id) const {
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : &tokens_[it->second];
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  for (const AddedToken& t : tokens_)
    if (t.content == content) return &t;
  return nullptr;
}

namespace {

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  const CharClasses classes;
  if (begin > 0 && (classes[last_utf8(text.substr(0, begin)).code] & kWord)) return false;
  return end >= text.size() || !(classes[decode_utf8(text, end).code] & kWord);
}

}  // namespace

void AddedTokens::split(std::string_view text, bool after, bool special, std::vector<Part>& parts) const {
  parts.clear();
  const Finder& finder = finders_[after][special];
  const CharClasses classes;
  size_t done = 0;
  for (size_t at = 0; finder.any && (at = finder.next(text, at)) < text.size();) {
    const Trie::Match m = finder.trie.longest(text.substr(at));
    if (m.length == 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[size_t(m.value)];
    size_t begin = at, end = at + m.length;
    at = end;
    if (token.single_word && !stands_alone(text, begin, end)) continue;
    if (token.left_strip) {
      while (begin > done) {
        const Decoded c = last_utf8(text.substr(0, begin));
        if (!(classes[c.code] & kSpace)) break;
        begin -= c.length;
      }
      begin = std::max(begin, done);  // spaces that the token before took are gone
    }
    if (token.right_strip) {
      while (end < text.size()) {
        const Decoded c = decode_utf8(text, end);
        if (!(classes[c.code] & kSpace)) break;
        end += c.length;
      }
    }
    // Spaces taken here may hold further tokens, which count too: the search goes on behind the token itself.
    if (begin >= end) continue;
    if (done < begin) parts.push_back({{uint32_t(done), uint32_t(begin)}, -1});
    parts.push_back({{uint32_t(begin), uint32_t(end)}, token.id});
    done = end;
  }
  if (done < text.size()) parts.push_back({{uint32_t(done), uint32_t(text.size())}, -1});
}

}  // namespace rlx::text
