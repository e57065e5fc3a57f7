// Products with weights whose scales lie beside their codes, decoded inside of the product.
#include <algorithm>

#include "rlx/backend/cuda/compile/architecture.h"
#include "rlx/backend/cuda/kernels/cluster_blocks.h"
#include "rlx/backend/cuda/kernels/matrix_groups.h"
#include "rlx/backend/cuda/kernels/scheme_decoders.h"
#include "rlx/backend/cuda/kernels/scheme_groups.h"
#include "rlx/backend/cuda/kernels/scheme_product.h"
#include "rlx/backend/cuda/nodes/element_kernel.h"
#include "rlx/backend/cuda/nodes/on_first_use.h"
#include "rlx/backend/cuda/nodes/packed_rows.h"
#include "rlx/backend/cuda/rounding.h"
#include "rlx/base/error.h"
#include "rlx/ops/quant/dequant_matmul.h"
#include "rlx/quant/scheme.h"

namespace rlx::cuda {
namespace {

using quant::SchemeKind;

struct SchemeProduct {
  quant::Scheme scheme;
  DType type = DType::f32;  // of x and y
  int64_t m = 0, n = 0, k = 0;
  bool has_zero = false, is_fixed = false;
};

bool is_narrow(const SchemeProduct& p) { return p.type != DType::f32; }

// ---- how a product is spread ----

constexpr int64_t kFewRows = 16, kFewWideRows = 32;  // in 16 bits, in f32
constexpr int64_t kMostSplit = 8;                    // blocks of a cluster, of any processor that has them
constexpr int kTileColumns = 128, kLeastLane = 4;

enum class Way { rows, tiles, groups, wide_tiles };

/// `lane` columns of a thread, `tiles` of eight rows of a block, or rows where threads have all of them.
struct Spread {
  Way way = Way::rows;
  int lane = 4, tiles = 1;
  int64_t split = 1, columns = 0, rows = 0;  // columns and rows of a block
  size_t shared = 0;
};

// As many blocks along k that there are `wanted` blocks, while each has `least` pieces or more.
int64_t split_for(const Device& device, int64_t blocks, int64_t wanted, int64_t pieces, int64_t least) {
  if (!has_clusters(device.functions().architecture())) return 1;
  int64_t split = 1;
  while (split < kMostSplit && blocks * split < wanted && pieces >= least * split * 2) split *= 2;
  return split;
}

// On the matrix units of groups of warps, where there are blocks for most processors.
bool takes_groups(const Device& device, const SchemeProduct& p, int64_t processors) {
  const int64_t blocks = ceil_div(p.n, 256) * ceil_div(p.m, 128);
  return device.functions().architecture() == kHopper && is_narrow(p) && p.n % 4 == 0 && p.k % 8 == 0 &&
         p.m > 64 && 4 * blocks >= 3 * processors;
}

// Columns that a thread reads at once, and its rows. Where it reads them one by one, or factors for each row, what it holds of many does not fit its registers.
void spread_few_rows(const SchemeProduct& p, bool aligned, Spread& s) {
  const bool narrow = is_narrow(p), own_factors = p.scheme.block % 4 != 0;
  s.tiles = int(narrow ? ceil_div(p.m, 8) : std::min<int64_t>(p.m, 8));
  s.lane = narrow ? (s.tiles == 1 ? 16 : 8) : s.tiles <= 2 ? 16 : s.tiles <= 4 ? 8 : 4;
  while (s.lane > kLeastLane && (!aligned || own_factors || p.n % s.lane != 0)) s.lane /= 2;
  const bool at_once = aligned && p.n % s.lane == 0;
  if (own_factors) s.tiles = std::min(s.tiles, narrow ? 1 : 2);
  if (!narrow && !at_once) s.tiles = std::min(s.tiles, 4);
  s.rows = narrow ? 8 * s.tiles : s.tiles;
}

// Addresses that are no multiples of 16 have kernels that take any.
Spread spread_of(const Device& device, const SchemeProduct& p, bool aligned) {
  const int64_t processors = device.multiprocessors();
  Spread s;
  if (aligned && takes_groups(device, p, processors)) {
    // Two tiles of weights, four of x, and room to begin at a multiple of 1024.
    return {.way = Way::groups, .columns = 256, .rows = 128, .shared = (2 * 256 + 4 * 128) * 128 + 1024};
  }
  if (p.m <= (is_narrow(p) ? kFewRows : kFewWideRows)) {
    spread_few_rows(p, aligned, s);
    s.columns = 8 * s.lane;
    const int64_t blocks = ceil_div(p.n, s.columns) * ceil_div(p.m, s.rows);
    s.split = split_for(device, blocks, 2 * processors, ceil_div(p.k, 32), 16);
    s.shared = size_t(8 * (is_narrow(p) ? 2 * s.lane * s.tiles * 32 : s.lane * s.tiles * 8)) * 4;
    return s;
  }
  s.columns = kTileColumns;
  s.tiles = p.m <= 32 ? 4 : p.m <= 64 ? 8 : 16;
  s.rows = 8 * s.tiles;
  s.way = is_narrow(p) ? Way::tiles : Way::wide_tiles;
  if (s.way == Way::tiles) {
    const int64_t blocks = ceil_div(p.n, s.columns) * ceil_div(p.m, s.rows);
    // Blocks of few rows are two on a processor; one that has the processor for itself is split where half of them would idle.
    const int64_t wanted = s.tiles <= 4 ? 2 * processors : processors / 2 + 1;
    s.split = split_for(device, blocks, wanted, ceil_div(p.k, 64), 4);
    // The ring of x, or the sums.
    s.shared = size_t(std::max(3 * s.rows * 160, int64_t(4096) * s.tiles));
  }
  return s;
}

// ---- texts ----

struct Decoder {
  std::string_view codes, factors;
  std::string_view unit = "1.0f";  // what codes are held as parts of
};

Decoder decoder_of(SchemeKind kind) {
  switch (kind) {
    case SchemeKind::int8_block:
    case SchemeKind::int8_block_asym:
      return {"Int8<kLane>", "Scales<kLane>"};
    case SchemeKind::int4_block:
      return {"Int4<kLane>", "Scales<kLane>"};
    case SchemeKind::fp8_e4m3:
      return {"E4M3<kLane>", "NoScales", "256.0f"};
    case SchemeKind::fp8_e5m2:
      return {"E5M2<kLane>", "NoScales"};
    case SchemeKind::nvfp4_block:
      return {"E2M1<kLane>", "E4M3Scales<kLane>", "16384.0f"};
    case SchemeKind::gguf:
      break;
  }
  throw Error(ErrorKind::internal, "blocks have decoders of their own");
}

Source source_of(const SchemeProduct& p, const Spread& s, bool aligned) {
  const Decoder d = decoder_of(p.scheme.kind);
  const auto flag = [](bool b) { return b ? "true" : "false"; };
  const int64_t x_piece = s.way == Way::rows || s.way == Way::wide_tiles ? 4 : 8;
  std::string text = cat(
      "typedef ", memory_type(p.type), " T;\nconstexpr int kFeatures = ", p.k, ", kColumns = ", p.n,
      ", kRows = ", p.m, ", kGroup = ", p.scheme.block, ", kLane = ", s.lane, ", kRowTiles = ", s.tiles,
      ", kTileRows = ", s.rows, ", kSplit = ", s.split, ";\nconstexpr bool kHasZero = ", flag(p.has_zero),
      ", kWide = ", flag(aligned && p.n % s.lane == 0), ", kWideX = ", flag(aligned && p.k % x_piece == 0),
      ", kEarly = ", flag(p.is_fixed), ", kOneScale = ", flag(p.scheme.kind == SchemeKind::nvfp4_block),
      ";\nconstexpr f32 kCodeUnit = ", d.unit, ";\n#define kClusterShape ",
      s.split > 1 ? cat("__cluster_dims__(", s.split, ", 1, 1)") : "", "\n", kSchemePairs, kSchemeDecoders,
      "typedef ", d.codes, " Codes;\ntypedef ", d.factors, " Factors;\n", kClusterBlocks, kSchemeShared);
  switch (s.way) {
    case Way::rows:
      return {
          "scheme_rows",
          cat(text, is_narrow(p) ? cat(kSchemeFragments, kSchemeNarrowSums) : kSchemeWideSums, kSchemeRows)};
    case Way::tiles:
      return {"scheme_tiles", cat(text, kSchemeFragments, kSchemeTiles)};
    case Way::groups:
      return {"scheme_groups", cat(text, kSchemeFragments, kMatrixGroups, kSchemeGroups)};
    case Way::wide_tiles:
      break;
  }
  return {"scheme_wide_tiles", cat(text, kSchemeWideTiles)};
}

std::string_view name_of(const SchemeProduct& p, Way way) {
  switch (way) {
    case Way::rows:
      return is_narrow(p) ? "few rows on matrix units" : "few rows in f32";
    case Way::tiles:
      return "tiles on matrix units";
    case Way::groups:
      return "tiles on matrix units of groups of warps";
    case Way::wide_tiles:
      break;
  }
  return "tiles in f32";
}

// ---- the step ----

class SchemeStep final : public Step {
 public:
  SchemeStep(const Device& device, const SchemeProduct& p) : device_(device), p_(p), aligned_(load(true)) {
    const Spread& s = aligned_.spread;
    note = cat(p.scheme, ", ", name_of(p, s.way), ", ", p.m, " x ", p.n, " x ", p.k,
               s.split > 1 ? cat(", k in ", s.split, " parts") : "");
  }

