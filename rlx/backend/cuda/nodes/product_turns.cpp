#include "rlx/backend/cuda/nodes/product_turns.h"

#include <algorithm>

#include "rlx/backend/cuda/kernels/cluster_blocks.h"
#include "rlx/backend/cuda/kernels/matrix_groups.h"
#include "rlx/backend/cuda/kernels/product_scales.h"
#include "rlx/backend/cuda/kernels/product_turns.h"
#include "rlx/backend/cuda/region/printer.h"
#include "rlx/backend/cuda/rounding.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kPiece = 64,
                  kLineBytes = 128;  // columns of weights that lie so, and bytes of a slice along k
constexpr int64_t kMostSums = 192;   // registers of a thread
constexpr int64_t kMostStages = 8, kLeastStages = 3, kMostItem = 64;
constexpr int64_t kManyElements = 1 << 23;       // from which on rows that stay leave the cache too little
constexpr int kThreads = 384, kMultiplying = 8;  // warps of the groups that multiply
// What the model knows of a processor of an H200: bytes a cycle from the second cache and of shared memory, products a cycle, instructions for an element, cycles before the first slice
// is there and between two tiles, instructions of a warp in a cycle while it finishes elements, cycles that it waits for their operands, what a place costs that several blocks write.
constexpr double kCacheBytes = 30, kSharedBytes = 128, kProducts = 2048, kInstructions = 26, kStart = 1500,
                 kTurn = 150, kElementRate = 0.75, kElementWait = 300, kShare = 1.05;

// Work of the compiler: the text, and each column of sums that it unrolls.
constexpr double kCompilerStart = 70, kCompilerSum = 0.7;

int64_t slices_of(const TurnsProduct& p) { return ceil_div(p.k, p.lanes()); }
int64_t height_of(const TurnsProduct& p, const TurnsTiles& t) { return 64 * t.halves * p.groups(); }

// For each cluster of blocks.
int64_t items_of(const TurnsProduct& p, const TurnsTiles& t) {
  return ceil_div(p.m, height_of(p, t) * t.cluster) * ceil_div(ceil_div(p.n, t.wide), t.item);
}

struct Bytes {
  int64_t left = 0, right = 0, sums = 0;  // of a slice of a, of one of b, of all rounded sums
};
Bytes bytes_of(const TurnsProduct& p, const TurnsTiles& t) {
  const int64_t columns = p.is_turned() ? round_up(t.wide, kPiece) : t.wide;
  return {.left = height_of(p, t) * kLineBytes,
          .right = p.sides * columns * kLineBytes,
          .sums = kMultiplying * 16 * round_up(p.sides * t.wide * 2, 128)};
}

// Places of the ring in what is left of the shared memory; false where it is too little.
bool find_stages(const TurnsProduct& p, int64_t shared_memory, TurnsTiles& t) {
  constexpr int64_t kBarriers = 256, kAlignment = 1024;
  const Bytes b = bytes_of(p, t);
  const int64_t slices = slices_of(p), fixed = b.sums + kAlignment + (t.resident ? slices * b.left : 0);
  const int64_t stage = b.right + (t.resident ? 0 : b.left), room = shared_memory - kBarriers - fixed;
  t.stages = std::min(room > 0 ? room / stage : 0, kMostStages);
  if (t.resident) t.stages = std::min(t.stages, slices);
  t.shared = size_t(fixed + t.stages * stage);
  return t.stages >= (t.resident ? std::min(kLeastStages, slices) : kLeastStages);
}

// While one group is in the elements of its tile, the other multiplies; the first product and the last elements have no company.
double cycles_of(const TurnsProduct& p, const TurnsTiles& t, int64_t processors) {
  const Bytes b = bytes_of(p, t);
  const auto tiles = double(ceil_div(items_of(p, t), processors / t.cluster) * t.item);
  const auto across = double(p.sides * t.wide), halves = double(t.halves * p.groups());
  // The units multiply twice as many numbers of 8 bits.
  const double slices = double(slices_of(p)), products = 64 * halves * across * 64 / kProducts,
               left = double(b.left) / double(t.resident ? t.item : 1),
               asked = left + double(b.right) / double(t.cluster);
  // Both operands of each product of 64 rows, what is copied, and the sums to and from shared memory.
  const double shared =
      halves * (across + 64) * kLineBytes + left + double(b.right) + 64 * halves * across * 4 / slices;
  const double product = slices * std::max({products, asked / kCacheBytes, shared / kSharedBytes}) *
                             (t.cluster > 1 ? kShare : 1) +
                         kTurn;
  const double elements =
      double(t.halves) * (double(t.wide) / 2 * (kInstructions + 4 * p.sides) / kElementRate + kElementWait);
  if (p.groups() > 1) return kStart + tiles * (product + elements);
  return kStart + product + elements + (tiles - 1) * std::max({product, elements, (product + elements) / 2});
}

