#include "rlx/text/vocab.h"

#include <bit>
#include <charconv>

#include "rlx/base/error.h"
#include "rlx/text/hash.h"

namespace rlx::text {

namespace {

constexpr uint64_t slot_value(uint64_t hash, TokenId id) {
  return (hash & 0xFFFFFFFF00000000u) | uint32_t(id + 1);
}

}  // namespace

void Vocab::reserve(size_t tokens, size_t bytes) {
  bytes_.reserve(bytes);
  entries_.reserve(tokens);
  const size_t want = std::bit_ceil(tokens * 2 + 16);
  if (slots_.size() < want && count_ == 0) slots_.assign(want, 0);
}

void Vocab::grow() {
  std::vector<uint64_t> bigger(std::max<size_t>(64, slots_.size() * 2), 0);
  slots_.swap(bigger);
  const size_t mask = slots_.size() - 1;
  for (size_t id = 0; id < entries_.size(); ++id) {
    if (!entries_[id].used) continue;
    const uint64_t hash = hash_bytes(text(TokenId(id)));
    size_t at = hash & mask;
    const std::string_view token = text(TokenId(id));
    const auto is_other = [&](uint64_t slot) {
      return slot && ((slot ^ hash) >> 32 != 0 || text(TokenId(uint32_t(slot) - 1)) != token);
    };
    while (is_other(slots_[at])) at = (at + 1) & mask;  // of ids with one text the last is found
    slots_[at] = slot_value(hash, TokenId(id));
  }
}

bool Vocab::add(std::string_view token, TokenId id) { return insert(token, id, false); }

bool Vocab::add_or_take(std::string_view token, TokenId id) { return insert(token, id, true); }

bool Vocab::insert(std::string_view token, TokenId id, bool takes) {
  RLX_CHECK(id >= 0 && id <= kMaxTokenId, "token id ", id);
  if (has(id)) return false;
  if ((count_ + 1) * 2 > slots_.size()) grow();
  const uint64_t hash = hash_bytes(token);
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  for (; slots_[at]; at = (at + 1) & mask) {
    if ((slots_[at] ^ hash) >> 32 != 0 || text(TokenId(uint32_t(slots_[at]) - 1)) != token) continue;
    if (!takes) return false;
    break;
  }
  if (size_t(id) >= entries_.size()) entries_.resize(size_t(id) + 1);
  entries_[size_t(id)] = {bytes_.size(), uint32_t(token.size()), true};
  bytes_.append(token);
  slots_[at] = slot_value(hash, id);
  ++count_;
  return true;
}

std::string byte_token_name(uint8_t byte) {
  constexpr char kHex[] = "0123456789ABCDEF";
  return {'<', '0', 'x', kHex[byte >> 4], kHex[byte & 15], '>'};
}

int byte_token_value(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  unsigned value = 0;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, value, 16);
  return error == std::errc() && end == token.data() + 5 ? int(value) : -1;
}

std::optional<TokenId> Vocab::find(std::string_view token) const {
  if (slots_.empty()) return std::nullopt;
  const uint64_t hash = hash_bytes(token);
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask; slots_[at]; at = (at + 1) & mask) {
    const TokenId id = TokenId(uint32_t(slots_[at]) - 1);
    if ((slots_[at] ^ hash) >> 32 == 0 && text(id) == token) return id;
  }
  return std::nullopt;
}

}  // namespace rlx::text
