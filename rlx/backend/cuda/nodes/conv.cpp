// Convolution: a product of matrices in tiles for most, a thread for a few results where groups have few channels; conv_direct.cpp has what is left.
#include "rlx/ops/conv/conv.h"

#include "rlx/backend/cuda/kernels/conv_fma.h"
#include "rlx/backend/cuda/kernels/conv_groups.h"
#include "rlx/backend/cuda/kernels/conv_mma.h"
#include "rlx/backend/cuda/kernels/conv_parts.h"
#include "rlx/backend/cuda/kernels/conv_pieces.h"
#include "rlx/backend/cuda/kernels/conv_results.h"
#include "rlx/backend/cuda/kernels/conv_slices.h"
#include "rlx/backend/cuda/kernels/matrix_fragments.h"
#include "rlx/backend/cuda/kernels/matrix_groups.h"
#include "rlx/backend/cuda/nodes/conv_steps.h"
#include "rlx/backend/cuda/nodes/conv_tiles.h"
#include "rlx/backend/cuda/nodes/conv_turn.h"

namespace rlx::cuda {
namespace {

// Whether eight terms in a row are neighbours in w that begin at a multiple of 16 bytes, from the first address on: channels of a tap, or taps of a channel.
bool is_direct(const ConvPart& p, const ConvTiling& t) {
  if (!t.matrix_units || p.ws.outer % 8 != 0 || p.ws.offset % 8 != 0) return false;
  if (!t.along) {
    const auto whole = [&](size_t d) { return p.w[d] == 1 || p.ws.axis[d] % 8 == 0; };
    return p.ws.channel == 1 && p.inputs % 8 == 0 && whole(0) && whole(1) && whole(2);
  }
  const Axes runs{p.w[1] * p.w[2], p.w[2], 1};
  const auto run = [&](size_t d) { return p.w[d] == 1 || p.ws.axis[d] == runs[d]; };
  return p.ws.channel % 8 == 0 && p.taps() % 8 == 0 && run(0) && run(1) && run(2);
}

std::unique_ptr<Step> prepare_tiles(const Request& r) { return conv_step(r, plain_conv(r), plan_conv_tiles); }
std::unique_ptr<Step> prepare_few(const Request& r) { return conv_step(r, plain_conv(r), plan_conv_few); }

}  // namespace

// Weights in the order of the tiles where those cannot read them as they lie, the products, and the sum of parts.
ConvPlan plan_conv_slices(const Device& device, const ConvPart& p, const ConvResults& results) {
  const ConvTiling t = tiling_of(p, conv_processors(device));
  const bool direct = is_direct(p, t);
  const auto flag = [](bool b) { return b ? "true" : "false"; };
  const std::string head = conv_head(
      t.sideways ? with_turned_x(p, Turned::images) : p, results,
      cat("constexpr bool kAlong = ", flag(t.along), ", kAcross = ", flag(t.sideways),
          ", kSideways = ", flag(t.sideways), ", kTurned = ", flag(!t.matrix_units),
          ", kDirect = ", flag(direct), ";\nconstexpr int kSub = ", t.sub, ", kChunk = 0, kSlice = ", t.slice,
          ", kSplits = ", t.splits, ";\nconstexpr u32 kRows = ", t.rows, ";\n"));
  const std::string tile = cat("constexpr int kM = ", t.m, ", kN = ", t.n, ", kStages = ", t.stages,
                               ", kWarpM = ", t.warp_m, ", kBlocks = ", t.blocks, ", kNumbers = ", t.numbers,
                               ", kWriters = ", t.threads, ";\n", kMatrixFragments);
  const std::string slices = t.matrix_units ? cat(kConvPieces, kConvResults, kConvSlices) : "";
  ConvPlan plan;
  if (t.sideways) {
    plan.x = Turned::images;
    plan.turned = size_t(turned_elements(p, plan.x)) * dtype_size(p.dtype);
    if (p.turned != plan.x) plan.launches.push_back(turn_launch(device, p, plan.x, results));
  }
  if (!direct) {
    plan.packed = size_t(t.packed(p)) * dtype_size(p.dtype);
    plan.launches.push_back({device.functions().get({"conv_pack", head + kConvPack}),
                             {(t.slices * t.slice + 31) / 32, (t.rows + 31) / 32, p.groups},
                             {256},
                             0,
                             {ConvArg::w, ConvArg::packed}});
  }
  const Source products = t.groups ? Source{"conv_groups", head + tile + kMatrixGroups + slices + kConvGroups}
                          : t.matrix_units ? Source{"conv_mma", head + tile + slices + kConvMma}
                                           : Source{"conv_fma", head + tile + kConvFma};
  plan.launches.push_back({device.functions().get(products),
                           {t.tiles(p), p.groups, t.splits},
                           {t.threads},
                           size_t(t.shared),
                           {t.sideways ? ConvArg::turned : ConvArg::x, direct ? ConvArg::w : ConvArg::packed,
                            ConvArg::y, ConvArg::sums}});
  if (t.splits > 1) plan.launches.push_back(conv_sum(device, p.groups * p.outputs * t.columns(p), head));
  plan.sums = conv_sum_bytes(p, t.columns(p), t.splits);
  plan.note =
      cat(t.groups         ? "groups of warps, "
          : t.matrix_units ? "matrix units, "
                           : "",
          "tiles of ", t.m, " x ", t.n,
          t.sideways ? ", x turned"
          : t.along  ? ", lanes along terms"
                     : "",
          t.splits > 1 ? cat(", terms in ", t.splits, " parts") : "", direct ? "" : ", packed weights");
  return plan;
}

void add_conv(KernelTable& table) {
  table.add<ops::Conv>({"conv_few", accepts_few, prepare_few});
  table.add<ops::Conv>({"conv_tiles", accepts_conv_parts, prepare_tiles});
  add_conv_direct(table);
  add_conv_codes(table);
}

}  // namespace rlx::cuda
