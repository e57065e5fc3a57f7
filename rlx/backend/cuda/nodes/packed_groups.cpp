#include "rlx/backend/cuda/nodes/packed_groups.h"

#include <algorithm>

#include "rlx/backend/cuda/compile/architecture.h"
#include "rlx/backend/cuda/kernels/matrix_groups.h"
#include "rlx/backend/cuda/kernels/packed_groups.h"
#include "rlx/backend/cuda/nodes/element_kernel.h"
#include "rlx/backend/cuda/nodes/on_first_use.h"
#include "rlx/backend/cuda/nodes/packed_format.h"
#include "rlx/backend/cuda/rounding.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kTile = 128;        // columns and rows of a block
constexpr int64_t kLeastRows = 65;    // fewer are the smaller tiles of packed_tiles
constexpr int64_t kRing = 216 << 10;  // bytes of shared memory for chunks

/// What a lane decodes of a column (kernels/packed_groups.h), or nothing.
std::string_view quarter_of(std::string_view format) {
  static constexpr std::pair<std::string_view, std::string_view> kKnown[] = {{"q4_k", "QuarterOfK<false>"},
                                                                             {"q5_k", "QuarterOfK<true>"},
                                                                             {"q6_k", "QuarterOf6"},
                                                                             {"q4_0", "QuarterOf4"},
                                                                             {"q8_0", "QuarterOf8"}};
  for (const auto& [name, quarter] : kKnown) {
    if (name == format) return quarter;
  }
  return {};
}

/// Of 128 rows of x, as kernels/packed_groups.h lays them out.
struct Chunk {
  explicit Chunk(const quant::BlockFormat& f) {
    const bool long_run = f.elements == 256, has_sums = f.name == "q4_k" || f.name == "q5_k";
    features = long_run ? 256 : 64;
    const int64_t sums = has_sums ? kTile * 32 : 0, scales = kTile * 4 * (long_run ? 1 : 2);
    bytes = (kTile * 2 * features + sums + scales + 1023) / 1024 * 1024;
  }
  int64_t features, bytes;
};

}  // namespace

std::optional<PackedGroups> PackedGroups::make(const Device& device, const PackedSizes& p) {
  const std::string_view quarter = quarter_of(p.format->name);
  if (device.functions().architecture() != kHopper || quarter.empty() || p.m < kLeastRows)
    return std::nullopt;
  const Chunk chunk(*p.format);
  if (p.k % chunk.features != 0) return std::nullopt;
  const bool wide = p.n * int64_t(dtype_size(p.type)) % 16 == 0;
  const std::string chunks = cat(packed_text(*p.format, p.type, p.k, int(kVectorBytes)),
                                 "constexpr int kPlaces = ", kRing / chunk.bytes,
                                 ";\nconstexpr bool kWide = ", wide ? "true" : "false", ";\n", kPackedChunks);
  PackedGroups out;
  out.p_ = p;
  out.processors_ = device.multiprocessors();
  out.rounding_ = device.functions().get({"packed_chunks", chunks + kPackedChunkRounding});
  out.product_ =
      device.functions().get({"packed_groups", cat(chunks, kMatrixGroups, kPackedQuarters, "typedef ",
                                                   quarter, " Quarter;\n", kPackedGroups)});
  return out;
}

size_t PackedGroups::workspace() const {
  const Chunk chunk(*p_.format);
  return size_t(ceil_div(p_.m, kTile) * (p_.k / chunk.features) * chunk.bytes);
}

void PackedGroups::run(const Stream& s, const std::byte* x, const std::byte* w, std::byte* y,
                       std::byte* workspace) const {
  const Chunk chunk(*p_.format);
  const int64_t tiles = ceil_div(p_.m, kTile), rows = tiles * kTile, own = p_.format->elements == 256 ? 8 : 4;
  (*rounding_)(s.handle, blocks_for(rows * p_.k / own), {256}, 0, x, workspace, int(p_.m), int(rows));
  const size_t shared = size_t(kRing / chunk.bytes * chunk.bytes + 1024);
  const int64_t all = tiles * ceil_div(p_.n, kTile);
  (*product_)(s.handle, {std::min(all, processors_)}, {384}, shared, static_cast<const std::byte*>(workspace),
              w, y, int(p_.m), int(p_.n), int(tiles), int(all));
}

}  // namespace rlx::cuda
