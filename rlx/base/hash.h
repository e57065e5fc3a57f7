// A 128-bit content hash, the same on every machine and toolchain. Not cryptographic: it keys caches and
// speeds up equality, it does not defend against forged collisions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace rlx {

struct Hash128 {
  uint64_t lo = 0, hi = 0;
  friend bool operator==(Hash128, Hash128) = default;
};

class Hasher {
 public:
  void add(uint64_t value) {
    a_ = mix(a_ ^ value) + 0x9E3779B97F4A7C15ull;
    b_ = mix(b_ + value * 0xD6E8FEB86659FD93ull) ^ (a_ >> 32);
  }
  void add_bytes(const void* data, size_t size) {
    add(size);
    const auto* p = static_cast<const unsigned char*>(data);
    for (; size >= 8; p += 8, size -= 8) {
      uint64_t word;
      std::memcpy(&word, p, 8);
      add(word);
    }
    uint64_t tail = 0;
    if (size == 0) return;  // an empty list has no address to copy from
    std::memcpy(&tail, p, size);
    add(tail);
  }
  void add(std::string_view s) { add_bytes(s.data(), s.size()); }
  Hash128 finish() const { return {mix(a_ ^ (b_ << 1)), mix(b_ ^ (a_ >> 1))}; }

 private:
  // The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  uint64_t a_ = 0x243F6A8885A308D3ull, b_ = 0x13198A2E03707344ull;
};

}  // namespace rlx
