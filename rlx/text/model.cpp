#include "rlx/text/model.h"

#include "rlx/text/hash.h"

namespace rlx::text {

bool WordCache::find(std::string_view word, uint64_t hash, TokenSink& out) const {
  const Slot& s = slots_[hash & (kSlots - 1)];
  if (s.tag != tag(hash) || s.length != word.size()) return false;
  if (std::memcmp(bytes_.data() + s.bytes, word.data(), word.size()) != 0) return false;
  const TokenId* ids = ids_.data() + s.tokens;
  if (s.count == 1) {
    out.ids.push_back(*ids);
  } else {
    out.ids.insert(out.ids.end(), ids, ids + s.count);
  }
  if (out.want_ranges) {
    for (size_t i = 0; i < s.count; ++i) {
      const Range r = ranges_[s.tokens + i];
      out.ranges.push_back({r.begin + out.base, r.end + out.base});
    }
  }
  return true;
}

void WordCache::store(std::string_view word, uint64_t hash, const std::vector<Token>& tokens) {
  if (tokens.size() > 0xFFFF) return;
  if (ids_.size() + tokens.size() > kMaxStored || bytes_.size() + word.size() > 4 * kMaxStored) {
    std::fill(slots_.begin(), slots_.end(), Slot{});
    bytes_.clear();
    ids_.clear();
    ranges_.clear();
  }
  slots_[hash & (kSlots - 1)] = {tag(hash), uint32_t(bytes_.size()), uint32_t(ids_.size()),
                                 uint16_t(word.size()), uint16_t(tokens.size())};
  bytes_.insert(bytes_.end(), word.begin(), word.end());
  for (const Token& t : tokens) {
    ids_.push_back(t.id);
    ranges_.push_back(t.range);
  }
}

Error missing_unknown(std::string_view model, std::string_view text, std::string_view unknown) {
  return invalid(model, ": '", text, "' has no token, and the unknown token '", unknown,
                 "' is not in the vocabulary");
}

void Model::encode(std::string_view word, ModelScratch& scratch, TokenSink& out) const {
  if (word.size() > WordCache::kMaxWord) return encode_long(word, scratch, out);
  const uint64_t hash = hash_bytes(word);
  if (scratch.cache.find(word, hash, out)) return;
  scratch.tokens.clear();
  encode_word(word, scratch, scratch.tokens);
  scratch.cache.store(word, hash, scratch.tokens);
  for (const Token& t : scratch.tokens) out.add(t.id, t.range);
}

void Model::encode_long(std::string_view word, ModelScratch& scratch, TokenSink& out) const {
  scratch.tokens.clear();
  encode_word(word, scratch, scratch.tokens);
  for (const Token& t : scratch.tokens) out.add(t.id, t.range);
}

}  // namespace rlx::text
