// Random fills: the streams of rlx/base/philox.h, a pure function of (key, counter, position).
//
// Element e of a stream takes word e mod 4 of block e / 4; types that need two words take words 2e and 2e
// + 1. Bits and uniform numbers are the same at every level; normal numbers differ by the rounding of log and
// cos.
#pragma once

#include <cstdint>

#include "rlx/base/dtype.h"
#include "rlx/base/pool.h"

namespace rlx::cpu {

enum class RandomKind : uint8_t {
  bits,     // u32
  uniform,  // low + (high - low) u, u in [0, 1) of 24 bits (f32), 11 (f16), 8 (bf16), 53 of two words (f64);
            // each operation rounded to the type
  normal,  // low + high sqrt(-2 ln(1 - u)) cos(2 pi v): mean `low`, standard deviation `high`; u, v as f32 or
           // f64 from two words each, the result rounded to the type
};

/// y [streams, count]: `count` elements of the stream (keys[s], counters[s]) for each s.
struct RandomFill {
  RandomKind kind = RandomKind::bits;
  DType dtype = DType::u32;  // u32 for bits; f32, f64, f16 or bf16 otherwise
  int64_t streams = 1, count = 0;
  const uint64_t* keys = nullptr;
  const uint64_t* counters = nullptr;
  double low = 0, high = 1;
  void* y = nullptr;
};
void random_fill(Team, const RandomFill&);

/// y[e] = x[e] / (1 - rate) where word e of the stream is at least rate 2^32, else 0; 0 <= rate < 1. y may
/// be x.
struct Dropout {
  int64_t count = 0;
  uint64_t key = 0, counter = 0;
  double rate = 0.5;
  const float* x = nullptr;
  float* y = nullptr;
};
void dropout(Team, const Dropout&);

struct RandomKernels {
  /// Elements [begin, end) of one stream, begin a multiple of kRandomGrain; y is element 0 of the stream.
  void (*fill)(const RandomFill&, uint64_t key, uint64_t counter, int64_t begin, int64_t end, void* y);
  /// The threshold is rate 2^32, the scale 1 / (1 - rate).
  void (*dropout)(const Dropout&, uint32_t threshold, float scale, int64_t begin, int64_t end);
};
/// A multiple of the elements any level makes at once.
inline constexpr int64_t kRandomGrain = 64;

}  // namespace rlx::cpu
