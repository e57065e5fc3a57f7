#include "rlx/backend/cuda/nodes/conv_geometry.h"

#include <numeric>

#include "rlx/ops/conv/conv.h"

namespace rlx::cuda {
namespace {

// One class of results along one axis: o = first + q step for q < count, with the taps k = tap + j tap_step for j < taps, which meet
// x at q stride + j dilation + start.
struct Class {
  int64_t first = 0, step = 1, count = 0, tap = 0, tap_step = 1, taps = 0;
  int64_t stride = 1, dilation = 1, start = 0;
};

// i gap = o stride + k dilation - padding. The rest of o stride by gap has the period gap / gcd(stride, gap) in o, that of k dilation the
// period gap / gcd(dilation, gap) in k.
std::vector<Class> classes(int64_t y, int64_t w, int64_t stride, int64_t dilation, int64_t padding,
                           int64_t gap) {
  if (gap < 0) stride = -stride, dilation = -dilation, padding = -padding, gap = -gap;
  const int64_t step = gap / std::gcd(stride, gap), tap_step = gap / std::gcd(dilation, gap);
  std::vector<Class> out;
  for (int64_t first = 0; first < std::min(step, y); ++first) {
    Class c{.first = first, .step = step, .count = (y - first + step - 1) / step, .tap_step = tap_step};
    c.stride = step * stride / gap, c.dilation = tap_step * dilation / gap;
    for (int64_t k = 0; k < std::min(tap_step, w) && c.taps == 0; ++k) {
      const int64_t at = first * stride + k * dilation - padding;
      if (at % gap == 0) c.tap = k, c.taps = (w - k + tap_step - 1) / tap_step, c.start = at / gap;
    }
    out.push_back(c);
  }
  return out;
}

ConvPart::Strides strides_of(const Arg& x) {
  const auto& s = x.layout.strides;
  ConvPart::Strides out{.outer = s[0], .channel = s[1]};
  for (size_t i = 2; i < s.size(); ++i) out.axis[i + 3 - s.size()] = s[i];
  return out;
}

}  // namespace

std::vector<ConvPart> conv_parts(const Request& r) {
  const auto& a = r.node.as<ops::Conv>();
  const Arg &x = r.in[0], &w = r.in[1], &y = r.out[0];
  ConvPart whole{.dtype = x.dtype(),
                 .batch = y.shape.dim(0).value(),
                 .groups = a.groups.value(),
                 .inputs = w.shape.dim(1).value(),
                 .outputs = y.shape.dim(1).value() / std::max<int64_t>(a.groups.value(), 1)};
  whole.xs = strides_of(x), whole.ws = strides_of(w), whole.ys = strides_of(y);
  const int axes = x.shape.rank() - 2;
  std::vector<ConvPart> parts{whole};
  for (int d = 0; d < axes; ++d) {
    const auto axis = size_t(3 - axes + d), k = size_t(d);
    std::vector<ConvPart> next;
    for (const Class& c : classes(y.shape.dim(d + 2).value(), w.shape.dim(d + 2).value(), a.stride[k],
                                  a.dilation[k], a.padding[k], a.input_dilation[k])) {
      for (ConvPart p : parts) {
        p.x[axis] = x.shape.dim(d + 2).value(), p.y[axis] = c.count, p.w[axis] = c.taps;
        p.stride[axis] = c.stride, p.dilation[axis] = c.dilation, p.start[axis] = c.start;
        p.ys.offset += c.first * p.ys.axis[axis], p.ys.axis[axis] *= c.step;
        p.ws.offset += c.tap * p.ws.axis[axis], p.ws.axis[axis] *= c.tap_step;
        next.push_back(p);
      }
    }
    parts = std::move(next);
  }
  return parts;
}

std::string constants_of(const ConvPart& p) {
  const auto list = [](const char* name, const Axes& a) {
    return cat("constexpr int ", name, "0 = ", a[0], ", ", name, "1 = ", a[1], ", ", name, "2 = ", a[2],
               ";\n");
  };
  const auto strides = [](const char* name, const ConvPart::Strides& s) {
    return cat("constexpr int ", name, "Outer = ", s.outer, ", ", name, "Channel = ", s.channel, ", ", name,
               "0 = ", s.axis[0], ", ", name, "1 = ", s.axis[1], ", ", name, "2 = ", s.axis[2], ", ", name,
               "First = ", s.offset, ";\n");
  };
  std::string out = cat("constexpr int kBatch = ", p.batch, ", kInputs = ", p.inputs,
                        ", kOutputs = ", p.outputs, ", kGroups = ", p.groups, ";\n");
  out += list("kX", p.x) + list("kY", p.y) + list("kW", p.w);
  out += list("kStride", p.stride) + list("kDilation", p.dilation) + list("kStart", p.start);
  out += strides("kXs", p.xs) + strides("kWs", p.ws) + strides("kYs", p.ys);
  for (size_t d = 0; d < 3; ++d) {
    // The first and the last place that any result meets on this axis.
    const int64_t o = (p.y[d] - 1) * p.stride[d], k = (p.w[d] - 1) * p.dilation[d];
    const int64_t low = p.start[d] + std::min<int64_t>(o, 0) + std::min<int64_t>(k, 0),
                  high = p.start[d] + std::max<int64_t>(o, 0) + std::max<int64_t>(k, 0);
    out += cat("constexpr bool kInside", d, " = ", low >= 0 && high < p.x[d] ? "true" : "false", ";\n");
  }
  return out;
}

}  // namespace rlx::cuda
