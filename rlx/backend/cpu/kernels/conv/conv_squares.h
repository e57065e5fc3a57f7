// Squares of 2 x 2 outputs, which the algorithm of Winograd computes together, and how they are cut into blocks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rlx/backend/cpu/kernels/sizes.h"

namespace rlx::cpu {

inline constexpr int64_t kSquareElements = 16;  // of 4 x 4 inputs, transformed
inline constexpr int64_t kRunSquares = 64;      // most neighbours that are transformed at once

/// Squares of all images, counted on from image to image.
struct Squares {
  int64_t down = 0, across = 0, of_image = 0, all = 0;
};
constexpr Squares squares_of(int64_t batch, int64_t height, int64_t width) {
  const int64_t down = ceil_div(height, 2), across = ceil_div(width, 2);
  return {down, across, down * across, batch * down * across};
}

/// Whether squares save time: enough of them, and few at odd ends, where outputs are computed in vain.
constexpr bool squares_pay(const Squares& q, int64_t height, int64_t width) {
  constexpr int64_t kLeast = 16;
  return q.all >= kLeast && 3 * q.of_image <= height * width;
}

/// Small weights stay in L2 beside few squares, and blocks are tasks of their own. Large ones are read once for
/// as many squares as caches hold, and all threads share the parts of a block.
struct SquareCut {
  Squares squares;
  bool shared = false;
  int64_t block = 0;  // squares, a multiple of `multiple`
  int64_t blocks = 0;
};
constexpr SquareCut cut_squares(const Squares& q, int64_t weight_bytes, int64_t square_bytes,
                                int64_t multiple, int threads) {
  constexpr int64_t kSmallWeightBytes = 384 << 10;    // stay in L2
  constexpr int64_t kOwnBytes = 320 << 10;            // of the squares of one thread
  constexpr int64_t kSharedBytes = int64_t(8) << 20;  // of those of all threads
  constexpr int64_t kTasksOfThread = 4;
  SquareCut c{.squares = q};
  const bool large = weight_bytes > kSmallWeightBytes;
  c.shared = threads > 1 && large;
  // More squares read large weights less often; beyond this many nothing is gained at 128 to 512 channels.
  constexpr int64_t kMostShared = 256;
  int64_t most = large ? std::min(kSharedBytes / square_bytes, kMostShared) : kOwnBytes / square_bytes;
  if (!c.shared && threads > 1) most = std::min(most, ceil_div(q.all, kTasksOfThread * threads));
  c.blocks = ceil_div(q.all, std::max<int64_t>(most, multiple));
  c.block = ceil_div(ceil_div(q.all, c.blocks), multiple) * multiple;
  c.blocks = ceil_div(q.all, c.block);
  return c;
}

/// body(image, row of squares, first of the row, number, place in the block) for runs of neighbours in
/// squares [first, first + count).
template <class Body>
void each_square_run(const Squares& q, int64_t first, int64_t count, Body body) {
  for (int64_t i = 0; i < count;) {
    const int64_t at = first + i, row = at % q.of_image / q.across, column = at % q.across;
    const int64_t n = std::min({q.across - column, count - i, kRunSquares});
    body(at / q.of_image, row, column, n, i);
    i += n;
  }
}

}  // namespace rlx::cpu
