#include "rlx/text/trie.h"

#include <algorithm>
#include <bit>

#include "rlx/base/error.h"

namespace rlx::text {

void Trie::reserve(size_t bytes) {
  // Keys share prefixes: about half of the bytes of a vocabulary are nodes of their own.
  const size_t want = std::bit_ceil(bytes + 64);
  if (values_.size() == 1 && want > slots_.size()) slots_.assign(want, 0);
  values_.reserve(bytes / 2 + 1);
}

void Trie::insert(uint64_t slot) {
  const size_t mask = slots_.size() - 1;
  size_t at = slot_of(slot >> kNodeBits, mask);
  while (slots_[at]) at = (at + 1) & mask;
  slots_[at] = slot;
}

void Trie::grow() {
  std::vector<uint64_t> old(slots_.size() * 2, 0);
  old.swap(slots_);
  for (const uint64_t slot : old)
    if (slot) insert(slot);
}

void Trie::set(std::string_view key, int32_t value) {
  uint32_t node = kRoot;
  for (const char c : key) {
    const auto byte = static_cast<uint8_t>(c);
    uint32_t next = child(node, byte);
    if (next == kNone) {
      if (values_.size() > kNodeMask) throw invalid("trie: more than ", kNodeMask, " nodes");
      next = uint32_t(values_.size());
      values_.push_back(-1);
      if (node == kRoot) {
        root_[byte] = next;
      } else {
        if (values_.size() * 2 > slots_.size()) grow();
        insert((uint64_t(node) << 8 | byte) << kNodeBits | next);
      }
    }
    node = next;
  }
  if (node != kRoot) values_[node] = value;
}

Trie::Match Trie::longest(std::string_view text, uint32_t from) const {
  Match best;
  uint32_t node = from;
  for (size_t i = 0; i < text.size(); ++i) {
    node = child(node, static_cast<uint8_t>(text[i]));
    if (node == kNone) break;
    if (values_[node] >= 0) best = {i + 1, values_[node]};
  }
  return best;
}

uint32_t Trie::walk(std::string_view key) const {
  uint32_t node = kRoot;
  for (const char c : key) {
    node = child(node, static_cast<uint8_t>(c));
    if (node == kNone) break;
  }
  return node;
}

}  // namespace rlx::text