  void run(const Launch& l) const override {
    const bool zero = p_.has_zero || p_.scheme.kind == SchemeKind::nvfp4_block;
    const Params params{l.in[0], l.in[1], l.in[2], zero ? l.in[3] : nullptr, l.out[0]};
    const bool aligned = are_aligned({params.x, params.codes, params.scale, params.zero, params.y});
    const Loaded& use = aligned ? aligned_ : anywhere_.get([&] { return load(false); });
    const Spread& s = use.spread;
    const Grid grid{ceil_div(p_.n, s.columns) * s.split, ceil_div(p_.m, s.rows)};
    (*use.function)(stream_of(l).handle, grid, {256}, s.shared, params);
  }

 private:
  struct Params {
    const std::byte *x, *codes, *scale, *zero;
    std::byte* y;
  };
  struct Loaded {
    Spread spread;
    FunctionRef function;
  };

  Loaded load(bool aligned) const {
    const Spread s = spread_of(device_, p_, aligned);
    return {s, device_.functions().get(source_of(p_, s, aligned))};
  }

  const Device& device_;
  SchemeProduct p_;
  Loaded aligned_;
  OnFirstUse<Loaded> anywhere_;
};

// ---- nodes ----

SchemeProduct product_of(const Request& r) {
  const quant::Scheme s = *quant::scheme_from_text(r.node.as<ops::DequantMatmul>().scheme);
  const Shape &x = r.in[0].shape, &y = r.out[0].shape;
  const int64_t k = x.dim(-1).value();
  SchemeProduct p{.scheme = s,
                  .type = r.in[0].dtype(),
                  .m = k > 0 ? x.elements() / k : 0,
                  .n = y.dim(-1).value(),
                  .k = k,
                  .has_zero = s.has_zero_point() && r.in.size() > 3,
                  .is_fixed = true};
  for (size_t i = 1; i < r.in.size(); ++i) p.is_fixed = p.is_fixed && r.in[i].fixed;
  return p;
}

Support accepts_product(const Request& r) {
  const auto& a = r.node.as<ops::DequantMatmul>();
  if (quant::scheme_from_text(a.scheme)->is_gguf()) return Support::no("blocks: ", a.scheme);
  const DType t = r.in[0].dtype();
  if (t != DType::f32 && t != DType::f16 && t != DType::bf16) return Support::no("activations of ", t);
  for (size_t i = 0; i < r.in.size(); ++i) {
    if (!r.in[i].is_row_major()) return Support::no("operand ", i, " is strided");
    if (i >= 2 && r.in[i].dtype() == DType::f64) return Support::no("operand ", i, " is f64");
  }
  constexpr int64_t kMost = (int64_t(1) << 31) - 1, kMostColumns = int64_t(1) << 28, kMostRows = 1 << 21;
  const SchemeProduct p = product_of(r);
  if (r.in[0].shape.elements() > kMost || r.out[0].shape.elements() > kMost)
    return Support::no("2^31 elements or more");
  if (p.n > kMostColumns || p.m > kMostRows) return Support::no(p.m, " rows and ", p.n, " columns");
  return Support::yes();
}

std::unique_ptr<Step> prepare_product(const Request& r) {
  const SchemeProduct p = product_of(r);
  if (auto empty = prepare_empty_sum(r.out[0].shape, p.k)) return empty;
  return std::make_unique<SchemeStep>(device_of(r), p);
}

}  // namespace

void add_schemes(KernelTable& table) {
  table.add<ops::DequantMatmul>({"scheme_product", accepts_product, prepare_product});
}

}  // namespace rlx::cuda
