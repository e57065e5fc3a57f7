#include "rlx/backend/cuda/nodes/copied_tiles.h"

#include <algorithm>
#include <numeric>

#include "rlx/backend/cuda/compile/architecture.h"
#include "rlx/backend/cuda/driver/fastest.h"
#include "rlx/backend/cuda/kernels/cluster_blocks.h"
#include "rlx/backend/cuda/kernels/copied_runs.h"
#include "rlx/backend/cuda/kernels/copied_tiles.h"
#include "rlx/backend/cuda/kernels/last_block.h"
#include "rlx/backend/cuda/kernels/matrix_fragments.h"
#include "rlx/backend/cuda/kernels/matrix_groups.h"
#include "rlx/backend/cuda/nodes/untried.h"
#include "rlx/backend/cuda/region/printer.h"
#include "rlx/backend/cuda/rounding.h"
#include "rlx/base/options.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kLeastRows = 5, kMostRows = 64, kSlice = 64, kLine = 128, kSwizzle = 1024;
constexpr int64_t kLeastBytes = 4 << 20, kLeastBytesOfSides = 1 << 20, kLeastBytesOfMoves = 32 << 20,
                  kLeastBytesOnRequest = 128 << 10;  // of all weights
constexpr int64_t kAheadBytes = 96 << 10;            // for each block, into the second cache
constexpr int64_t kMostWarps = 8, kMostPlaces = 20, kLeastPlaces = 3, kMostBox = 256;
constexpr size_t kMostWays = 12;

int64_t texts_of(const FewRows& p) { return round_up(p.m, 8); }
bool is_turned(const FewRows& p) { return p.b_column == 1 && p.b_row != 1; }
const char* flag(bool b) { return b ? "true" : "false"; }

int64_t place_bytes(const FewRows& p, const CopiedTiling& t) { return (t.tile + texts_of(p)) * kLine; }
int64_t sums_bytes(const FewRows& p, const CopiedTiling& t) {
  return texts_of(p) * ((t.tile + 4) * int64_t(sizeof(float)) + (t.rounded ? (t.tile + 8) * 2 : 0));
}
size_t shared_bytes(const FewRows& p, const CopiedTiling& t) {
  return size_t(kSwizzle + t.places * place_bytes(p, t) + sums_bytes(p, t));
}

// Blocks of a cluster are on processors of one part of the chip, of which each has some 16.
int64_t clusters_of(int64_t processors, int64_t cluster) {
  return cluster <= 2 ? processors / cluster : std::max<int64_t>(processors / 16 * (16 / cluster), 1);
}

/// What a processor reads, in bytes, with rows of a counted by a half (they come from the second cache), what joining blocks takes, and more where little is on its way.
int64_t cost_of(const FewRows& p, int64_t sides, const CopiedTiling& t) {
  constexpr int64_t kJoin = 6 << 10, kFinish = 2 << 10, kInFlight = 64 << 10;
  const int64_t rounds = ceil_div(ceil_div(p.n, t.tile / sides), t.clusters),
                slices = ceil_div(ceil_div(p.k, kSlice), t.cluster);
  const int64_t weights = rounds * t.tile * slices * kLine, rows = rounds * texts_of(p) * slices * kLine;
  const int64_t missing = std::max<int64_t>(kInFlight - t.places * t.tile * kLine, 0);
  return weights + weights / 4 * missing / kInFlight + rows / 2 + rounds * (t.cluster > 1 ? kJoin : kFinish);
}

/// The tile of the least cost for so many blocks of a cluster, or nothing where shared memory has no room.
std::optional<CopiedTiling> tiling_of(const Device& device, const FewRows& p, int64_t sides, int64_t together,
                                      CopiedTiling t) {
  const int64_t unit = std::lcm(is_turned(p) ? 64 * sides : 16, std::max<int64_t>(together, 1));
  t.rounded = together > 0;
  const int64_t processors = device.multiprocessors();
  constexpr int64_t kReserved = 3 << 10;  // of a block: barriers, and what the driver keeps
  const int64_t room = (device.shared_memory() + (t.blocks - 1) * 1024) / t.blocks - kReserved;
  if (ceil_div(p.k, kSlice) < t.cluster) return std::nullopt;
  std::optional<CopiedTiling> best;
  for (t.tile = unit < 32 ? 32 : unit; t.tile <= 32 * kMostWarps; t.tile += unit) {
    if (t.tile % 32 != 0 && t.tile > 16 * kMostWarps) continue;
    if (t.tile / sides > kMostBox || (!is_turned(p) && t.tile / sides % 8 != 0)) continue;
    const int64_t units = ceil_div(p.n, t.tile / sides);
    t.clusters = std::min(units, clusters_of(processors, t.cluster));
    const int64_t left = room - kSwizzle - sums_bytes(p, t);
    t.places = std::min(left / place_bytes(p, t), kMostPlaces);
    if (t.places < kLeastPlaces) continue;
    if (!best || cost_of(p, sides, t) < cost_of(p, sides, *best)) best = t;
  }
  return best;
}

