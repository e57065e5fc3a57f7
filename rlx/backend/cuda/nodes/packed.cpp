// Products with packed weights, decoded inside of the product, and packed weights as numbers.
#include <algorithm>

#include "rlx/backend/cuda/fault.h"
#include "rlx/backend/cuda/kernels/packed_product.h"
#include "rlx/backend/cuda/kernels/packed_units.h"
#include "rlx/backend/cuda/kernels/streamed_rows.h"
#include "rlx/backend/cuda/nodes/element_kernel.h"
#include "rlx/backend/cuda/nodes/on_first_use.h"
#include "rlx/backend/cuda/nodes/packed_format.h"
#include "rlx/backend/cuda/nodes/packed_groups.h"
#include "rlx/backend/cuda/nodes/packed_rows.h"
#include "rlx/base/error.h"
#include "rlx/ops/quant/dequant_matmul.h"
#include "rlx/ops/quant/dequantize_blocks.h"

namespace rlx::cuda {
namespace {

using ops::Activations;

constexpr int64_t kStrip = 32;
constexpr int kBlockAlign = int(kVectorBytes);

/// One product: rows of x with the weights of one matrix, or of one expert each.
struct PackedProduct {
  const quant::BlockFormat* format = nullptr;
  DType type = DType::f32;  // of x and y
  int64_t m = 0, n = 0, k = 0, experts = 0;
  bool exact = false;
  DType expert_type = DType::i32;
  bool is_fixed = false;  // no kernel of the program makes the weights
};

// ---- texts ----

std::string text_before(const PackedProduct& p, int align) {
  return packed_text(*p.format, p.type, p.k, align);
}

/// How few rows are spread: `lanes` threads for `each` rows of weights, `rows` of x a block.
struct RowShape {
  int lanes = 32, each = 2, rows = 1;
  size_t shared = 0;
};

// Whether threads take the units of kernels/packed_units.h, and how many strips such a unit has.
bool takes_units(const PackedProduct& p) {
  static constexpr std::string_view kKnown[] = {"q4_0", "q4_k", "q5_k", "q6_k"};
  return !p.exact && std::find(std::begin(kKnown), std::end(kKnown), p.format->name) != std::end(kKnown);
}
int64_t unit_strips(const PackedProduct& p) { return takes_units(p) && p.format->elements == 256 ? 2 : 1; }

// The fewest idle threads in at most four rounds over the units; long rows take a warp.
int lanes_for(int64_t units) {
  int best = 32;
  int64_t least = (units + 31) / 32 * 32;
  for (const int lanes : {16, 8, 4}) {
    const int64_t slots = (units + lanes - 1) / lanes * lanes;
    if (slots < least && slots / lanes <= 4) least = slots, best = lanes;
  }
  return best;
}

constexpr size_t kMostShared = 96 << 10;

size_t shared_bytes(const PackedProduct& p, int rows) {
  const size_t strips = size_t(rows * p.k / kStrip);
  return strips * (p.exact ? 33 * 4 : 32 + 4 + 8);
}

RowShape row_shape(const PackedProduct& p, int multiprocessors) {
  RowShape s{.lanes = lanes_for(p.k / kStrip / unit_strips(p))};
  s.rows = p.experts > 0 ? 1 : int(std::min<int64_t>(p.m, 4));
  while (s.rows > 1 && shared_bytes(p, s.rows) > kMostShared) s.rows /= 2;
  s.shared = shared_bytes(p, s.rows);
  // Two rows a thread hide more of the memory's latency, where there is work for all processors.
  s.each = p.n / (256 / s.lanes * 2) >= 2 * multiprocessors ? 2 : 1;
  return s;
}

// What stands before the kernels of few rows.
std::string rows_text(const PackedProduct& p, int rows, int align, const ColumnHooks& hooks) {
  const auto flag = [](bool b) { return b ? "true" : "false"; };
  return cat(text_before(p, align), "constexpr int kRows = ", rows, ", kColumns = ", p.n,
             ";\nconstexpr bool kExact = ", flag(p.exact), ", kKept = ", flag(hooks.kept),
             ", kInUnits = ", flag(takes_units(p)), ", kWide = ", flag(align > 1), ";\n", hooks_text(hooks),
             kPackedUnits, kPackedRowParts);
}

Source rows_source(const PackedProduct& p, const RowShape& s, int align, const ColumnHooks& hooks) {
  return {"packed_rows",
          cat("constexpr int kBlockThreads = 256, kLanes = ", s.lanes, ", kEach = ", s.each, ", kSides = ",
              hooks.sides, ";\nconstexpr bool kGrouped = ", p.experts > 0 ? "true" : "false", ";\ntypedef ",
              memory_type(p.expert_type), " Expert;\n", rows_text(p, s.rows, align, hooks), kPackedRows)};
}

int64_t row_bytes(const PackedProduct& p) { return p.k / p.format->elements * p.format->bytes; }

// Of a chunk of weights: 64 are a multiple of 16 bytes in every format.
int64_t chunk_strips(const quant::BlockFormat& f) {
  const int64_t half = 32 * kStrip / f.elements * f.bytes;
  return half % 16 == 0 && half >= 768 ? 32 : 64;
}

int threads_for(const Device& device, const PackedProduct& p, int sides, bool wide) {
  constexpr size_t kBesideRings = 64 << 10;
  const bool fits =
      !p.exact && p.experts == 0 && p.m <= most_few_rows() && shared_bytes(p, int(p.m)) <= kBesideRings;
  return wide && fits ? packed_block_threads(device, row_bytes(p), p.n, sides) : 256;
}

// What stands before kernels whose weights stream.
std::string stream_text(const PackedProduct& p, const ColumnHooks& hooks) {
  return cat(rows_text(p, int(p.m), kBlockAlign, hooks),
             "constexpr int kChunkStrips = ", chunk_strips(*p.format), ";\n", kPackedStream);
}
int64_t chunk_bytes(const quant::BlockFormat& f) { return chunk_strips(f) * kStrip / f.elements * f.bytes; }

PhaseRef phase_of(const Device& device, const PackedProduct& p, const ColumnHooks& hooks) {
  if (p.exact || p.experts > 0 || p.m > most_few_rows() || row_bytes(p) % 16 != 0) return nullptr;
  const FewRows sizes{.dtype = p.type, .m = p.m, .n = p.n, .k = p.k, .b_is_fixed = p.is_fixed};
  return product_phase(device, sizes, hooks, stream_text(p, hooks), row_bytes(p), chunk_bytes(*p.format),
                       shared_bytes(p, int(p.m)));
}

// All rows of x in one launch, weights through shared memory.
ColumnProducts streamed_product(const Device& device, const PackedProduct& p, const ColumnHooks& hooks) {
  const FewRows sizes{.dtype = p.type, .m = p.m, .n = p.n, .k = p.k, .b_is_fixed = p.is_fixed};
  return streamed_rows(device, sizes, hooks, stream_text(p, hooks), chunk_bytes(*p.format),
                       shared_bytes(p, int(p.m)));
}

// One matrix, rows of x where they lie.
ColumnHooks plain_hooks() {
  return {.text = R"cuda(struct Params { const T* x; const u8* w; T* y; };
inline const u8* weights_of(const Params& p, int, int column) { return p.w + i64(column) * kRowBytes; }
inline const T* row_of(const Params& p, int row) { return p.x + i64(row) * kFeatures; }
inline void make_rows(const Params&, T*) {}
inline void finish(const Params& p, int row, int column, const f32 (&sums)[1]) { put(p.y[i64(row) * kColumns + column], sums[0]); }
)cuda"};
}
struct PlainParams {
  const std::byte *x, *w;
  std::byte* y;
};

constexpr int64_t kBlocksEach = 4;  // of few rows, on a processor

/// Tiles of many rows.
struct TileShape {
  int m = 128, n = 128, step = 2, warps_m = 2;
};
TileShape tile_shape(const PackedProduct& p) {
  if (p.m <= 32) return {32, 64, 4, 1};
  if (p.m <= 64) return {64, 64, 4, 1};
  return {};
}

Source tiles_source(const PackedProduct& p, const TileShape& t, int align) {
  return {"packed_tiles", cat(text_before(p, align), "constexpr int kTileM = ", t.m, ", kTileN = ", t.n,
                              ", kStep = ", t.step, ", kWarpsM = ", t.warps_m, ";\n", kPackedTiles)};
}

// ---- the step ----

constexpr int64_t kFewRows = 8;  // as many are read again from the cache rather than put on matrix units

class PackedStep final : public Step {
  struct Loaded {
    FunctionRef function, rounding;  // rounding: for tiles
    RowShape rows;
  };

