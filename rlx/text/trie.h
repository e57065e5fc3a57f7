// A set of byte strings with a value each, walked byte by byte.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace rlx::text {

class Trie {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFF;
  static constexpr uint32_t kRoot = 0;

  Trie() { root_.fill(kNone); }

  /// `bytes` of all keys together is the most nodes there can be.
  void reserve(size_t bytes);
  /// Sets the value of a key; the empty key has no value. Throws when the trie has become too large.
  void set(std::string_view key, int32_t value);

  uint32_t child(uint32_t node, uint8_t byte) const {
    if (node == kRoot) return root_[byte];
    const uint64_t key = uint64_t(node) << 8 | byte;
    const size_t mask = slots_.size() - 1;
    for (size_t at = slot_of(key, mask); slots_[at]; at = (at + 1) & mask) {
      if (slots_[at] >> kNodeBits == key) return uint32_t(slots_[at] & kNodeMask);
    }
    return kNone;
  }
  int32_t value(uint32_t node) const { return values_[node]; }  // -1 when no key ends here

  struct Match {
    size_t length = 0;  // 0 when no key is a prefix
    int32_t value = -1;
  };
  /// The longest key that is a prefix of `text`, starting from a node other than the root where given.
  Match longest(std::string_view text, uint32_t from = kRoot) const;
  /// The node after `key`, or kNone.
  uint32_t walk(std::string_view key) const;

 private:
  // A slot is parent (28 bits), byte (8 bits), child (28 bits); 0 is free because no child is the root.
  static constexpr int kNodeBits = 28;
  static constexpr uint64_t kNodeMask = (uint64_t(1) << kNodeBits) - 1;
  static size_t slot_of(uint64_t key, size_t mask) { return (key * 0x9E3779B97F4A7C15u >> 20) & mask; }
  void insert(uint64_t slot);
  void grow();

  std::array<uint32_t, 256> root_;
  std::vector<uint64_t> slots_ = std::vector<uint64_t>(64);
  std::vector<int32_t> values_ = std::vector<int32_t>(1, -1);
};

}  // namespace rlx::text