/// Which forms are measured: 0 clusters alone, 1 both, 2 runs alone where there are any.
int64_t wanted_runs() { return option_int("RLX_CUDA_RUNS").value_or(1); }

/// Equal runs of steps: rows of a come from the second cache once for each unit, sums of a unit that several runs share go through it, so which tile is the best is for the stopwatch.
void add_runs(std::vector<CopiedTiling>& to, const Device& device, const FewRows& p, int64_t sides,
              int64_t together) {
  const int64_t unit = std::lcm(is_turned(p) ? 64 * sides : 16, std::max<int64_t>(together, 1));
  const int64_t processors = device.multiprocessors();
  constexpr int64_t kReserved = 3 << 10;
  const auto add = [&](int64_t tile, int64_t blocks, int64_t each) {
    CopiedTiling t{.tile = tile, .rounded = together > 0, .blocks = blocks};
    const int64_t steps = ceil_div(p.n, tile / sides) * ceil_div(p.k, kSlice);
    t.runs = t.clusters = std::min(processors * each, steps);
    const int64_t room = (device.shared_memory() + (blocks - 1) * 1024) / blocks - kReserved;
    t.places = std::min((room - kSwizzle - sums_bytes(p, t)) / place_bytes(p, t), kMostPlaces);
    if (tile % unit != 0 || tile / sides > kMostBox || t.places < kLeastPlaces) return;
    if (tile < 2 * texts_of(p)) return;  // rows would be more than a third of what is read
    to.push_back(t);
  };
  for (const int64_t tile : {128, 64, 256}) add(tile, 2, 1);
  add(128, 1, 1);
  add(128, 2, 2);  // both blocks of a processor are of this product
}

constexpr char kPlainHooks[] = R"cuda(
struct Params { T* c; i64 row; };
template <int N> void finish(const Params& p, int row, int column, const f32 (&sums)[N]) {
  put(p.c[row * p.row + column], N == 1 ? sums[0] : sums[0] + sums[N - 1]);
}
)cuda";

std::string sizes_text(const FewRows& p, int64_t sides) {
  return cat("typedef ", memory_type(p.dtype), " T;\nconstexpr int kRows = ", p.m, ", kColumns = ", p.n,
             ", kDepth = ", p.k, ", kSides = ", sides, ";\n");
}

}  // namespace

std::string CopiedTiling::text() const {
  if (runs > 0)
    return cat("tiles of ", tile, " in ", runs, runs == 1 ? " run, " : " runs, ", places, " places",
               blocks > 1 ? cat(", ", blocks, " a processor") : "");
  return cat("tiles of ", tile, ", k in ", cluster, cluster == 1 ? " part, " : " parts, ", places, " places",
             blocks > 1 ? cat(", ", blocks, " a processor") : "");
}

bool CopiedTiles::suits(const FewRows& p, int64_t sides, int64_t together) {
  const bool known = p.dtype == DType::f16 || p.dtype == DType::bf16;
  const int64_t bytes = p.n * p.k * 2 * sides;
  if (!known || sides < 1 || sides > int64_t(kMostSides) || p.k % 8 != 0 || p.a_row % 8 != 0 ||
      p.m < kLeastRows || p.m > kMostRows ||
      bytes < (takes_untried("copied_small") ? kLeastBytesOnRequest
               : together > 0                ? kLeastBytesOfMoves
               : sides > 1                   ? kLeastBytesOfSides
                                             : kLeastBytes))
    return false;
  if (p.b_row == 1) return p.b_column >= p.k && p.b_column % 8 == 0;
  return p.b_column == 1 && p.b_row >= p.n && p.b_row % 8 == 0;
}

