#include "rlx/backend/cuda/nodes/streamed_tiles.h"

#include <algorithm>

#include "rlx/backend/cuda/kernels/streamed_tiles.h"
#include "rlx/backend/cuda/region/printer.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kLeastRows = 5, kMostRows = 32, kMostTiles = 7, kWarps = 4, kLine = 128;
// Larger weights are read as fast by the library.
constexpr int64_t kLeastBytes = 128 << 10, kMostBytes = 4 << 20;

/// Tiles of 16 columns a block: the fewest rounds over the processors; of equal ones the most, which read the rows least often.
int64_t tiles_for(int64_t columns, int64_t processors, bool turned) {
  const int64_t all = (columns + 15) / 16;
  int64_t best = 1, least = -1;
  for (int64_t tiles = 1; tiles <= kMostTiles; ++tiles) {
    if (turned && tiles != 1 && tiles != 2 && tiles != 4) continue;
    const int64_t blocks = (all + tiles - 1) / tiles, cost = (blocks + processors - 1) / processors * tiles;
    if (least < 0 || cost <= least) best = tiles, least = cost;
  }
  return best;
}

}  // namespace

std::optional<StreamedTiles> StreamedTiles::make(const Device& device, const FewRows& p) {
  const bool known = p.dtype == DType::f16 || p.dtype == DType::bf16;
  const bool runs = p.b_row == 1 && p.b_column >= p.k && p.k % 8 == 0 && p.b_column % 8 == 0;
  const bool turned =
      !runs && p.b_column == 1 && p.b_row >= p.n && p.n % 8 == 0 && p.b_row % 8 == 0 && p.k % 8 == 0;
  if (!known || (!runs && !turned) || p.a_row % 8 != 0 || p.m < kLeastRows || p.m > kMostRows ||
      p.n * p.k * 2 < kLeastBytes || p.n * p.k * 2 > kMostBytes)
    return std::nullopt;
  const int64_t most = shared_memory_of(device);
  const int64_t processors = device.gpu() ? device.gpu()->multiprocessors() : 132;
  const int64_t tiles = tiles_for(p.n, processors, turned), texts = (p.m + 7) / 8 * 8;
  const int64_t slot = kWarps * (16 * tiles + texts) * kLine;
  const int64_t blocks = tiles <= 2 ? 2 : 1, room = (most - 8 * 1024) / blocks,
                slots = std::min<int64_t>(room / slot, 8);
  if (slots < 2) return std::nullopt;
  StreamedTiles out;
  out.p_ = p;
  out.kernel_.block = {kWarps * 32};
  out.kernel_.grid = {(p.n + 16 * tiles - 1) / (16 * tiles)};
  out.kernel_.shared = size_t(slots * slot);
  out.kernel_.function = device.functions().get(
      {"streamed_tiles",
       cat("typedef ", memory_type(p.dtype), " T;\nconstexpr int kRows = ", p.m, ", kColumns = ", p.n,
           ", kDepth = ", p.k, ", kTiles = ", tiles, ", kSlots = ", slots, ", kBlocks = ", blocks,
           ";\nconstexpr bool kTurned = ", turned ? "true" : "false",
           ", kEarly = ", p.b_is_fixed ? "true" : "false", ";\n", kStreamedTiles)});
  return out;
}

void StreamedTiles::run(const Stream& s, const void* a, const void* b, void* c) const {
  (*kernel_.function)(s.handle, kernel_.grid, kernel_.block, kernel_.shared, a, b, c, p_.a_row,
                      std::max(p_.b_row, p_.b_column), p_.c_row);
}

}  // namespace rlx::cuda
