#include "rlx/backend/cuda/nodes/conv_rings.h"

#include <algorithm>

#include "rlx/backend/cuda/kernels/conv_pieces.h"
#include "rlx/backend/cuda/kernels/conv_results.h"
#include "rlx/backend/cuda/kernels/conv_rings.h"
#include "rlx/backend/cuda/kernels/matrix_groups.h"
#include "rlx/backend/cuda/nodes/conv_tiles.h"
#include "rlx/backend/cuda/nodes/conv_turn.h"

namespace rlx::cuda {
namespace {

// How many elements of an image that is a run may be copied at once: 8, 4, or 1 where that is no gain.
int64_t run_in_image(const ConvPart::Strides& s, const Axes& extents) {
  if (!is_run(s, extents)) return 1;
  for (const int64_t n : {8, 4}) {
    if (product_of(extents) % n == 0 && s.outer % n == 0 && s.channel % n == 0 && s.offset % n == 0) return n;
  }
  return 1;
}

// Every result meets the element of x at its own place alone.
bool is_points(const ConvPart& p) {
  return p.taps() == 1 && p.x == p.y && p.start == Axes{0, 0, 0} &&
         (product_of(p.x) == 1 || p.stride == Axes{1, 1, 1});
}

// The kernel is as large as the image and meets it once.
bool is_whole_image(const ConvPart& p) {
  return product_of(p.y) == 1 && p.w == p.x && p.start == Axes{0, 0, 0} && p.dilation == Axes{1, 1, 1};
}

// Channels are neighbours, and 8 of them begin at multiples of 16 bytes from the first address on.
bool is_channels_last(const ConvPart& p) {
  const auto& s = p.xs;
  const auto whole = [&](size_t d) { return p.x[d] == 1 || s.axis[d] % 8 == 0; };
  return s.channel == 1 && p.inputs % 8 == 0 && s.offset % 8 == 0 && (p.batch == 1 || s.outer % 8 == 0) &&
         whole(0) && whole(1) && whole(2);
}

constexpr int64_t kMostElements = int64_t(1) << 30;  // offsets have 32 bits

}  // namespace

int64_t ConvForm::terms() const {
  return part.taps() * (along || sideways ? part.inputs : round_up(part.inputs, 8));
}
int64_t ConvForm::columns() const {
  return across ? product_of(part.y) * round_up(part.batch, 8) : part.positions();
}

std::optional<ConvForm> form_of(const ConvPart& p) {
  if ((p.dtype != DType::f16 && p.dtype != DType::bf16)) return std::nullopt;
  ConvForm f{.part = p, .along = is_along(p)};
  if (f.along) {
    if (p.groups > 1) return std::nullopt;
    if (const int64_t run = run_in_image(p.xs, p.x); is_whole_image(p) && run > 1) {
      f.run = run;
    } else {
      if (p.batch < 8 && p.batch * product_of(p.y) < 64)
        return std::nullopt;  // most of a tile would be empty
      if (turned_elements(p, Turned::images) > kMostElements) return std::nullopt;
      f.sideways = f.across = true;
      f.x = Turned::images, f.part = with_turned_x(p, f.x);
    }
    f.run_w = run_in_image(p.ws, p.w);
    f.direct = f.run_w > 1;
    if (!f.direct) f.run_w = 8;
    return f;
  }
  if (p.groups > 1 && p.inputs % 8 != 0) return std::nullopt;
  if (const int64_t run = run_in_image(p.xs, p.x); is_points(p) && run > 1) {
    f.sideways = true;
    f.run = run;
    return f;
  }
  f.chunked = p.inputs % 64 == 0;
  if (is_channels_last(p)) return f;
  if (turned_elements(p, Turned::channels) > kMostElements) return std::nullopt;
  f.x = Turned::channels, f.part = with_turned_x(p, f.x);
  return f;
}

namespace {

// ---- the model ----

constexpr double kBlockCycles = 4000;  // to the first product, and from the last one to the last result
constexpr double kKernelCycles = 3000;
constexpr double kBytesEachCycle = 2400;     // of the whole memory
constexpr double kCacheBytesEachCycle = 44;  // from the second cache to one processor
constexpr int64_t kMostParts = 64 << 20;     // bytes of parts of sums
constexpr int64_t kSharedBytes = 227 << 10,
                  kShare = 200 << 10;  // what is left is the first cache, for slices of neighbouring taps

// Cycles of a processor for one slice of one tile: 2,048 products a cycle; 128 bytes of shared memory a cycle, which are written once, read by the units (64 x 16 of w and all columns for each
// product) and, for x, read in the first cache before; and the way from the second cache, which neighbouring taps go once.
double cycles_of_slice(const ConvForm& f, const RingTiling& t) {
  const double m = double(t.m), n = double(t.n);
  const double units = m * n * 64 / 2048;
  const double shared = (m + n) + m / 64 * (64 + n) + n + (f.direct ? m : 0);
  const bool again = !f.sideways && !f.along && f.part.taps() > 2;
  const double cache = (m + (again ? n / 3 : n)) * 128 / kCacheBytesEachCycle;
  return std::max({units, shared, cache}) * 1.1;
}

double cycles_of(const ConvForm& f, const RingTiling& t, int64_t processors) {
  const ConvPart& p = f.part;
  const int64_t blocks = t.tiles(f) * p.groups * t.splits, each = (blocks + processors - 1) / processors;
  const int64_t turns =
      (each + t.blocks - 1) / t.blocks;  // blocks that share a processor begin and end together
  const double slices = double((t.slices + t.splits - 1) / t.splits);
  double cycles = double(each) * slices * cycles_of_slice(f, t) + double(turns) * kBlockCycles;
  if (t.splits > 1)
    cycles += double(p.groups * p.outputs * f.columns() * t.splits) * 8 / kBytesEachCycle + kKernelCycles;
  return cycles;
}

}  // namespace

std::vector<RingTiling> ring_tilings_of(const ConvForm& f, int64_t processors) {
  const int64_t slices = (f.terms() + 63) / 64;
  const int64_t part = f.part.groups * f.part.outputs * f.columns() * 4;
  std::vector<std::pair<double, RingTiling>> found;
  for (const int64_t m : {64, 128, 256}) {
    if (m > 64 && f.part.outputs <= m / 2) break;
    for (const int64_t blocks : {1, 2, 3, 4}) {
      RingTiling best;
      double least = -1;
      for (int64_t n = f.sideways ? 64 : 48; n <= 256; n += f.sideways ? 64 : 16) {
        RingTiling t{.m = m, .n = n, .blocks = blocks, .slices = slices, .rows = round_up(f.part.outputs, m)};
        // n / 2 sums of a thread and some thirty registers beside them.
        const int64_t registers = std::min<int64_t>(65536 / (t.threads() * blocks) / 8 * 8, 255);
        if (n / 2 + 32 > registers) continue;
        const int64_t room = kShare / blocks / t.place_bytes();
        for (int64_t splits = 1; splits <= std::min<int64_t>(slices, 256);
             splits += std::max<int64_t>(1, splits / 8)) {
          if (splits > 1 && part * splits > kMostParts) break;
          const int64_t each = (slices + splits - 1) / splits;
          t.stages = std::min<int64_t>({room, each, 6});
          if (t.stages < std::min<int64_t>(each, 3) || t.shared() * blocks > kSharedBytes) continue;
          t.splits = (slices + each - 1) / each;  // no part is empty
          const double cycles = cycles_of(f, t, processors);
          if (least < 0 || cycles < least) best = t, least = cycles;
        }
      }
      if (least >= 0) found.emplace_back(least, best);
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<RingTiling> out;
  for (const auto& [cycles, t] : found) out.push_back(t);
  return out;
}

namespace {

// 64 channels x n columns x 16 terms, added to the sums; `more` 0: they are the sums.
std::string multiply_text(int64_t n, DType type, bool turned) {
  std::string sums, operands;
  for (int64_t i = 0; i < n / 2; ++i) {
    sums += cat(i == 0 ? "" : ",", "%", i);
    operands += cat(i == 0 ? "" : ", ", "\"+f\"(d[", i / 4, "][", i % 4, "])");
  }
  const char* const name = type == DType::f16 ? "f16" : "bf16";
  return cat("inline void multiply_columns(f32 (&d)[", n / 8,
             "][4], u64 a, u64 b, int more) {\n  asm volatile(\"{\\n.reg .pred more;\\nsetp.ne.b32 more, %",
             n / 2 + 2, ", 0;\\nwgmma.mma_async.sync.aligned.m64n", n, "k16.f32.", name, ".", name, " {",
             sums, "}, %", n / 2, ", %", n / 2 + 1, ", more, 1, 1, 0, ", turned ? 1 : 0,
             ";\\n}\"\n      : ", operands, " : \"l\"(a), \"l\"(b), \"r\"(more));\n}\n");
}

}  // namespace

ConvPlan plan_conv_rings(const Device& device, const ConvPart& p, const ConvResults& results,
                         const ConvForm& f, const RingTiling& t) {
  const auto flag = [](bool b) { return b ? "true" : "false"; };
  const std::string constants =
      cat("constexpr bool kAlong = ", flag(f.along), ", kAcross = ", flag(f.across),
          ", kSideways = ", flag(f.sideways), ", kOwnX = ", flag(f.x != Turned::no && !f.direct),
          ", kDirect = ", flag(f.direct), ";\nconstexpr int kSub = ", f.along || f.sideways ? 1 : 8,
          ", kSlice = 64, kChunk = ", f.chunked ? 64 : 0, ", kSplits = ", t.splits,
          ";\nconstexpr u32 kRows = ", t.rows, ";\n");
  const std::string head = conv_head(f.part, results, constants);
  ConvPlan plan;
  plan.x = f.x;
  if (f.x != Turned::no) plan.turned = size_t(turned_elements(p, f.x)) * dtype_size(p.dtype);
  if (!f.direct) plan.packed = size_t(p.groups * t.rows * t.slices * 64) * dtype_size(p.dtype);
  const bool turns = f.x != Turned::no && f.x != p.turned;
  if (f.direct && turns) plan.launches.push_back(turn_launch(device, p, f.x, results));
  if (!f.direct) {
    const RingOrder order{
        .rows = t.rows, .slices = t.slices, .tile = t.m, .taps = f.chunked && p.taps() <= 32 ? p.taps() : 1};
    plan.launches.push_back(
        turn_and_pack_launch(device, p, turns ? f.x : Turned::no, order, results, constants));
  }
  const std::string tile =
      cat("constexpr u32 kM = ", t.m, ", kN = ", t.n, ", kStages = ", t.stages, ", kBlocks = ", t.blocks,
          ", kRun = ", f.run, ", kRunW = ", f.run_w, ", kWriters = ", t.writers(), ";\n",
          multiply_text(t.n, p.dtype, f.sideways), kMatrixGroups, kConvPieces, kConvResults, kConvRings);
  plan.launches.push_back({device.functions().get({"conv_rings", head + tile}),
                           {t.tiles(f), p.groups, t.splits},
                           {t.threads()},
                           size_t(t.shared()),
                           {f.x != Turned::no ? ConvArg::turned : ConvArg::x,
                            f.direct ? ConvArg::w : ConvArg::packed, ConvArg::y, ConvArg::sums}});
  if (t.splits > 1) plan.launches.push_back(conv_sum(device, p.groups * p.outputs * f.columns(), head));
  plan.sums = conv_sum_bytes(p, f.columns(), t.splits);
  plan.note =
      cat("rings of ", t.stages, " slices, tiles of ", t.m, " x ", t.n,
          t.blocks > 1 ? cat(" x ", t.blocks) : "", f.x != Turned::no ? ", x turned" : "",
          t.splits > 1 ? cat(", terms in ", t.splits, " parts") : "", f.direct ? "" : ", packed weights");
  return plan;
}

std::vector<ConvWay> ring_ways(const Device& device, const ConvPart& p) {
  constexpr size_t kMostWays = 4;
  const Processors processors = conv_processors(device);
  const std::optional<ConvForm> form = form_of(p);
  if (!processors.hopper || !form) return {};
  std::vector<ConvWay> out;
  for (const RingTiling& t : ring_tilings_of(*form, processors.count)) {
    if (out.size() == kMostWays) break;
    out.emplace_back([f = *form, t](const Device& d, const ConvPart& part, const ConvResults& results) {
      return plan_conv_rings(d, part, results, f, t);
    });
  }
  return out;
}

}  // namespace rlx::cuda
