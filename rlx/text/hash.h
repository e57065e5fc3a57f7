// Hashing for the flat tables of this room.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace rlx::text {

inline uint64_t mix(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return uint64_t(product) ^ uint64_t(product >> 64);
}

inline uint64_t hash_u64(uint64_t x) { return mix(x ^ 0x9E3779B97F4A7C15u, 0xD6E8FEB86659FD93u); }

inline uint64_t hash_pair(int32_t a, int32_t b) {
  return hash_u64(uint64_t(uint32_t(a)) << 32 | uint32_t(b));
}

/// Eight bytes a step; the tail is read as overlapping words so that short words need no loop.
inline uint64_t hash_bytes(std::string_view s) {
  const auto word = [](const char* p) {
    uint64_t w;
    std::memcpy(&w, p, 8);
    return w;
  };
  const auto half = [](const char* p) {
    uint32_t w;
    std::memcpy(&w, p, 4);
    return uint64_t(w);
  };
  const char* p = s.data();
  size_t n = s.size();
  uint64_t h = 0x9E3779B97F4A7C15u ^ n;
  for (; n > 16; n -= 8, p += 8) h = mix(h ^ word(p), 0xA0761D6478BD642Fu);
  uint64_t a = 0, b = 0;
  if (n >= 8) {
    a = word(p), b = word(p + n - 8);
  } else if (n >= 4) {
    a = half(p), b = half(p + n - 4);
  } else if (n > 0) {
    a = uint64_t(uint8_t(p[0])) << 16 | uint64_t(uint8_t(p[n >> 1])) << 8 | uint8_t(p[n - 1]);
  }
  return mix(a ^ 0xE7037ED1A0B428DBu, b ^ h);
}

}  // namespace rlx::text
