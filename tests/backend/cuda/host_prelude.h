// What the prelude and the compiler give to kernels, for texts that are also C++ and run on the host in tests.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "rlx/base/float16.h"

namespace rlx::cuda {
namespace {

using u8 = uint8_t;
using i8 = int8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using i32 = int32_t;
using u64 = uint64_t;
using i64 = int64_t;
using f32 = float;
struct f16 {
  u16 bits;
  static f32 value(u16 b) { return f16_to_f32(b); }
  static u16 of(f32 x) { return f32_to_f16(x); }
};
struct bf16 {
  u16 bits;
  static f32 value(u16 b) { return bf16_to_f32(b); }
  static u16 of(f32 x) { return f32_to_bf16(x); }
};
inline f32 as_f32(f16 x) { return f16_to_f32(x.bits); }
inline f32 from_bits(u32 x) { return std::bit_cast<f32>(x); }
template <class T, int N>
struct Pack {
  T v[N];
};
template <int N, class T>
Pack<T, N> load(const T* p) {
  Pack<T, N> out;
  std::memcpy(&out, p, sizeof out);
  return out;
}
inline u32 __byte_perm(u32 x, u32 y, u32 pick) {
  u32 out = 0;
  for (int i = 0; i < 4; ++i) out |= u32((u64(y) << 32 | x) >> (8 * (pick >> (4 * i) & 7)) & 255) << (8 * i);
  return out;
}

}  // namespace
}  // namespace rlx::cuda