std::string_view unit_type(DType t) {
  return t == DType::f8e4m3 ? "e4m3" : t == DType::f8e5m2 ? "e5m2" : t == DType::f16 ? "f16" : "bf16";
}

std::string multiply_text(const TurnsProduct& p, int64_t across) {
  const std::string_view a = unit_type(p.fp8 ? p.fp8->a : p.dtype), b = unit_type(p.fp8 ? p.fp8->b : p.dtype);
  const std::string turned = p.fp8 ? "" : p.is_turned() ? ", 0, 1" : ", 0, 0";
  const int64_t sums = across / 2;
  std::string registers, operands;
  for (int64_t i = 0; i < sums; ++i) registers += cat(i > 0 ? "," : "", "%", i);
  for (int64_t i = 0; i < across / 8; ++i) operands += cat(i > 0 ? ", " : "", "kFour(d[", i, "])");
  return cat("inline void multiply_tile(f32 (&d)[", across / 8, "][4], u64 a, u64 b, int more) {\n",
             "  asm volatile(\"{\\n.reg .pred more;\\nsetp.ne.b32 more, %", sums + 2,
             ", 0;\\nwgmma.mma_async.sync.aligned.m64n", across, p.fp8 ? "k32" : "k16", ".f32.", a, ".", b,
             " {", registers, "}, %", sums, ", %", sums + 1, ", more, 1, 1", turned,
             ";\\n}\"\n      : ", operands, " : \"l\"(a), \"l\"(b), \"r\"(more));\n}\n");
}

// What kProductScales needs, and it.
std::string scales_text(const TurnsProduct& p) {
  if (!p.fp8) return {};
  const TurnsFp8& f = *p.fp8;
  const auto flag = [](bool b) { return b ? "true" : "false"; };
  return cat("#define kScaledSums\nconstexpr bool kScaledRows = ", flag(f.scaled_rows),
             ", kScaledColumns = ", flag(f.scaled_columns), ";\nconstexpr i64 kGroup = ", f.group,
             ", kRowStep = ", f.row_step, ", kRowGroup = ", f.row_group, ", kColumnStep = ", f.column_step,
             ", kColumnGroup = ", f.column_group, ";\nconstexpr int kColumnBlock = ", f.column_block, ";\n",
             kProductScales);
}

HeadMap map_of(const TurnsProduct& p, int64_t rows, int64_t columns, int64_t row) {
  return {.tensor = {.strides = {.row = row}, .rows = rows, .lanes = columns},
          .is_bf16 = p.dtype == DType::bf16,
          .is_bytes = p.fp8.has_value()};
}

}  // namespace

std::string TurnsTiles::text() const {
  return cat("tiles of ", 64 * halves * groups, " x ", wide, ", ", item, " for the same rows, ", stages,
             " slices ahead", resident ? ", rows stay" : "", cluster > 1 ? ", clusters" : "");
}

std::string turns_problem(const TurnsProduct& p) {
  if (p.dtype != DType::f16 && p.dtype != DType::bf16) return "no product of 16 bits";
  const int64_t unit = p.fp8 ? 16 : 8;
  if (p.a_row < p.k || p.a_row % unit != 0) return "rows of the input do not begin at multiples of 16 bytes";
  const bool runs = p.b_row == 1 && p.b_column >= p.k && p.b_column % unit == 0;
  const bool turned = p.b_column == 1 && p.b_row >= p.n && p.b_row % unit == 0;
  if (p.fp8) {
    if (!runs) return "columns of fp8 weights are no runs that begin at multiples of 16 bytes";
    if (p.fp8->group != 0 && p.fp8->group != p.lanes()) return "scales of groups of other sizes";
    if (p.fp8->group != 0 && p.fp8->column_step != 0 && p.fp8->column_block % kPiece != 0)
      return "scales of columns that change along k";
  }
  if (!runs && !turned) return "neither rows nor columns of the weights begin at multiples of 16 bytes";
  if (p.vector < 2 || p.n % p.vector != 0) return "columns are no whole number of vectors";
  if (p.m * p.n >= int64_t(1) << 40 || p.m >= 1 << 30 || p.n >= 1 << 30 || p.k >= 1 << 30) return "too large";
  return {};
}

