#include "rlx/backend/cuda/nodes/conv_turn.h"

#include <algorithm>
#include <cstdlib>

#include "rlx/backend/cuda/kernels/conv_turn.h"
#include "rlx/backend/cuda/nodes/element_kernel.h"

namespace rlx::cuda {
namespace {

struct Sizes {
  int64_t inner, outer;
};
Sizes turned_sizes(const ConvPart& p, Turned how) {
  const int64_t channels = p.groups * p.inputs;
  return how == Turned::images ? Sizes{p.batch, channels} : Sizes{channels, p.batch};
}

struct Turning {
  int64_t blocks = 0;
  std::string constants;
};
Turning turning_of(const ConvPart& p, Turned how) {
  const auto [inner, outer] = turned_sizes(p, how);
  const int64_t tile = std::min<int64_t>(round_up(inner, 8), 64), flat = 4096 / tile / 64 * 64;
  const int64_t wide = (product_of(p.x) + flat - 1) / flat, tall = (round_up(inner, 8) + tile - 1) / tile;
  const auto size = int64_t(dtype_size(p.dtype));
  int64_t each = is_run(p.xs, p.x) ? 16 / size : 1;  // elements of x that are read at once
  while (product_of(p.x) % each != 0 || p.xs.outer % each != 0 || p.xs.channel % each != 0) each /= 2;
  const bool images = how == Turned::images;
  const int64_t blocks = how == Turned::no ? 0 : wide * tall * outer;
  return {blocks, cat("typedef ", word_type(size_t(size)),
                      " Word;\nconstexpr int kInnerStride = ", images ? p.xs.outer : p.xs.channel,
                      ", kOuterStride = ", images ? p.xs.channel : p.xs.outer,
                      ";\nconstexpr u32 kTurnBlocks = ", blocks, ", kTurnWide = ", wide,
                      ", kTurnTall = ", tall, ", kInner = ", inner, ", kInnerPadded = ", round_up(inner, 8),
                      ", kTileInner = ", tile, ", kTileFlat = ", flat, ", kWide = ", each, ";\n")};
}

}  // namespace

bool is_run(const ConvPart::Strides& s, const Axes& extents) {
  int64_t next = 1;
  for (size_t d = 3; d-- > 0;) {
    if (extents[d] != 1 && s.axis[d] != next) return false;
    next *= extents[d];
  }
  return true;
}

ConvPart with_turned_x(ConvPart p, Turned how) {
  const int64_t inner = round_up(turned_sizes(p, how).inner, 8), image = product_of(p.x) * inner;
  const bool images = how == Turned::images;
  p.xs = {.outer = images ? 1 : image,
          .channel = images ? image : 1,
          .axis = {p.x[1] * p.x[2] * inner, p.x[2] * inner, inner}};
  return p;
}

int64_t turned_elements(const ConvPart& p, Turned how) {
  const auto [inner, outer] = turned_sizes(p, how);
  return outer * product_of(p.x) * round_up(inner, 8);
}

ConvLaunch turn_launch(const Device& device, const ConvPart& p, Turned how, const ConvResults& results) {
  const Turning t = turning_of(p, how);
  const std::string head = conv_head(
      p, results,
      cat("constexpr bool kAlong = false, kAcross = false;\nconstexpr int kSub = 1, kChunk = 0, kSlice = 1;\n",
          t.constants));
  return {device.functions().get({"conv_turn", cat(head, kConvTurn, kConvTurnAlone)}),
          {t.blocks},
          {256},
          0,
          {ConvArg::x, ConvArg::turned}};
}

ConvLaunch turn_and_pack_launch(const Device& device, const ConvPart& p, Turned how, const RingOrder& order,
                                const ConvResults& results, const std::string& constants) {
  const Turning t = turning_of(p, how);
  const std::string head = conv_head(
      p, results,
      cat(constants, t.constants,
          "constexpr bool kRowsFirst = ", std::abs(p.ws.outer) < std::abs(p.ws.channel) ? "true" : "false",
          ";\nconstexpr u32 kPackTaps = ", order.taps, ", kTileM = ", order.tile, ";\n"));
  return {device.functions().get({"conv_turn", cat(head, kConvTurn, kConvTurnAndPack)}),
          {t.blocks + order.slices / order.taps * (order.rows / 8) * p.groups},
          {256},
          0,
          {ConvArg::x, ConvArg::turned, ConvArg::w, ConvArg::packed}};
}

}  // namespace rlx::cuda
