#include "rlx/text/decode_table.h"

#include <algorithm>
#include <cstring>

#include "rlx/base/error.h"
#include "rlx/text/tracked_text.h"

namespace rlx::text {

namespace {

constexpr size_t kCopy = 16;  // bytes copied at once; the table ends with as many spare ones

}  // namespace

DecodeTable::DecodeTable(const Vocab& vocab, const AddedTokens& added, std::optional<Decoder> decoder)
    : vocab_(vocab), added_(added) {
  using Kind = DecodeStep::Kind;
  if (decoder) {
    decoder_ = std::move(*decoder);
  } else {
    decoder_.push_back({Kind::each, [](std::string& token, bool first) {
                          if (!first) token.insert(token.begin(), ' ');
                        }});
  }
  while (each_steps_ < decoder_.size() && decoder_[each_steps_].kind == Kind::each) ++each_steps_;
  joined_steps_ = each_steps_;
  if (joined_steps_ < decoder_.size() && decoder_[joined_steps_].kind == Kind::byte_fallback) {
    has_fallback_ = true;
    ++joined_steps_;
  }
  if (joined_steps_ < decoder_.size()) {
    tabled_ = decoder_[joined_steps_].kind == Kind::fuse;
    ++joined_steps_;
  }

  size_t count = vocab.size();
  for (const AddedToken& t : added.list()) count = std::max(count, size_t(t.id) + 1);
  entries_.resize(count);
  std::string spelled;
  size_t source_bytes = 0;  // of the spellings before the decoder
  for (size_t id = 0; id < count; ++id) {
    const AddedToken* t = added.find(TokenId(id));
    if (!t && !vocab.has(TokenId(id))) continue;
    spelled = spelling(TokenId(id));
    source_bytes += spelled.size();
    for (size_t i = 0; i < each_steps_; ++i) {
      decoder_[i].rewrite(spelled, false);
      check_growth(bytes_.size() + spelled.size(), growth_limit(source_bytes));
    }
    Entry& e = entries_[id];
    e.offset = bytes_.size();
    e.length = uint32_t(spelled.size());
    e.used = true;
    e.special = t && t->special;
    if (has_fallback_) e.fallback_byte = int16_t(byte_token_value(spelled));
    bytes_.append(spelled);
  }
  bytes_.append(kCopy, '\0');
}

std::string_view DecodeTable::spelling(TokenId id) const {
  const AddedToken* t = added_.find(id);
  return t ? std::string_view(t->shown) : token(id);
}

std::string_view DecodeTable::token(TokenId id) const {
  if (const AddedToken* t = added_.find(id)) return t->content;
  return vocab_.has(id) ? vocab_.text(id) : std::string_view();
}

std::string DecodeTable::first_form(TokenId id) const {
  std::string spelled(spelling(id));
  const size_t limit = growth_limit(spelled.size());
  for (size_t i = 0; i < each_steps_; ++i) {
    decoder_[i].rewrite(spelled, true);
    check_growth(spelled.size(), limit);
  }
  return spelled;
}

std::string DecodeTable::decode_by_steps(std::span<const TokenId> ids, bool skip_special) const {
  std::vector<std::string> tokens;
  for (const TokenId id : ids)
    if (!(skip_special && is_special(id))) tokens.emplace_back(spelling(id));
  return run_decoder(decoder_, 0, std::move(tokens));
}

std::string DecodeTable::decode(std::span<const TokenId> ids, const DecodeOptions& options) const {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!entry(ids[i]))
      throw invalid("decode: id ", ids[i], " at position ", i, " has no token; the vocabulary ends at ",
                    entries_.size());
  }
  std::string text;
  if (!tabled_) {
    text = decode_by_steps(ids, options.skip_special);
  } else {
    // Sizes first, so that the copying loop can write sixteen bytes at a time without looking.
    size_t total = 0;
    for (const TokenId id : ids) total += entries_[size_t(id)].length;
    std::string fallback;
    size_t first = 0;
    while (first < ids.size() && options.skip_special && entries_[size_t(ids[first])].special) ++first;
    std::string head = first < ids.size() ? first_form(ids[first]) : std::string();
    if (first < ids.size() && entries_[size_t(ids[first])].fallback_byte < 0) {
      ++first;
    } else {
      head.clear();  // nothing, or a byte token that the loop handles
    }
    // A byte of a broken run becomes U+FFFD: three bytes where its token had six.
    text.resize(head.size() + total + kCopy);
    std::memcpy(text.data(), head.data(), head.size());
    char* out = text.data() + head.size();
    const auto flush = [&] {
      std::string decoded;
      append_fallback_bytes(decoded, fallback);
      std::memcpy(out, decoded.data(), decoded.size());
      out += decoded.size();
      fallback.clear();
    };
    for (size_t i = first; i < ids.size(); ++i) {
      const Entry& e = entries_[size_t(ids[i])];
      if (e.special && options.skip_special) continue;
      if (e.fallback_byte >= 0) {
        fallback.push_back(char(e.fallback_byte));
        continue;
      }
      if (!fallback.empty()) flush();
      const char* from = bytes_.data() + e.offset;
      if (e.length <= kCopy) {
        std::memcpy(out, from, kCopy);
      } else {
        std::memcpy(out, from, e.length);
      }
      out += e.length;
    }
    if (!fallback.empty()) flush();
    text.resize(size_t(out - text.data()));
    if (joined_steps_ < decoder_.size()) text = run_decoder(decoder_, joined_steps_, {std::move(text)});
  }
  return options.replace_invalid ? replace_invalid_utf8(text) : text;
}

}  // namespace rlx::text
