#include "rlx/backend/cuda/nodes/conv_tiles.h"

#include <algorithm>

#include "rlx/backend/cuda/compile/architecture.h"
#include "rlx/backend/cuda/nodes/conv_turn.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kMatrixSlice = 64;      // 128 bytes of a row
constexpr int64_t kMostParts = 64 << 20;  // bytes of parts of sums
constexpr double kBytesEachCycle = 2400;  // of the whole memory: 4.2 TB/s at 1.75 GHz
constexpr double kBlockCycles =
    1500;  // from a block's launch to its first product, and its results behind the last one
constexpr double kKernelCycles = 5000;  // one more kernel

// Cycles of a processor for one slice of one tile: the units that are busy longest, and a sixth of that for what does not overlap.
//   products   groups of warps make some 1,900 fused products a cycle, mma.sync some 1,250 (60 % of the peak, 2,048), FMA units 128 in f32 and 64 in f64
//   threads    128 lanes a cycle; a number of x takes some 2 instructions along positions, 7 along terms; in f32 3 and 6
//   the way to the first cache and to shared memory, 128 bytes or 32 lanes a cycle: numbers of x are read one by one (half of a line along terms) and rows of 128 bytes
//   written once; mma.sync reads the rows of each warp again
double cycles_of_slice(const ConvPart& p, const ConvTiling& t) {
  const double products = double(t.m * t.n * t.slice), numbers = double(t.n * t.slice);
  if (!t.matrix_units)
    return products / (p.dtype == DType::f64 ? 64 : 128) + numbers * (t.sideways ? 1 : t.along ? 6 : 3) / 128;
  const double units = products / (t.groups ? 1900 : 1250), threads = numbers * (t.along ? 7 : 2) / 128;
  const double again = t.groups ? 0 : double(t.threads) / 32 * double(t.warp_m + 32);
  const double way = numbers / 32 * (t.along ? 1.5 : 1) + double(t.m + t.n) + again;
  return std::max({units, threads, way}) * 7 / 6;
}

// Blocks of one processor share its units, so that its time is the sum of theirs; a processor with one block alone waits for memory and for its own
// barriers, half of the time by a rough guess.
double cycles_of(const ConvPart& p, const ConvTiling& t, int64_t processors) {
  const int64_t blocks = t.tiles(p) * p.groups * t.splits, each = (blocks + processors - 1) / processors;
  const double slices = double((t.slices + t.splits - 1) / t.splits);
  double cycles = double(each) * (slices * cycles_of_slice(p, t) + kBlockCycles);
  if (!t.matrix_units) {
    // Fewer than sixteen warps on a processor take as long as sixteen.
    const int64_t together = std::max<int64_t>(512 / t.threads, 1);
    cycles = double(std::max(each, together)) * slices * cycles_of_slice(p, t) + double(each) * kBlockCycles;
  } else if (each == 1) {
    cycles *= t.threads >= 256 ? 1.25 : 1.5;
  }
  if (t.splits > 1) {
    const double bytes =
        double(p.groups * p.outputs * t.columns(p)) * double(t.splits) * (p.dtype == DType::f64 ? 16 : 8);
    cycles += bytes / kBytesEachCycle + kKernelCycles;
  }
  return cycles;
}

std::vector<ConvTiling> shapes_for(const ConvPart& p, bool hopper) {
  std::vector<ConvTiling> out;
  if (p.dtype == DType::f16 || p.dtype == DType::bf16) {
    // 64 x 32 of a tile for each warp: 6 loads for 16 products; small tiles have 32 x 32, 4 loads for 8. Two places in shared memory.
    out = {{.m = 128, .n = 128, .warp_m = 64, .blocks = 2},
           {.m = 64, .n = 128, .warp_m = 64, .blocks = 3},
           {.m = 64, .n = 64, .warp_m = 32, .blocks = 4}};
    for (ConvTiling& t : out) {
      t.matrix_units = true;
      t.groups = hopper && t.n == 128;
      // Nothing but other warps hides the way of numbers to groups: twelve warps of small tiles wait twice a slice, as sixteen of large ones do.
      t.numbers = t.groups && t.m == 64 ? 32 : 16;
      t.slice = kMatrixSlice;
      t.threads = t.m / t.warp_m * (t.n / 32) * 32;
      t.shared =
          2 * (t.m + t.n) * 128 + (t.groups ? 1024 : 0);  // places of groups begin at multiples of 1024
    }
    return out;
  }
  const bool wide = p.dtype == DType::f64;
  const int64_t each = wide ? 4 : 8, size = wide ? 8 : 4;
  if (wide) {
    out = {{.slice = 16, .m = 64, .n = 64}};
  } else {
    out = {{.m = 128, .n = 128}, {.m = 64, .n = 128}, {.m = 64, .n = 64}};
  }
  for (ConvTiling& t : out) {
    t.threads = t.m * t.n / (each * each);
    t.stages = 3;
    t.shared = t.stages * t.slice * (t.m + t.n + 16 / size) * size;
  }
  return out;
}

// Images are as many as fill pieces of 16 bytes; offsets have 32 bits.
bool suits_sideways(const ConvPart& p) {
  constexpr int64_t kMostElements = int64_t(1) << 30;
  return is_along(p) && p.groups == 1 && p.batch >= 8 && turned_elements(p, Turned::images) <= kMostElements;
}

}  // namespace

bool is_along(const ConvPart& p) { return p.taps() > product_of(p.y) && p.taps() >= 32; }

Processors conv_processors(const Device& device) {
  Processors out{.hopper = device.functions().architecture() == kHopper};
  if (device.gpu()) out.count = device.gpu()->multiprocessors();
  return out;
}

ConvTiling tiling_of(const ConvPart& p, const Processors& processors) {
  ConvTiling best;
  double least = -1;
  for (ConvTiling t : shapes_for(p, processors.hopper)) {
    t.along = is_along(p);
    t.sideways = !t.matrix_units && suits_sideways(p);
    const int64_t run = t.matrix_units ? 8 : t.slice * t.n / t.threads;  // neighbouring terms of a thread
    t.sub = 1;
    while (!t.along && t.sub < std::min<int64_t>({p.inputs, run, 8})) t.sub *= 2;
    const int64_t terms = p.taps() * (t.along ? p.inputs : round_up(p.inputs, t.sub));
    t.slices = (terms + t.slice - 1) / t.slice;
    t.rows = round_up(p.outputs, t.m);
    const int64_t part = p.groups * p.outputs * t.columns(p) * (p.dtype == DType::f64 ? 8 : 4);
    for (int64_t splits = 1; splits <= std::min<int64_t>(t.slices, 256);
         splits += std::max<int64_t>(1, splits / 4)) {
      if (splits > 1 && part * splits > kMostParts) break;
      const int64_t each = (t.slices + splits - 1) / splits;
      t.splits = (t.slices + each - 1) / each;  // no part is empty
      const double cycles = cycles_of(p, t, processors.count);
      if (least < 0 || cycles < least) best = t, least = cycles;
    }
  }
  return best;
}

}  // namespace rlx::cuda
