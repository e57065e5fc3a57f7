#include "rlx/backend/cuda/nodes/product_rows.h"

#include <algorithm>

#include "rlx/backend/cuda/kernels/cluster_blocks.h"
#include "rlx/backend/cuda/kernels/matrix_groups.h"
#include "rlx/backend/cuda/kernels/product_rows.h"
#include "rlx/backend/cuda/kernels/product_turns.h"
#include "rlx/backend/cuda/region/printer.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kSlice = 64, kLineBytes = 128, kMostSums = 192, kMostStages = 8, kLeastStages = 3,
                  kMostCluster = 8, kMostWide = 256;
constexpr int kThreads = 384;
constexpr size_t kDifferent = 5;  // cuts that share k and columns in different ways
// Of a processor of an H200: bytes a cycle from the second cache when all of them ask and when few do, products a cycle, instructions for an element of a row, those of one group of warps in a
// cycle, cycles before the first slice is there, for sums on their way to other blocks, what a place costs that several blocks write.
constexpr double kCacheBytes = 30, kMostBytes = 60, kProducts = 2048, kInstructions = 45, kRate = 2,
                 kStart = 1500, kHandOver = 800, kShare = 1.05;

int64_t parts_of(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Clusters lie within a group of 16 or 18 processors.
int64_t clusters_at_once(int64_t processors, int64_t cluster) {
  if (processors < 132) return std::max<int64_t>(1, processors / cluster);
  return 6 * (16 / cluster) + 2 * (18 / cluster);
}

HeadMap map_of(const TurnsProduct& p, int64_t rows, int64_t columns, int64_t row) {
  return {.tensor = {.strides = {.row = row}, .rows = rows, .lanes = columns},
          .is_bf16 = p.dtype == DType::bf16};
}

double cycles_of(const TurnsProduct& p, const RowsCut& c, int64_t at_once) {
  const auto clusters = std::min(parts_of(p.m, 64 * c.halves), at_once);
  const auto tiles = double(parts_of(parts_of(p.m, 64 * c.halves), clusters));
  const double wide = double(p.n / c.across), height = 64.0 * double(c.halves),
               slices = double(parts_of(parts_of(p.k, kSlice), c.parts)),
               rate = std::min(kMostBytes, kCacheBytes * 132 / double(clusters * c.cluster()));
  const double asked = (height / (c.shared ? double(c.across) : 1) + wide) * kLineBytes;
  const double product = slices *
                         std::max({height * wide * kSlice / kProducts, asked / rate,
                                   (height + wide) * kLineBytes / kMostBytes}) *
                         (c.shared ? kShare : 1);
  const double finish =
      height / double(c.cluster()) * double(p.n) * kInstructions / 32 / kRate / (c.one_tile ? 2 : 1) + 600;
  return kStart + product + kHandOver * (c.parts > 1 ? 1.5 : 1) + finish +
         (tiles - 1) * std::max(product, (product + finish + kHandOver) / 2);
}

}  // namespace

std::string RowsCut::text() const {
  return cat(64 * halves, " rows for each ", cluster(), cluster() == 1 ? " block, " : " blocks, ", across,
             " beside each other", parts > 1 ? cat(", k in ", parts, " parts") : std::string(), ", ", stages,
             " slices ahead", shared ? ", rows shared" : "");
}

int64_t rows_line(const TurnsProduct& p) { return p.n + 32; }  // neighbouring rows begin at other banks

std::string rows_problem(const TurnsProduct& p) {
  if (const std::string why = turns_problem(p); !why.empty()) return why;
  if (p.sides != 1) return "several products";
  if (p.n % 16 != 0 || p.n > 1024) return "columns are no multiple of 16 up to 1024";
  return {};
}

