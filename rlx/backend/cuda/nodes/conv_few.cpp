// Convolutions whose groups have few output channels: depthwise ones, groups of a few, images of one to three channels as results.
#include "rlx/backend/cuda/kernels/conv_few.h"
#include "rlx/backend/cuda/nodes/conv_steps.h"
#include "rlx/backend/cuda/nodes/conv_tiles.h"
#include "rlx/backend/cuda/nodes/element_kernel.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kShared = 32 << 10;  // bytes of weights of a block
constexpr int64_t kMostImage = 64;     // positions of one image in the registers of a thread
constexpr int64_t kUnrolled = 256;     // numbers of x that the text of a thread reads one by one

// A tile has 64 channels, of which these would be the used ones. Matrix units are ten times as fast as FMA units: there a sixteenth of a tile is worth as much as they
// make here; in f32 and f64 an eighth of one.
bool is_few(const ConvPart& p) {
  const bool narrow = p.dtype == DType::f16 || p.dtype == DType::bf16;
  return p.outputs <= (narrow ? 4 : 8);
}

int64_t channels_of(const ConvPart& p) { return std::min<int64_t>(p.outputs, 4); }

int64_t numbers_read(const ConvPart& p, int64_t each) {
  const int64_t rows = (each - 1) * std::abs(p.stride[1]) + (p.w[1] - 1) * std::abs(p.dilation[1]) + 1;
  return rows * p.w[2];
}

// Neighbours share rows of x: with 3 x 3 taps and steps of one, four of them read 18 numbers for 36 products.
int64_t each_of(const ConvPart& p) {
  for (const int64_t each : {4, 2}) {
    if (p.y[1] >= each && p.w[1] > 1 && numbers_read(p, each) <= kUnrolled) return each;
  }
  return 1;
}

bool suits_few(const ConvPart& p) {
  const int64_t bytes = p.taps() * p.inputs * channels_of(p) * (p.dtype == DType::f64 ? 8 : 4);
  return is_few(p) && !is_along(p) && bytes <= kShared && numbers_read(p, 1) <= kUnrolled;
}
bool suits_long(const ConvPart& p) { return is_few(p) && is_along(p) && product_of(p.y) <= kMostImage; }

ConvPlan plan_few(const Device& device, const ConvPart& p, const ConvResults& results) {
  const int64_t each = each_of(p), out = channels_of(p);
  const std::string head = conv_head(
      p, results,
      cat("constexpr bool kAlong = false, kAcross = false;\nconstexpr int kSub = 1, kChunk = 0, kSlice = 1, kEach = ",
          each, ", kOut = ", out, ";\n"));
  const int64_t threads = p.batch * p.y[0] * ((p.y[1] + each - 1) / each) * p.y[2];
  ConvPlan plan;
  plan.launches = {{device.functions().get({"conv_few", head + kConvFew}),
                    {blocks_for(threads).x, p.groups * ((p.outputs + out - 1) / out)},
                    {256},
                    0,
                    {ConvArg::x, ConvArg::w, ConvArg::y}}};
  plan.note = cat("a thread for ", each, " x ", out, " results");
  return plan;
}

// Parts of the terms until the processors have four blocks each; a thread has eight terms or more.
ConvPlan plan_long(const Device& device, const ConvPart& p, const ConvResults& results) {
  const int64_t processors = conv_processors(device).count;
  const int64_t blocks = p.batch * p.groups * p.outputs, terms = p.inputs * p.taps();
  const int64_t splits =
      std::max<int64_t>(1, std::min((4 * processors + blocks - 1) / blocks, terms / (8 * 256)));
  const std::string head = conv_head(
      p, results,
      cat("constexpr bool kAlong = true, kAcross = false;\nconstexpr int kSub = 1, kChunk = 0, kSlice = 1, kSplits = ",
          splits, ";\n"));
  ConvPlan plan;
  plan.launches = {{device.functions().get({"conv_long", head + kConvLong}),
                    {p.batch, p.groups * p.outputs, splits},
                    {256},
                    0,
                    {ConvArg::x, ConvArg::w, ConvArg::y, ConvArg::sums}}};
  if (splits > 1) plan.launches.push_back(conv_sum(device, p.groups * p.outputs * p.positions(), head));
  plan.sums = conv_sum_bytes(p, p.positions(), splits);
  plan.note =
      cat("a block for the results of one channel", splits > 1 ? cat(", terms in ", splits, " parts") : "");
  return plan;
}

}  // namespace

Support accepts_few(const Request& r) {
  if (const Support s = accepts_conv_parts(r); !s) return s;
  for (const ConvPart& p : conv_parts(r)) {
    if (p.inputs * p.taps() == 0 || suits_few(p) || suits_long(p)) continue;
    return Support::no(p.outputs, " output channels of a group, or ", p.taps(), " taps, are many");
  }
  return Support::yes();
}

ConvPlan plan_conv_few(const Device& device, const ConvPart& p, const ConvResults& results) {
  return is_along(p) ? plan_long(device, p, results) : plan_few(device, p, results);
}

}  // namespace rlx::cuda
