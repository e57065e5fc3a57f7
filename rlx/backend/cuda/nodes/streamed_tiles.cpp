#include "rlx/backend/cuda/nodes/streamed_tiles.h"

#include <algorithm>

#include "rlx/backend/cuda/kernels/matrix_fragments.h"
#include "rlx/backend/cuda/kernels/streamed_tiles.h"
#include "rlx/backend/cuda/region/printer.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kMostTiles = 7, kWarps = 4, kLine = 128;
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

/// Columns are runs, or rows are (turned); nothing where another kernel is to be taken.
enum class Order : uint8_t { other, runs, turned };

Order order_of(const FewRows& p) {
  const bool known = p.dtype == DType::f16 || p.dtype == DType::bf16;
  if (!known || p.k % 8 != 0 || p.a_row % 8 != 0 || p.m < StreamedTiles::kLeastRows ||
      p.m > StreamedTiles::kMostRows || p.n * p.k * 2 < kLeastBytes || p.n * p.k * 2 > kMostBytes)
    return Order::other;
  if (p.b_row == 1 && p.b_column >= p.k && p.b_column % 8 == 0) return Order::runs;
  return p.b_column == 1 && p.b_row >= p.n && p.n % 8 == 0 && p.b_row % 8 == 0 ? Order::turned : Order::other;
}

struct Tiling {
  bool turned = false;
  int64_t tiles = 1, blocks = 1, slots = 0, slot_bytes = 0;
};

std::optional<Tiling> tiling_of(const Device& device, const FewRows& p) {
  const Order order = order_of(p);
  if (order == Order::other) return std::nullopt;
  const bool turned = order == Order::turned;
  const int64_t processors = device.multiprocessors();
  Tiling out{.turned = turned, .tiles = tiles_for(p.n, processors, turned)};
  out.slot_bytes = kWarps * (16 * out.tiles + (p.m + 7) / 8 * 8) * kLine;
  out.blocks = out.tiles <= 2 ? 2 : 1;
  const int64_t room = (device.shared_memory() - 8 * 1024) / out.blocks;
  out.slots = std::min<int64_t>(room / out.slot_bytes, 8);
  return out.slots < 2 ? std::nullopt : std::optional(out);
}

constexpr char kPlainHooks[] = R"cuda(
struct Params { T* c; i64 row; };
inline void finish(const Params& p, int row, int column, const f32 (&sums)[1]) { put(p.c[row * p.row + column], sums[0]); }
)cuda";

}  // namespace

// Two places of seven tiles and 32 rows fit into kLeastShared, two blocks with two of two tiles as well.
bool StreamedTiles::suits(const FewRows& p) { return order_of(p) != Order::other; }

std::optional<StreamedTiles> StreamedTiles::make(const Device& device, const FewRows& p) {
  return make(device, p, kPlainHooks, true);
}

std::optional<StreamedTiles> StreamedTiles::make(const Device& device, const FewRows& p,
                                                 const std::string& hooks, bool aligned) {
  const std::optional<Tiling> t = tiling_of(device, p);
  if (!t) return std::nullopt;
  const auto flag = [](bool b) { return b ? "true" : "false"; };
  StreamedTiles out;
  out.p_ = p;
  out.kernel_.block = {kWarps * 32};
  out.kernel_.grid = {(p.n + 16 * t->tiles - 1) / (16 * t->tiles)};
  out.kernel_.shared = size_t(t->slots * t->slot_bytes);
  out.kernel_.function = device.functions().get(
      {"streamed_tiles",
       cat("typedef ", memory_type(p.dtype), " T;\nconstexpr int kRows = ", p.m, ", kColumns = ", p.n,
           ", kDepth = ", p.k, ", kTiles = ", t->tiles, ", kSlots = ", t->slots, ", kBlocks = ", t->blocks,
           ";\nconstexpr bool kTurned = ", flag(t->turned), ", kEarly = ", flag(p.b_is_fixed),
           ", kAligned = ", flag(aligned), ";\n", hooks, kMatrixFragments, kStreamedTiles)});
  return out;
}

void StreamedTiles::run(const Stream& s, const void* a, const void* b, void* c) const {
  struct {
    void* c;
    int64_t row;
  } params{c, p_.c_row};
  run_with(s, &params, a, b);
}

void StreamedTiles::run_with(const Stream& s, void* params, const void* a, const void* b) const {
  int64_t a_row = p_.a_row, b_row = std::max(p_.b_row, p_.b_column);
  void* parameters[] = {params, &a, &b, &a_row, &b_row, nullptr};
  kernel_.function->launch(s.handle, kernel_.grid, kernel_.block, kernel_.shared, parameters);
}

}  // namespace rlx::cuda