std::optional<RowsCut> rows_cut(const TurnsProduct& p, RowsCut c, int64_t processors, int64_t shared_memory) {
  constexpr int64_t kBarriers = 512, kAlignment = 1024;
  if (p.n % (16 * c.across) != 0 || c.cluster() > kMostCluster || (c.shared && c.across == 1))
    return std::nullopt;
  const int64_t wide = p.n / c.across, slices = parts_of(p.k, kSlice), height = 64 * c.halves,
                own = parts_of(height, c.cluster());
  if (wide > kMostWide || c.halves * wide / 2 > kMostSums || slices < c.parts) return std::nullopt;
  const int64_t right = p.is_turned() ? parts_of(wide, kSlice) * kSlice : wide;
  const int64_t stage = (height + right) * kLineBytes,
                fixed =
                    kAlignment + own * rows_line(p) * 2 + (c.parts > 1 ? c.parts * own * (p.n + 8) * 4 : 0);
  const int64_t room = shared_memory - kBarriers - fixed;
  c.stages = std::min({room > 0 ? room / stage : 0, kMostStages, std::max(slices / c.parts, kLeastStages)});
  if (c.stages < kLeastStages) return std::nullopt;
  c.bytes = size_t(fixed + c.stages * stage);
  const int64_t items = parts_of(p.m, height), at_once = clusters_at_once(processors, c.cluster());
  c.one_tile = items <= at_once;
  c.blocks = std::min(items, at_once) * c.cluster();
  c.cycles = cycles_of(p, c, at_once);
  return c;
}

std::vector<RowsCut> rows_cuts(const TurnsProduct& p, int64_t processors, int64_t shared_memory) {
  std::vector<RowsCut> found;
  for (const int64_t halves : {1, 2})
    for (const int64_t across : {1, 2, 3, 4, 6, 8})
      for (const int64_t parts : {1, 2, 4})
        for (const bool shared : {false, true})
          if (const auto c =
                  rows_cut(p, {.halves = halves, .across = across, .parts = parts, .shared = shared},
                           processors, shared_memory))
            found.push_back(*c);
  std::stable_sort(found.begin(), found.end(),
                   [](const RowsCut& a, const RowsCut& b) { return a.cycles < b.cycles; });
  // The first ones differ in more than height and copies: those are what a model knows least of.
  std::vector<RowsCut> first, others;
  for (const RowsCut& c : found) {
    const bool is_known = std::any_of(first.begin(), first.end(), [&](const RowsCut& f) {
      return f.across == c.across && f.parts == c.parts;
    });
    (is_known || first.size() == kDifferent ? others : first).push_back(c);
  }
  first.insert(first.end(), others.begin(), others.end());
  return first;
}

ProductRows::ProductRows(const Device& device, const TurnsProduct& p, const RowsCut& c, int lanes,
                         const std::string& hooks)
    : p_(p), cut_(c) {
  const auto flag = [](bool b) { return b ? "true" : "false"; };
  function_ = device.functions().get(
      {"product_rows",
       cat("typedef ", memory_type(p.dtype), " T;\nconstexpr int kColumns = ", p.n, ", kDepth = ", p.k,
           ", kAcross = ", c.across, ", kParts = ", c.parts, ", kHalves = ", c.halves,
           ", kStages = ", c.stages, ", kLanes = ", lanes, ", kLine = ", rows_line(p),
           ";\nconstexpr bool kTurned = ", flag(p.is_turned()), ", kShared = ", flag(c.shared),
           ", kOneTile = ", flag(c.one_tile), ", kEarly = ", flag(p.b_is_fixed), ";\n#define kClusterShape ",
           c.cluster() > 1 ? cat("__cluster_dims__(", c.cluster(), ", 1, 1)") : std::string(), "\n", hooks,
           kMatrixGroups, kClusterBlocks, kProductWords, multiply_text(p, p.n / c.across), kProductRows)});
}

void ProductRows::run(const Gpu& gpu, Stream_* stream, void* params, const std::byte* a,
                      const std::byte* b) const {
  const Driver& d = gpu.use();
  const bool turned = p_.is_turned();
  const HeadMap weights = turned ? map_of(p_, p_.k, p_.n, p_.b_row) : map_of(p_, p_.n, p_.k, p_.b_column);
  alignas(64) TensorMap maps[] = {map_of(p_, p_.m, p_.k, p_.a_row).encode(d, a, int(64 * cut_.halves)),
                                  weights.encode(d, b, int(turned ? kSlice : p_.n / cut_.across))};
  int count = int(p_.m);
  void* parameters[] = {params, &count, &maps[0], &maps[1], nullptr};
  function_->launch(stream, {cut_.blocks}, {kThreads}, cut_.bytes, parameters);
}

}  // namespace rlx::cuda
