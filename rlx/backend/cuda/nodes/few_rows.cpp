#include "rlx/backend/cuda/nodes/few_rows.h"

#include <algorithm>

#include "rlx/backend/cuda/kernels/chain.h"
#include "rlx/backend/cuda/kernels/few_rows.h"
#include "rlx/backend/cuda/kernels/streamed_rows.h"
#include "rlx/backend/cuda/region/printer.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kMostRows = 4, kMostElements = int64_t(1) << 30;
constexpr int64_t kStreamedBytes = 1 << 20;  // weights from which on streams win
constexpr int kStreamThreads = 512;
constexpr int64_t kRingBytes = 64 << 10;  // of a block: two of them find room on a processor
constexpr int64_t kLargeShared = 160 << 10;

std::string sizes_text(const FewRows& p) {
  return cat("typedef ", memory_type(p.dtype), " T;\nconstexpr int kRows = ", p.m, ", kDepth = ", p.k,
             ", kColumns = ", p.n, ";\n", kFewRowsShared);
}

// Threads for a column: the fewest idle ones in at most four rounds, else a warp.
int64_t lanes_for(int64_t pieces) {
  int64_t best = 32, least = (pieces + 31) / 32 * 32;
  for (const int64_t lanes : {16, 8, 4}) {
    const int64_t slots = (pieces + lanes - 1) / lanes * lanes;
    if (slots < least && slots / lanes <= 4) least = slots, best = lanes;
  }
  return best;
}

// One matrix, rows of a where they lie.
std::string plain_hooks(const FewRows& p) {
  return cat(
      "struct Params { const T *a, *b; T* c; };\n",
      "inline const T* weights_of(const Params& p, int, int column) { return p.b + i64(column) * ",
      p.b_column, "; }\ninline const T* row_of(const Params& p, int row) { return p.a + row * i64(", p.a_row,
      "); }\n", "inline void make_rows(const Params&, T*) {}\n",
      "inline void finish(const Params& p, int row, int column, const f32 (&sums)[1]) { put(p.c[row * i64(",
      p.c_row, ") + column], sums[0]); }\n");
}

}  // namespace

std::string hooks_text(const ColumnHooks& h) { return cat(h.text, h.asks_ahead ? "" : kNothingAhead); }

int64_t most_few_rows() { return kMostRows; }

int packed_block_threads(const Device& device, int64_t row_bytes, int64_t columns, int sides) {
  const bool streams = device.shared_memory() >= kLargeShared && row_bytes % 16 == 0 && row_bytes >= 512 &&
                       row_bytes * columns * sides >= kStreamedBytes && row_bytes < kMostElements;
  return streams ? kStreamThreads : 256;
}

ColumnProducts streamed_rows(const Device& device, const FewRows& p, const ColumnHooks& hooks,
                             std::string text, int64_t chunk_bytes, size_t extra) {
  constexpr int64_t kWarps = kStreamThreads / 32;
  // Sums of more rows need the registers of two blocks.
  const int64_t blocks = p.m <= 2 ? 2 : 1, most = device.multiprocessors() * blocks;
  // Two columns share what they read of x, where there are some rounds of them.
  const int64_t each = hooks.sides == 1 && p.n >= 4 * most * kWarps ? 2 : 1, groups = (p.n + each - 1) / each;
  const int64_t place = hooks.sides * each * (chunk_bytes + 16),
                slots = std::clamp<int64_t>(kRingBytes / (kWarps * place), 2, 4);
  ColumnProducts out;
  out.block = {kStreamThreads};
  // As many blocks on each processor: between one and two for each, some processors would have twice the columns of others.
  const int64_t wanted =
      (groups + kWarps - 1) / kWarps <= device.multiprocessors() ? device.multiprocessors() : most;
  out.grid = {std::min(groups, wanted)};
  out.shared = size_t(kWarps * slots * place) + extra;
  out.function = device.functions().get(
      {"streamed_rows",
       cat("constexpr int kSlots = ", slots, ", kBlocks = ", blocks, ", kEach = ", each,
           ", kSides = ", hooks.sides, ", kBlockThreads = ", kStreamThreads,
           ";\nconstexpr bool kEarly = ", p.b_is_fixed ? "true" : "false", ";\n", text, kStreamedRows)});
  return out;
}

std::vector<uint64_t> words_of(std::span<const std::byte* const> params) {
  std::vector<uint64_t> out;
  for (const std::byte* p : params) out.push_back(reinterpret_cast<uintptr_t>(p));
  return out;
}

PhaseRef product_phase(const Device& device, const FewRows& p, const ColumnHooks& hooks,
                       const std::string& text, int64_t row_bytes, int64_t chunk_bytes, size_t extra) {
  if (!makes_phases(device.functions()) || !p.b_is_fixed || !hooks.wide) return nullptr;
  const auto whole = [](size_t bytes) { return (bytes + 15) / 16 * 16; };
  const size_t kept = hooks.kept ? whole(size_t(p.m * p.k) * dtype_size(p.dtype)) : 0;
  const int64_t pieces = (row_bytes + chunk_bytes - 1) / chunk_bytes;
  const int64_t processors = device.multiprocessors(), columns = (p.n + processors - 1) / processors;
  const size_t sums = size_t(columns * pieces * hooks.sides * p.m) * sizeof(float);
  Phase out;
  out.room = whole(extra) + kept + whole(sums);
  if (out.room > size_t(kChainRoom)) return nullptr;
  out.piece_bytes = chunk_bytes;
  out.text = cat("constexpr int kSides = ", hooks.sides, ", kBlockThreads = ", kChainThreads,
                 ", kWeightsRoom = ", whole(extra), ", kKeptRoom = ", kept, ";\n", text, kChainProduct);
  return std::make_shared<const Phase>(std::move(out));
}