std::optional<TurnsTiles> turns_cut(const TurnsProduct& p, TurnsTiles t, int64_t processors,
                                    int64_t shared_memory) {
  if (!find_stages(p, shared_memory, t)) return std::nullopt;
  t.groups = p.groups();
  t.rows_first = p.n * p.sides > p.m;  // whichever operand is larger is read from memory once
  t.cycles = cycles_of(p, t, processors);
  t.blocks = t.cluster * std::min(items_of(p, t), processors / t.cluster);
  return t;
}

std::vector<TurnsTiles> turns_tiles(const TurnsProduct& p, int64_t processors, int64_t shared_memory) {
  std::vector<TurnsTiles> found;
  for (const int64_t halves : {2, 1}) {
    if (p.fp8 && halves > 1) continue;
    for (const int64_t wide : {64, 96, 128, 192, 256}) {
      const int64_t across = p.sides * wide;
      // Sums of a slice beside all sums.
      if (across > 256 || halves * across / 2 * p.groups() > kMostSums) continue;
      if (p.fp8 && wide % kPiece != 0) continue;
      if (p.is_turned() && p.sides > 1 && wide % 64 != 0) continue;
      if (wide > 64 && p.n <= wide / 2) continue;
      bool stays = false;
      for (const int64_t cluster : {1, 2}) {
        if (cluster > 1 && (p.m <= 64 * halves * p.groups() || (stays && p.m * p.n < kManyElements))) break;
        TurnsTiles best;
        for (const bool resident : {true, false}) {
          for (int64_t item = 1; item <= ceil_div(p.n, wide) && item <= kMostItem; ++item) {
            const auto t = turns_cut(
                p, {.halves = halves, .wide = wide, .item = item, .cluster = cluster, .resident = resident},
                processors, shared_memory);
            if (!t) break;
            if (best.stages == 0 || t->cycles < best.cycles) best = *t;
          }
        }
        stays = best.resident;
        if (best.stages > 0) found.push_back(best);
      }
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const TurnsTiles& a, const TurnsTiles& b) { return a.cycles < b.cycles; });
  return found;
}

ProductTurns::ProductTurns(const Device& device, const TurnsProduct& p, const TurnsTiles& t,
                           const std::string& hooks)
    : p_(p), tiles_(t) {
  const auto flag = [](bool b) { return b ? "true" : "false"; };
  function_ = device.functions().get(
      {"product_turns",
       cat("typedef ", memory_type(p.dtype), " T;\nconstexpr int kColumns = ", p.n, ", kDepth = ", p.k,
           ", kCluster = ", t.cluster, ", kSides = ", p.sides, ", kHalves = ", t.halves, ", kWide = ", t.wide,
           ", kItem = ", t.item, ", kStages = ", t.stages, ", kVector = ", p.vector, ", kLanes = ", p.lanes(),
           ";\nconstexpr bool kResident = ", flag(t.resident), ", kTurned = ", flag(p.is_turned()),
           ", kEarly = ", flag(p.b_is_fixed), ", kRowsFirst = ", flag(t.rows_first),
           ";\n#define kClusterShape ",
           t.cluster > 1 ? cat("__cluster_dims__(", t.cluster, ", 1, 1)") : std::string(), "\n", hooks,
           kMatrixGroups, kClusterBlocks, multiply_text(p, p.sides * t.wide), scales_text(p), kProductTurns),
       kCompilerStart + kCompilerSum * double(t.halves * p.sides * t.wide)});
}

void ProductTurns::run(const Gpu& gpu, Stream_* stream, void* params, const std::byte* a,
                       std::span<const std::byte* const> b) const {
  const Driver& d = gpu.use();
  const bool turned = p_.is_turned();
  const HeadMap weights = turned ? map_of(p_, p_.k, p_.n, p_.b_row) : map_of(p_, p_.n, p_.k, p_.b_column);
  // A block of a cluster asks for its part of the columns of one side.
  const int rows = int(turned ? kPiece : tiles_.wide / (p_.sides == 1 ? tiles_.cluster : 1));
  alignas(64) TensorMap maps[] = {map_of(p_, p_.m, p_.k, p_.a_row).encode(d, a, int(height_of(p_, tiles_))),
                                  weights.encode(d, b.front(), rows), weights.encode(d, b.back(), rows)};
  int count = int(p_.m);
  void* parameters[] = {params, &count, &maps[0], &maps[1], &maps[2], nullptr};
  function_->launch(stream, {tiles_.blocks}, {kThreads}, tiles_.shared, parameters);
}

}  // namespace rlx::cuda
