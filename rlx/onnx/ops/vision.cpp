// Reading pictures at places that the graph computes.
#include <cmath>

#include "rlx/lang/functions.h"
#include "rlx/lang/operators.h"
#include "rlx/onnx/ops/roi_align.h"
#include "rlx/onnx/sample.h"
#include "rlx/onnx/table.h"
#include "rlx/onnx/window.h"

namespace rlx::onnx {
namespace {

struct Grid {
  std::string mode, padding;
  bool align = false;
};

// Reflected at both borders as often as needed: a saw of period twice the range.
Tensor reflected(const Tensor& x, const Tensor& low, const Tensor& high) {
  const Tensor range = high - low, is_some = range > 0.0;
  const Tensor period = is_some.where(2.0 * range, 1.0);
  const Tensor shifted = x - low, t = shifted - rlx::floor(shifted / period) * period;
  return is_some.where(low + (t > range).where(2.0 * range - t, t), low);
}

Tensor inside(const Tensor& x, const Tensor& size) { return rlx::min(rlx::max(x, 0.0), size - 1.0); }

/// Real places along one axis of a picture, and its borders.
struct Axis {
  Tensor at, size, low, high;
};

// A whole place after padding; zeros are left to the reader.
Tensor padded_place(const Grid& g, const Tensor& i, const Axis& axis) {
  if (g.padding == "border") return inside(i, axis.size);
  // The place is cut towards zero after reflection.
  if (g.padding == "reflection") return inside(reflected(i, axis.low, axis.high), axis.size);
  return i;
}

// `grid` is [batch, points, axes], the last axis of the picture first.
Axis axis_of(const Call& c, const Grid& g, const Tensor& grid, int i, Dim extent, DType type) {
  const Tensor n = c.dim_value(extent, type);
  const Tensor at = grid.narrow(2, int(grid.dim(2).value()) - 1 - i, 1).squeeze(2);
  Tensor p = g.align ? (at + 1.0) * ((n - 1.0) / 2.0) : ((at + 1.0) * n - 1.0) * 0.5;
  const Tensor low = c.scalar(type, g.align ? 0 : -0.5), high = n - (g.align ? 1.0 : 0.5);
  if (g.mode == "nearest") p = rlx::round(p);
  // Cubic weights are those of the place itself, and its neighbours are moved inside one by one.
  if (g.padding == "border" && g.mode != "cubic") p = inside(p, n);
  if (g.padding == "reflection")
    p = rlx::where(rlx::logical_or(low > p, p > high), reflected(p, low, high), p);
  return {p, n, low, high};
}

// Of a neighbour that is `tap` steps from the whole place below, with t behind that place. Two neighbours: linear; four: cubic.
Tensor tap_weight(int taps, int tap, const Tensor& t) {
  if (taps == 2) return tap == 0 ? 1.0 - t : t;
  const double a = -0.75;
  const Tensor d = tap <= 0 ? t + double(-tap) : double(tap) - t;
  if (tap == 0 || tap == 1) return ((a + 2) * d - (a + 3)) * d * d + 1.0;
  return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

// The sum over all combinations of neighbours along the axes; read(places) gives the pixels there.
template <class Read>
Tensor interpolated(const std::vector<Axis>& axes, int taps, Read read) {
  const int first = taps == 4 ? -1 : 0;
  int64_t combinations = 1;
  Tensors base, part;
  for (const Axis& axis : axes) {
    base.push_back(rlx::floor(axis.at));
    part.push_back(axis.at - base.back());
    combinations *= taps;
  }
  Tensor y;
  for (int64_t k = 0; k < combinations; ++k) {
    Tensors at;
    Tensor weight;
    int64_t rest = k;
    for (size_t i = 0; i < axes.size(); ++i) {
      const int tap = int(rest % taps) + first;
      rest /= taps;
      at.push_back(base[i] + double(tap));
      const Tensor w = tap_weight(taps, tap, part[i]);
      weight = weight.is_empty() ? w : weight * w;
    }
    const Tensor term = read(at) * weight.unsqueeze(2);
    y = y.is_empty() ? term : y + term;
  }
  return y;
}

Items grid_sample(Call& c) {
  const Tensor x = c.in(0), grid = c.in(1);
  Grid g{c.text("mode", c.opset() < 20 ? "bilinear" : "linear"), c.text("padding_mode", "zeros"),
         c.flag("align_corners")};
  if (g.mode == "bilinear") g.mode = "linear";
  if (g.mode == "bicubic") g.mode = "cubic";
  const Dims points(grid.shape().dims().begin() + 1, grid.shape().dims().end() - 1);
  const Dims extents(x.shape().dims().begin() + 2, x.shape().dims().end());
  const Tensor flat = grid.reshape({x.dim(0), product(points), x.rank() - 2});
  std::vector<Axis> axes;
  for (size_t i = 0; i < extents.size(); ++i)
    axes.push_back(axis_of(c, g, flat, int(i), extents[i], x.dtype()));
  const Tensor rows = pixel_rows(x);
  const auto read = [&](const Tensors& whole) {
    Tensors at;
    for (size_t i = 0; i < axes.size(); ++i)
      at.push_back(padded_place(g, whole[i], axes[i]).cast(DType::i64));
    return pixels_or_zero(c, rows, extents, at);
  };
  const auto nearest = [&] {
    Tensors whole;
    for (const Axis& axis : axes) whole.push_back(rlx::round(axis.at));
    return read(whole);
  };
  const Tensor y = g.mode == "nearest" ? nearest() : interpolated(axes, g.mode == "cubic" ? 4 : 2, read);
  Dims to{x.dim(0), x.dim(1)};
  to.insert(to.end(), points.begin(), points.end());
  return {y.transpose({0, 2, 1}).reshape(to)};
}

Items affine_grid(Call& c) {
  const Tensor theta = c.in(0);
  const auto size = c.known_ints(1, "the size of the picture");
  const bool align = c.flag("align_corners");
  const int axes = int(size.size()) - 2;
  if (axes != 2 && axes != 3) throw c.wrong("a picture of ", axes, " axes; it must have 2 or 3");
  int64_t points = 1;
  for (int i = 0; i < axes; ++i) {
    c.require_table({points, size[size_t(i) + 2]}, "the picture");
    points *= size[size_t(i) + 2];
  }
  // Columns x, y (, z), 1 of all places.
  std::vector<double> base;
  for (int64_t p = 0; p < points; ++p) {
    std::vector<double> at;
    int64_t rest = p;
    for (int i = axes - 1; i >= 0; --i) {
      const int64_t n = size[size_t(i) + 2], k = rest % n;
      rest /= n;
      at.push_back(align ? (n == 1 ? -1.0 : -1 + 2 * double(k) / double(n - 1))
                         : -1 + (2 * double(k) + 1) / double(n));
    }
    base.insert(base.end(), at.begin(), at.end());
    base.push_back(1);
  }
  const Tensor places = c.constant(Literal::reals(Shape(theta.dtype(), {1, points, axes + 1}), base));
  Dims to{size[0]};
  for (int i = 0; i < axes; ++i) to.push_back(size[size_t(i) + 2]);
  to.push_back(axes);
  return {rlx::matmul(places.expand({theta.dim(0), points, axes + 1}), theta.t()).reshape(to)};
}

// A convolution whose taps are moved by offsets and weighted by a mask.
Items deform_conv(Call& c) {
  const Tensor x = c.in(0), w = c.in(1), offset = c.in(2);
  std::vector<int64_t> kernel;
  for (int i = 2; i < w.rank(); ++i) kernel.push_back(w.dim(i).value());
  if (kernel.size() != 2) c.unsupported("a convolution with offsets over other than 2 axes");
  const WindowSpec s = read_window(c, x.shape(), c.integers("kernel_shape", kernel));
  const int64_t groups = c.integer("group", 1), parts = c.integer("offset_group", 1);
  const int64_t n = x.dim(0).value(), channels = x.dim(1).value(), h = x.dim(2).value(),
                wd = x.dim(3).value();
  const int64_t oh = offset.dim(2).value(), ow = offset.dim(3).value(), taps = kernel[0] * kernel[1],
                places = oh * ow;
  c.require_table({kernel[0], kernel[1], oh, ow}, "the grid of taps");
  // [n * parts, taps, 2, places]
  const Tensor moves = offset.reshape({n * parts, taps, 2, places});
  std::vector<double> base_y, base_x;
  for (int64_t t = 0; t < taps; ++t) {
    for (int64_t o = 0; o < places; ++o) {
      base_y.push_back(double(o / ow * s.stride[0] - s.low[0] + t / kernel[1] * s.dilation[0]));
      base_x.push_back(double(o % ow * s.stride[1] - s.low[1] + t % kernel[1] * s.dilation[1]));
    }
  }
  const auto at = [&](const std::vector<double>& base, int64_t k) {
    const Tensor move = moves.narrow(2, k, 1).reshape({n * parts, taps * places});
    return move + c.constant(Literal::reals(Shape(x.dtype(), {1, taps * places}), base));
  };
  const Tensor rows = pixel_rows(x.reshape({n * parts, channels / parts, h, wd}));
  Tensor columns = linear_sample(
      c, rows, {h, wd}, {at(base_y, 0), at(base_x, 1)});  // [n * parts, taps * places, channels / parts]
  if (c.has(4)) columns = columns * c.in(4).reshape({n * parts, taps * places, 1});
  const int64_t each = channels / groups, out = w.dim(0).value();
  const Tensor by_group = columns.reshape({n, parts, taps, places, channels / parts})
                              .transpose({0, 1, 4, 2, 3})
                              .reshape({n, groups, each * taps, places});
  const Tensor kernels = w.reshape({1, groups, out / groups, each * taps});
  Tensor y =
      rlx::matmul(kernels.expand({n, groups, out / groups, each * taps}), by_group).reshape({n, out, oh, ow});
  if (c.has(3)) y = y + c.in(3).reshape({1, out, 1, 1});
  return {y};
}

}  // namespace

std::span<const Entry> vision_entries() {
  static const std::vector<Entry> kEntries{
      {"AffineGrid", 20, affine_grid},
      {"DeformConv", 19, deform_conv},
      {"GridSample", 16, grid_sample},
      {"RoiAlign", 10, roi_align, BoundsRule::by_hand},
  };
  return kEntries;
}

}  // namespace rlx::onnx