PhaseRef column_phase(const Device& device, const FewRows& p, const ColumnHooks& hooks) {
  if (p.k * int64_t(dtype_size(p.dtype)) % 16 != 0) return nullptr;
  const int64_t row = p.k * int64_t(dtype_size(p.dtype)), parts = (row + kChainPiece - 1) / kChainPiece;
  const int64_t chunk = ((row + parts - 1) / parts + 15) / 16 * 16;
  const size_t rows = hooks.kept ? 0 : size_t(p.m * row);
  const PhaseRef made = product_phase(device, p, hooks,
                                      cat(sizes_text(p), "constexpr int kChunkBytes = ", chunk,
                                          ";\nconstexpr bool kKept = ", hooks.kept ? "true" : "false", ";\n",
                                          hooks_text(hooks), kPlainStream),
                                      row, chunk, rows);
  if (!made) return nullptr;
  Phase out = *made;
  out.plain_bytes = p.n * row * hooks.sides;
  return std::make_shared<const Phase>(std::move(out));
}

ColumnProducts column_products(const Device& device, const FewRows& p, const ColumnHooks& hooks) {
  const int64_t processors = device.multiprocessors();
  const int64_t piece = 16 / int64_t(dtype_size(p.dtype));
  const int64_t lanes = lanes_for(p.k / piece), teams = 256 / lanes;
  const int64_t each = hooks.sides == 1 && p.n / (teams * 2) >= 2 * processors ? 2 : 1;
  const int64_t groups = (p.n + teams * each - 1) / (teams * each);
  // Rows that a block makes itself serve all of its columns.
  constexpr int64_t kBlocksEach = 4;
  const int64_t rounds =
      hooks.kept ? (groups + processors * kBlocksEach - 1) / (processors * kBlocksEach) : 1;
  // Where blocks are few, each has more on its way.
  const bool few = groups <= 2 * processors && p.k / piece / lanes >= 16 && p.m <= 2;
  const auto flag = [](bool b) { return b ? "true" : "false"; };
  ColumnProducts out;
  out.grid = {(groups + rounds - 1) / rounds};
  out.function = device.functions().get(
      {"column_products", cat(sizes_text(p), "constexpr int kLanes = ", lanes, ", kEach = ", each,
                              ", kSides = ", hooks.sides, ", kBlocks = ", few ? 2 : 4,
                              ", kLoads = ", few ? 16 : 8, ";\nconstexpr bool kWide = ", flag(hooks.wide),
                              ", kKept = ", flag(hooks.kept), ";\n", hooks_text(hooks), kColumnProducts)});
  return out;
}

std::optional<FewRowsKernel> FewRowsKernel::make(const Device& device, const FewRows& p) {
  const bool known = p.dtype == DType::f32 || p.dtype == DType::f16 || p.dtype == DType::bf16;
  if (!known || p.m < 1 || p.m > kMostRows || p.k < 1 || p.n < 1 || p.k > kMostElements ||
      p.n > kMostElements)
    return std::nullopt;
  const int64_t piece = 16 / int64_t(dtype_size(p.dtype));
  if (p.k % piece != 0 || p.a_row % piece != 0) return std::nullopt;
  FewRowsKernel out;
  out.p_ = p;
  if (p.b_row == 1 && p.b_column >= p.k && p.b_column % piece == 0) {
    out.kernel_ = column_products(device, p, {.text = plain_hooks(p)});
    out.phase_ = column_phase(device, p, {.text = plain_hooks(p)});
    return out;
  }
  if (p.b_column == 1 && p.b_row >= p.n && p.b_row % piece == 0 && p.n % piece == 0) {
    // Short runs where there would be few blocks.
    const int64_t across = p.n / (8 * piece) >= device.multiprocessors() / 2 ? 8 : 4, span = across * piece;
    out.kernel_.block = {512};
    out.kernel_.grid = {(p.n + span - 1) / span};
    out.kernel_.function = device.functions().get(
        {"few_rows",
         cat(sizes_text(p), "constexpr i64 kLeading = ", p.b_row, ", kRowA = ", p.a_row,
             ", kRowC = ", p.c_row, ";\nconstexpr int kAcross = ", across, ";\n", kFewRowsByRow)});
    return out;
  }
  return std::nullopt;
}

void FewRowsKernel::run(const Launch& l, const void* a, const void* b, void* c) const {
  struct Params {
    const void *a, *b;
    void* c;
  };
  const auto launch = [kernel = kernel_, p = Params{a, b, c}](const Stream& s) {
    (*kernel.function)(s.handle, kernel.grid, kernel.block, kernel.shared, p);
  };
  Chain* const chain = phase_ ? chain_of(l) : nullptr;
  if (!chain) return launch(stream_of(l));
  const auto word = [](const void* p) { return uint64_t(reinterpret_cast<uintptr_t>(p)); };
  chain->add(phase_, {word(a), word(b), word(c)},
             [launch, &s = *static_cast<Stream*>(l.stream)] { launch(s); });
}

}  // namespace rlx::cuda