std::vector<CopiedTiling> CopiedTiles::tilings(const Device& device, const FewRows& p, int64_t sides,
                                               int64_t together) {
  if (device.functions().architecture() != kHopper || !suits(p, sides, together)) return {};
  std::vector<CopiedTiling> out;
  for (const int64_t blocks : {2, 1}) {
    for (const int64_t cluster : {1, 2, 4, 8}) {
      if (cluster > 2 && blocks == 1) continue;  // not all of them find room beside the kernel in front
      if (const auto t = tiling_of(device, p, sides, together, {.cluster = cluster, .blocks = blocks}))
        out.push_back(*t);
    }
  }
  std::stable_sort(out.begin(), out.end(), [&](const CopiedTiling& a, const CopiedTiling& b) {
    return cost_of(p, sides, a) < cost_of(p, sides, b);
  });
  std::vector<CopiedTiling> runs;
  if (wanted_runs() > 0) add_runs(runs, device, p, sides, together);
  if (wanted_runs() > 1 && !runs.empty()) return runs;
  out.insert(out.end(), runs.begin(), runs.end());
  return out;
}

// Operands are made when something is to be measured: a recording goes through copies of the weights, more than the second cache holds, as a model goes through its layers.
int CopiedTiles::fastest_way(const Device& device, const FewRows& p, int64_t sides,
                             const std::vector<CopiedTiling>& ways, const BlasPlan* library) {
  std::string key = cat("copied in turn ", p.dtype, " ", p.m, " ", p.n, " ", p.k, " ", p.a_row, " ", p.c_row,
                        " ", p.b_row, " ", p.b_column, " x", sides, library ? " or the library" : "");
  for (const CopiedTiling& t : ways) key += cat("; ", t.text());
  const int64_t matrix = std::max(p.b_row * p.k, p.b_column * p.n), each = matrix * sides * 2;
  constexpr int64_t kAllWeights = 192 << 20, kMostCopies = 32;
  const int64_t copies =
      each < kLeastBytesOfSides ? 2 : std::clamp<int64_t>(kAllWeights / each, 2, kMostCopies);
  struct Trial {
    backend::Block a, b, c, workspace;
  };
  std::vector<CopiedTiles> made;
  std::optional<Trial> trial;
  const auto ask = [&] {
    for (size_t i = made.size(); i < ways.size(); ++i) made.push_back(plain(device, p, sides, ways[i]));
  };
  const auto prepare = [&] {
    const auto block = [&](int64_t bytes) { return backend::Block(device.gpu()->memory(), size_t(bytes)); };
    ask();
    size_t workspace = library ? library->workspace() : 1;
    for (const CopiedTiles& way : made) workspace = std::max(workspace, way.workspace());
    trial.emplace(Trial{block(std::max(p.a_row, p.k) * p.m * 2), block(each * copies),
                        block(std::max(p.c_row, p.n) * p.m * 2), block(int64_t(workspace))});
  };
  const int first = library ? 1 : 0;
  const auto queue = [&](Stream_* stream, int way) {
    if (!trial) prepare();
    for (int64_t i = 0; i < copies; ++i) {
      std::byte *const b = trial->b.get() + i * each, *const a = trial->a.get(), *const c = trial->c.get();
      if (way < first) {
        library->run(stream, a, b, c, trial->workspace.get());
      } else {
        made[size_t(way - first)].run(stream, a, {b, b + size_t(matrix * (sides - 1)) * 2}, c,
                                      trial->workspace.get());
      }
    }
  };
  return fastest(*device.gpu(), key, int(ways.size()) + first, Trials::recorded, ask, queue) - first;
}

std::optional<CopiedTiles> CopiedTiles::make(const Device& device, const FewRows& p,
                                             const BlasPlan* library) {
  std::vector<CopiedTiling> ways = tilings(device, p, 1);
  if (ways.empty()) return std::nullopt;
  ways.resize(std::min(ways.size(), kMostWays));
  const int way = device.gpu() ? fastest_way(device, p, 1, ways, library) : 0;
  return way < 0 ? std::nullopt : std::optional(plain(device, p, 1, ways[size_t(way)]));
}

std::optional<CopiedTiles> CopiedTiles::make(const Device& device, const FewRows& p, int64_t sides,
                                             const std::string& hooks, int64_t together) {
  std::vector<CopiedTiling> ways = tilings(device, p, sides, together);
  if (ways.empty()) return std::nullopt;
  ways.resize(std::min(ways.size(), kMostWays));
  const int way = device.gpu() ? fastest_way(device, p, sides, ways, nullptr) : 0;
  return CopiedTiles(device, p, sides, hooks, ways[size_t(way)]);
}

const char* CopiedTiles::plain_hooks() { return kPlainHooks; }

CopiedTiles CopiedTiles::plain(const Device& device, const FewRows& p, int64_t sides, const CopiedTiling& t) {
  return {device, p, sides, kPlainHooks, t};
}

