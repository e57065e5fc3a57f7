// A byte of each output row as a vector of numbers.
#pragma once

#include <cstddef>

#include "rlx/backend/cpu/simd/vec.h"

namespace rlx::cpu::RLX_ISA {

// GCC 12 widens bytes through a conversion of vectors one by one, hence the intrinsics.
RLX_INLINE I32 unsigned_bytes(const std::byte* p) {
#if defined(RLX_AVX512)
  return (I32)_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#elif defined(RLX_AVX2)
  return (I32)_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
#else
  typedef uint8_t U8 __attribute__((vector_size(kLanes)));
  return __builtin_convertvector(load_bytes<U8>(p), I32);
#endif
}
RLX_INLINE I32 signed_bytes(const std::byte* p) {
#if defined(RLX_AVX512)
  return (I32)_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#elif defined(RLX_AVX2)
  return (I32)_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
#else
  typedef int8_t I8 __attribute__((vector_size(kLanes)));
  return __builtin_convertvector(load_bytes<I8>(p), I32);
#endif
}

}  // namespace rlx::cpu::RLX_ISA
