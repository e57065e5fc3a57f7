// Which kernel multiplies a convolution: of those that suit it the fastest, measured once where the work is large.
#include <algorithm>

#include "rlx/backend/cuda/driver/fastest.h"
#include "rlx/backend/cuda/nodes/conv_rings.h"

namespace rlx::cuda {
namespace {

constexpr double kWorthMeasuring = 3e8;  // operations

/// Memory for an operand of these extents, and where its first element is told to be: strides may be negative.
class Operand {
 public:
  Operand(const backend::Memory& memory, const ConvPart::Strides& s, int64_t outer, int64_t channels,
          const Axes& axes, size_t size) {
    int64_t low = std::min<int64_t>(s.offset, 0), high = std::max<int64_t>(s.offset, 0);
    const auto add = [&](int64_t count, int64_t stride) {
      (stride < 0 ? low : high) += (count - 1) * stride;
    };
    add(outer, s.outer), add(channels, s.channel);
    for (size_t d = 0; d < 3; ++d) add(axes[d], s.axis[d]);
    block_ = backend::Block(memory, size_t(high - low + 1) * size);
    at_ = block_.get() - low * int64_t(size);
  }
  std::byte* at() const { return at_; }

 private:
  backend::Block block_;
  std::byte* at_ = nullptr;
};

// Results are stored as they are while ways are measured: operators behind them have operands of their own.
int measured(const Device& device, ConvPart p, const std::vector<ConvWay>& ways) {
  const AskedTexts of_ways;  // are no part of the step
  p.turned = Turned::no;
  const ConvResults results = plain_results(p.dtype);
  std::vector<ConvPlan> plans;
  size_t bytes = 0;
  std::string key = cat("convolution ", p.dtype, "\n", constants_of(p));
  for (const ConvWay& way : ways) {
    plans.push_back(way(device, p, results));
    bytes = std::max(bytes, plans.back().workspace());
    key += plans.back().note + "\n";
  }
  try {
    const backend::Memory& memory = device.gpu()->memory();
    const size_t size = dtype_size(p.dtype);
    const Operand x(memory, p.xs, p.batch, p.groups * p.inputs, p.x, size),
        w(memory, p.ws, p.groups * p.outputs, p.inputs, p.w, size),
        y(memory, p.ys, p.batch, p.groups * p.outputs, p.y, size);
    const backend::Block workspace(memory, bytes);
    return fastest(
        *device.gpu(), key, int(plans.size()), Trials::warm, [] {},
        [&](Stream_* stream, int way) {
          const ConvPlan& plan = plans[size_t(way)];
          plan.run(stream, x.at(), w.at(), workspace.get(), workspace.get() + ConvPlan::aligned(plan.turned),
                   {y.at()});
        });
  } catch (const Error&) {
    return 0;  // too little memory to try
  }
}

}  // namespace

ConvPlan plan_conv_tiles(const Device& device, const ConvPart& p, const ConvResults& results) {
  std::vector<ConvWay> ways = ring_ways(device, p);
  if (ways.empty()) return plan_conv_slices(device, p, results);
  ways.emplace_back(plan_conv_slices);
  const bool measures = device.gpu() && p.operations() >= kWorthMeasuring;
  return ways[size_t(measures ? measured(device, p, ways) : 0)](device, p, results);
}

}  // namespace rlx::cuda