CopiedTiles::CopiedTiles(const Device& device, const FewRows& p, int64_t sides, const std::string& hooks,
                         const CopiedTiling& t)
    : device_(&device), p_(p), sides_(sides), tiling_(t) {
  const bool turned = is_turned(p), is_bf16 = p.dtype == DType::bf16;
  const auto map = [&](int64_t rows, int64_t lanes, int64_t stride) {
    return HeadMap{.tensor = {.strides = {.row = stride}, .rows = rows, .lanes = lanes}, .is_bf16 = is_bf16};
  };
  a_map_ = map(p.m, p.k, p.a_row);
  b_map_ = turned ? map(p.k, p.n, p.b_row) : map(p.n, p.k, p.b_column);
  b_box_ = turned ? int(kSlice) : int(t.tile / sides);
  // As in the kernel.
  const int64_t each = t.tile % 32 == 0 ? 2 : 1, groups = t.tile / (16 * each),
                shares = groups <= 2   ? 4
                         : groups <= 4 ? 2
                                       : 1;
  kernel_.block = {groups * shares * 32};
  kernel_.grid = {t.runs > 0 ? t.runs : t.clusters * t.cluster};
  kernel_.shared = shared_bytes(p, t);
  if (t.runs > 0 && device.gpu()) {
    auto words = std::make_shared<backend::Block>(device.gpu()->memory(),
                                                  size_t(ceil_div(p.n, t.tile / sides)) * sizeof(uint32_t));
    device.gpu()->memory().clear(words->get(), words->size());
    words_ = std::move(words);
  }
  kernel_.function = device.functions().get(
      {t.runs > 0 ? "copied_runs" : "copied_tiles",
       cat(sizes_text(p, sides), "constexpr int kTile = ", t.tile, ", kRuns = ", t.runs,
           ", kPlaces = ", t.places, ", kCluster = ", t.cluster, ", kBlocks = ", t.blocks,
           ", kAhead = ", kAheadBytes / (t.tile * kLine), ";\nconstexpr bool kTurned = ", flag(turned),
           ", kEarly = ", flag(p.b_is_fixed), ";\n#define kClusterShape ",
           t.cluster > 1 ? cat("__cluster_dims__(", t.cluster, ", 1, 1)") : "", "\n", hooks, kMatrixFragments,
           kMatrixGroups, kClusterBlocks, kCopiedSlices,
           t.runs > 0 ? cat(kLastBlock, kCopiedRuns) : kCopiedTiles)});
}

size_t CopiedTiles::workspace() const {
  return size_t(2 * tiling_.runs * p_.m * tiling_.tile) * sizeof(float);
}

void CopiedTiles::run(Stream_* stream, const void* a, std::array<const void*, kMostSides> b, void* c,
                      void* workspace) const {
  struct {
    void* c;
    int64_t row;
  } params{c, p_.c_row};
  run_with(stream, &params, a, b, workspace);
}

void CopiedTiles::run_with(Stream_* stream, void* params, const void* a,
                           std::array<const void*, kMostSides> b, void* workspace) const {
  const Driver& d = device_->gpu()->use();
  const auto at = [](const void* x) { return static_cast<const std::byte*>(x); };
  TensorMap a_map = a_map_.encode(d, at(a), int(texts_of(p_))), b_map = b_map_.encode(d, at(b[0]), b_box_),
            other = sides_ > 1 ? b_map_.encode(d, at(b[1]), b_box_) : b_map;
  void* words = words_ ? words_->get() : nullptr;
  void* parameters[] = {params, &a_map, &b_map, &other, &workspace, &words, nullptr};
  kernel_.function->launch(stream, kernel_.grid, kernel_.block, kernel_.shared, parameters);
}

PlainColumns::PlainColumns(const Device& device, const FewRows& p, int64_t sides, const std::string& hooks)
    : p_(p),
      function_(device.functions().get({"plain_columns", cat(sizes_text(p, sides), hooks, kPlainColumns)})) {}

void PlainColumns::run_with(Stream_* stream, void* params, const void* a,
                            std::array<const void*, CopiedTiles::kMostSides> b) const {
  int64_t strides[] = {p_.a_row, p_.b_row, p_.b_column};
  void* parameters[] = {params, &a, &b[0], &b[1], &strides[0], &strides[1], &strides[2], nullptr};
  function_->launch(stream, {ceil_div(p_.m * p_.n, 256)}, {256}, 0, parameters);
}

}  // namespace rlx::cuda