 public:
  PackedStep(const Device& device, const PackedProduct& p) : device_(device), p_(p) {
    multiprocessors_ = device.multiprocessors();
    tiled_ = !p.exact && p.experts == 0 && p.m > kFewRows;
    if (tiled_)
      groups_ =
          PackedGroups::make(device, {.format = p.format, .type = p.type, .m = p.m, .n = p.n, .k = p.k});
    if (!groups_) aligned_ = load(kBlockAlign);
    if (threads_for(device, p, 1, true) > 256) stream_ = streamed_product(device, p, plain_hooks());
    phase_ = phase_of(device, p, plain_hooks());
    if (tiled_) workspace = size_t(p.m * p.k / kStrip) * (32 + 4 + 8);
    if (groups_) workspace = std::max(workspace, groups_->workspace());
    if (p.experts > 0)
      fault_ =
          new_fault(cat("dequant_grouped_matmul: element % of experts is out of range; it must be at "
                        "least 0 and below ",
                        p.experts));
    note = cat(p.format->name,
               groups_  ? ", tiles on matrix units of groups of warps, "
               : tiled_ ? ", tiles on matrix units, "
                        : ", a team of threads for each row, ",
               p.m, " x ", p.n, " x ", p.k, p.exact ? ", exact" : "");
  }

  void run(const Launch& l) const override {
    const bool aligned = are_aligned({l.in[0], l.in[1], groups_ ? l.out[0] : nullptr});
    const Loaded& use = aligned ? aligned_ : anywhere_.get([&] { return load(1); });
    Chain* const chain = phase_ && &use == &aligned_ ? chain_of(l) : nullptr;
    if (chain) {
      const std::byte* const words[] = {l.in[0], l.in[1], l.out[0]};
      chain->add(phase_, words_of(words), [this, &use, l, in = std::vector(l.in, l.in + 2), out = l.out[0]] {
        Launch again = l;
        std::byte* const to = out;
        again.in = in.data(), again.out = &to;
        queue(again, use);
      });
    } else {
      queue(l, use);
    }
  }

 private:
  void queue(const Launch& l, const Loaded& use) const {
    if (groups_ && &use == &aligned_) {
      groups_->run(stream_of(l), l.in[0], l.in[1], l.out[0], l.workspace);
    } else if (tiled_) {
      run_tiles(l, use);
    } else if (stream_.function && &use == &aligned_) {
      PlainParams params{l.in[0], l.in[1], l.out[0]};
      run_packed_rows(stream_, stream_of(l), p_.m, &params);
    } else {
      run_rows(l, use);
    }
  }

  Loaded load(int align) const {
    Functions& all = device_.functions();
    const RowShape rows = row_shape(p_, multiprocessors_);
    if (!tiled_) return {all.get(rows_source(p_, rows, align, plain_hooks())), nullptr, rows};
    return {all.get(tiles_source(p_, tile_shape(p_), align)),
            all.get({"packed_rounding", text_before(p_, kBlockAlign) + kPackedRounding}), rows};
  }

  void run_rows(const Launch& l, const Loaded& use) const {
    const Stream& s = stream_of(l);
    const RowShape& r = use.rows;
    const int64_t group = 256 / r.lanes * r.each, groups = (p_.n + group - 1) / group;
    const int64_t rows = (p_.m + r.rows - 1) / r.rows;
    constexpr int64_t kMostRows = 65535;
    const int64_t slab = p_.n * (p_.k / p_.format->elements) * p_.format->bytes;
    const int64_t width = std::min<int64_t>(groups, int64_t(multiprocessors_) * kBlocksEach);
    const auto element = int64_t(dtype_size(p_.type));
    for (int64_t at = 0; at < rows; at += kMostRows) {
      const int64_t count = std::min(kMostRows, rows - at), first = at * r.rows;
      std::byte* const chosen =
          p_.experts > 0 ? l.in[2] + first * int64_t(dtype_size(p_.expert_type)) : nullptr;
      const PlainParams params{l.in[0] + first * p_.k * element, l.in[1], l.out[0] + first * p_.n * element};
      (*use.function)(s.handle, {width, count}, {256}, r.shared, params, int(p_.m - first), chosen, slab,
                      int(p_.experts), s.fault, fault_);
    }
  }

  void run_tiles(const Launch& l, const Loaded& use) const {
    const Stream& s = stream_of(l);
    const TileShape t = tile_shape(p_);
    const int64_t strips = p_.m * p_.k / kStrip;
    std::byte* const codes = l.workspace;
    std::byte* const scales = codes + strips * 32;
    std::byte* const sums = scales + strips * 4;
    (*use.rounding)(s.handle, blocks_for(strips * (p_.format->elements == 256 ? 4 : 8)), {256}, 0, l.in[0],
                    codes, scales, sums, int(p_.m));
    const Grid grid{(p_.n + t.n - 1) / t.n, (p_.m + t.m - 1) / t.m};
    (*use.function)(s.handle, grid, {256}, 0, codes, scales, sums, l.in[1], l.out[0], int(p_.m), int(p_.n));
  }

  const Device& device_;
  PackedProduct p_;
  int multiprocessors_ = 1;
  bool tiled_ = false;
  uint64_t fault_ = 0;
  Loaded aligned_;
  ColumnProducts stream_;  // null where another kernel is to be taken
  PhaseRef phase_;
  std::optional<PackedGroups> groups_;
  OnFirstUse<Loaded> anywhere_;
};

// ---- nodes ----

Support accepts_scheme(const std::string& text, int64_t k) {
  const auto s = quant::scheme_from_text(text);
  if (!s->is_gguf() || !decoder_text(*s->format, kBlockAlign)) return Support::no("no blocks: ", text);
  return k % s->format->elements == 0 ? Support::yes() : Support::no("k is no whole number of blocks");
}

Support accepts_operands(const Request& r) {
  const DType t = r.in[0].dtype();
  if (t != DType::f32 && t != DType::f16 && t != DType::bf16) return Support::no("activations of ", t);
  for (size_t i = 0; i < r.in.size(); ++i) {
    if (!r.in[i].is_row_major()) return Support::no("operand ", i, " is strided");
  }
  constexpr int64_t kMost = (int64_t(1) << 31) - 1;
  if (r.in[0].shape.elements() > kMost || r.out[0].shape.elements() > kMost)
    return Support::no("2^31 elements or more");
  return Support::yes();
}

PackedProduct product_of(const Request& r, const std::string& scheme, Activations activations) {
  const Shape &x = r.in[0].shape, &y = r.out[0].shape;
  const int64_t k = x.dim(-1).value();
  return {.format = quant::scheme_from_text(scheme)->format,
          .type = r.in[0].dtype(),
          .m = k > 0 ? x.elements() / k : 0,
          .n = y.dim(-1).value(),
          .k = k,
          .exact = activations == Activations::exact,
          .is_fixed = r.in[1].fixed};
}

std::unique_ptr<Step> prepare_product(const Request& r, const PackedProduct& p) {
  if (auto empty = prepare_empty_sum(r.out[0].shape, p.k)) return empty;
  return std::make_unique<PackedStep>(device_of(r), p);
}

Support accepts_matmul(const Request& r) {
  const auto& a = r.node.as<ops::DequantMatmul>();
  const int64_t k = r.in[0].shape.dim(-1).value();
  if (const Support s = accepts_scheme(a.scheme, k); !s) return s;
  const PackedProduct p = product_of(r, a.scheme, a.activations);
  if (shared_bytes(p, 1) > kMostShared) return Support::no("rows of ", k, " elements");
  return accepts_operands(r);
}
std::unique_ptr<Step> prepare_matmul(const Request& r) {
  const auto& a = r.node.as<ops::DequantMatmul>();
  return prepare_product(r, product_of(r, a.scheme, a.activations));
}

Support accepts_grouped(const Request& r) {
  const auto& a = r.node.as<ops::DequantGroupedMatmul>();
  const int64_t k = r.in[0].shape.dim(-1).value();
  if (const Support s = accepts_scheme(a.scheme, k); !s) return s;
  const PackedProduct p = product_of(r, a.scheme, a.activations);
  if (shared_bytes(p, 1) > kMostShared) return Support::no("rows of ", k, " elements");
  if (!is_integer(r.in[2].dtype())) return Support::no("experts are ", r.in[2].dtype());
  return accepts_operands(r);
}
std::unique_ptr<Step> prepare_grouped(const Request& r) {
  const auto& a = r.node.as<ops::DequantGroupedMatmul>();
  PackedProduct p = product_of(r, a.scheme, a.activations);
  p.experts = a.num_experts.value();
  p.expert_type = r.in[2].dtype();
  return prepare_product(r, p);
}

// ---- weights as numbers ----

Support accepts_unpack(const Request& r) {
  return r.in[0].is_row_major() ? Support::yes() : Support::no("the codes are strided");
}

// Codes whose scales lie beside them: the number of each by itself.
std::string plain_code_text(const quant::Scheme& s, int64_t k, int64_t n) {
  using quant::SchemeKind;
  const std::string place = cat("(i0 * ", k, " + i1) * ", n, " + i2");
  switch (s.kind) {
    case SchemeKind::int8_block:
    case SchemeKind::int8_block_asym:
      return cat("  y[e] = f32(i8(w[", place, "]));\n");
    case SchemeKind::int4_block:
      return cat("  const i64 at = i1 * ", n, " + i2;\n  y[e] = f32(w[i0 * ", (k * n + 1) / 2,
                 " + at / 2] >> (at % 2 * 4) & 15);\n");
    case SchemeKind::nvfp4_block:
      return cat("  const u32 code = w[(i0 * ", (k + 1) / 2, " + i1 / 2) * ", n,
                 " + i2] >> (i1 % 2 * 4) & 15;\n",
                 "  const u32 doubled = 0xc8643210u >> (code % 8 * 4) & 15;\n",
                 "  y[e] = (code & 8 ? -0.5f : 0.5f) * f32(doubled);\n");
    case SchemeKind::fp8_e5m2:
      return cat("  f16 h;\n  h.bits = u16(w[", place, "]) << 8;\n  y[e] = as_f32(h);\n");
    case SchemeKind::fp8_e4m3:
      return cat(
          "  const u32 x = w[", place, "], low = x & 127;\n",
          "  const f32 size = low == 127 ? from_bits(0x7fc00000u) : low < 8 ? f32(low) * 0.001953125f\n",
          "      : from_bits((low << 20) + 0x3c000000u);\n  y[e] = x & 128 ? -size : size;\n");
    case SchemeKind::gguf:
      break;
  }
  throw Error(ErrorKind::internal, "blocks have a decoder of their own");
}

std::unique_ptr<Step> prepare_unpack(const Request& r, const std::string& text) {
  const quant::Scheme s = *quant::scheme_from_text(text);
  const Shape& y = r.out[0].shape;
  const int64_t count = y.elements();
  if (count == 0) return make_gpu_step("empty", [](Stream&, const Launch&) {});
  const int64_t k = y.dim(-2).value(), n = y.dim(-1).value(), matrices = count / (k * n);
  if (!s.is_gguf()) {
    return element_step(
        device_of(r),
        element_kernel("unpack", {matrices, k, n}, "const u8* w, f32* y", plain_code_text(s, k, n)), 1, 1,
        count, "code by code");
  }
  const PackedProduct p{.format = s.format, .n = n, .k = k};
  // Whether blocks lie at multiples of 16 bytes is known when the address is: single blocks need not.
  const FunctionRef f = device_of(r).functions().get({"unpack", text_before(p, 1) + kUnpack});
  const int64_t threads = matrices * n * (k / kStrip);
  return make_gpu_step(cat(s.format->name, ", a thread for each strip"), [=](Stream& q, const Launch& l) {
    (*f)(q.handle, blocks_for(threads), {256}, 0, l.in[0], l.out[0], matrices, n);
  });
}

template <class Op>
Support accepts_blocks(const Request& r) {
  const quant::Scheme s = *quant::scheme_from_text(r.node.as<Op>().scheme);
  if (s.is_gguf()) {
    if (const Support known = accepts_scheme(r.node.as<Op>().scheme, r.out[0].shape.dim(-2).value()); !known)
      return known;
  }
  return accepts_unpack(r);
}
template <class Op>
std::unique_ptr<Step> prepare_blocks(const Request& r) {
  return prepare_unpack(r, r.node.as<Op>().scheme);
}

}  // namespace

namespace {

PackedProduct few_rows_of(const ops::DequantMatmul::Attrs& a, const FewRows& s) {
  return {.format = quant::scheme_from_text(a.scheme)->format,
          .type = s.dtype,
          .m = s.m,
          .n = s.n,
          .k = s.k,
          .exact = a.activations == Activations::exact,
          .is_fixed = s.b_is_fixed};
}

}  // namespace

std::unique_ptr<Step> prepare_empty_sum(const Shape& result, int64_t depth) {
  const auto bytes = size_t(result.size_bytes());
  if (bytes == 0) return make_gpu_step("empty", [](Stream&, const Launch&) {});
  if (depth > 0) return nullptr;
  return make_gpu_step("an empty sum", [bytes](Stream& s, const Launch& l) {
    check(s.gpu.use().MemsetD8Async(device_pointer(l.out[0]), 0, bytes, s.handle), "a fill");
  });
}

std::string packed_rows_problem(const ops::DequantMatmul::Attrs& a, DType t, int64_t rows, int64_t depth) {
  if (const Support s = accepts_scheme(a.scheme, depth); !s) return s.reason();
  const PackedProduct p = few_rows_of(a, {.dtype = t, .m = rows, .n = 1, .k = depth});
  return shared_bytes(p, int(rows)) > kMostShared ? cat("rows of ", depth, " elements") : std::string();
}

int packed_block_threads(const Device& device, const ops::DequantMatmul::Attrs& a, const FewRows& sizes,
                         int sides, bool wide) {
  return threads_for(device, few_rows_of(a, sizes), sides, wide);
}

ColumnProducts packed_rows(const Device& device, const ops::DequantMatmul::Attrs& a, const FewRows& sizes,
                           const ColumnHooks& hooks) {
  const PackedProduct p = few_rows_of(a, sizes);
  if (hooks.threads > 256) return streamed_product(device, p, hooks);
  const int multiprocessors = device.multiprocessors();
  RowShape shape = row_shape(p, multiprocessors);
  shape.rows = int(sizes.m);
  if (hooks.sides > 1) shape.each = 1;
  const int64_t group = 256 / shape.lanes * shape.each, groups = (p.n + group - 1) / group;
  const int64_t most = multiprocessors * kBlocksEach, rounds = (groups + most - 1) / most;
  ColumnProducts out;
  out.shared = shared_bytes(p, shape.rows);
  out.grid = {(groups + rounds - 1) / rounds};
  out.function = device.functions().get(rows_source(p, shape, hooks.wide ? kBlockAlign : 1, hooks));
  return out;
}

PhaseRef packed_phase(const Device& device, const ops::DequantMatmul::Attrs& a, const FewRows& sizes,
                      const ColumnHooks& hooks) {
  return phase_of(device, few_rows_of(a, sizes), hooks);
}

void run_packed_rows(const ColumnProducts& f, const Stream& s, int64_t rows, void* params) {
  int m = int(rows), experts = 0;
  const void* none = nullptr;
  int64_t slab = 0;
  uint64_t fault = 0;
  uint64_t* word = s.fault;
  void* parameters[] = {params, &m, &none, &slab, &experts, &word, &fault, nullptr};
  f.function->launch(s.handle, f.grid, f.block, f.shared, parameters);
}

void add_packed(KernelTable& table) {
  table.add<ops::DequantMatmul>({"dequant_matmul", accepts_matmul, prepare_matmul});
  table.add<ops::DequantGroupedMatmul>({"dequant_grouped_matmul", accepts_grouped, prepare_grouped});
  table.add<ops::DequantizeBlocks>(
      {"dequantize_blocks", accepts_blocks<ops::DequantizeBlocks>, prepare_blocks<ops::DequantizeBlocks>});
  table.add<ops::DequantMoeWeights>({"dequant_moe_weights", accepts_blocks<ops::DequantMoeWeights>,
                                     prepare_blocks<ops::DequantMoeWeights>});
}

}  // namespace rlx::cuda
