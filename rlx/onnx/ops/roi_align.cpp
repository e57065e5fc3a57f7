#include "rlx/onnx/ops/roi_align.h"

#include "rlx/lang/control.h"
#include "rlx/lang/functions.h"
#include "rlx/lang/operators.h"
#include "rlx/onnx/bounds.h"
#include "rlx/onnx/sample.h"

namespace rlx::onnx {
namespace {

// Maps, and the box and grid of each region; places and extents of regions are [boxes, 1].
struct Regions {
  bool largest = false;
  Tensor pixels, map, height, width;  // [maps * h * w, channels]; the first row of each map; extents of a map
  Tensor y, x, box_height, box_width;
  Dim boxes = 0;
  int64_t rows = 1, columns = 1;
};

Regions read_regions(const Call& c) {
  const Tensor x = c.in(0), rois = c.in(1);
  Regions r;
  const std::string mode = c.text("mode", "avg");
  if (mode != "avg" && mode != "max") throw c.wrong("mode is '", mode, "'; it must be avg or max");
  r.largest = mode == "max";
  const bool half = c.text("coordinate_transformation_mode",
                           c.opset() < 16 ? "output_half_pixel" : "half_pixel") == "half_pixel";
  r.rows = c.integer("output_height", 1), r.columns = c.integer("output_width", 1);
  if (r.rows < 1 || r.columns < 1) throw c.wrong("an output of ", r.rows, " by ", r.columns);
  const double scale = c.real("spatial_scale", 1), offset = half ? 0.5 : 0;
  const auto edge = [&](int64_t k) { return rois.narrow(1, k, 1) * scale - offset; };
  r.boxes = rois.dim(0);
  r.x = edge(0), r.y = edge(1);
  r.box_width = edge(2) - r.x, r.box_height = edge(3) - r.y;
  if (!half) r.box_width = r.box_width.max(1.0), r.box_height = r.box_height.max(1.0);
  r.pixels = pixel_rows(x).reshape({x.dim(0) * x.dim(2) * x.dim(3), x.dim(1)});
  r.map = c.in(2).cast(DType::i64).reshape({r.boxes, 1}) * c.dim_value(x.dim(2) * x.dim(3));
  r.height = c.dim_value(x.dim(2), x.dtype()), r.width = c.dim_value(x.dim(3), x.dtype());
  return r;
}

// Pixels at places [boxes, rows] and [boxes, columns]: [boxes, rows * columns, channels]. Far outside they are 0.
Tensor sampled(const Regions& r, const Tensor& at_rows, const Tensor& at_columns, ops::IndexMode mode) {
  const Dim rows = at_rows.dim(1), columns = at_columns.dim(1), places = rows * columns;
  const Tensor ys = at_rows.unsqueeze(2).expand({r.boxes, rows, columns}).reshape({r.boxes, places});
  const Tensor xs = at_columns.unsqueeze(1).expand({r.boxes, rows, columns}).reshape({r.boxes, places});
  const Tensor outside =
      rlx::logical_or(rlx::logical_or(ys<-1.0, ys> r.height), rlx::logical_or(xs<-1.0, xs> r.width));
  const Tensor last_y = r.height - 1.0, last_x = r.width - 1.0;
  const Tensor yc = ys.max(0.0).min(last_y), xc = xs.max(0.0).min(last_x);
  const Tensor y0 = rlx::floor(yc), x0 = rlx::floor(xc), fy = yc - y0, fx = xc - x0;
  Tensor value;
  for (int corner = 0; corner < 4; ++corner) {
    const bool down = (corner & 1) != 0, right = (corner & 2) != 0;
    const Tensor at_y = (down ? (y0 + 1.0).min(last_y) : y0), at_x = (right ? (x0 + 1.0).min(last_x) : x0);
    const Tensor place = at_y.cast(DType::i64) * r.width.cast(DType::i64) + at_x.cast(DType::i64) + r.map;
    const Tensor weight = (down ? fy : 1.0 - fy) * (right ? fx : 1.0 - fx);
    const Tensor term = rlx::gather(r.pixels, place, {.axis = 0, .mode = mode}) * weight.unsqueeze(2);
    value = value.is_empty() ? term : r.largest ? value.max(term) : value + term;
  }
  return outside.unsqueeze(2).where(0.0, value);
}

// As many places in each cell of every box.
Tensor pooled_evenly(const Call& c, const Regions& r, int64_t ratio, ops::IndexMode mode) {
  const auto places = [&](const Tensor& start, const Tensor& size, int64_t out) {
    std::vector<double> at;
    c.require_table({out, ratio}, "the grid of a box");
    for (int64_t i = 0; i < out * ratio; ++i) at.push_back((double(i) + 0.5) / double(out * ratio));
    return start + size * c.constant(Literal::reals(Shape(start.dtype(), {1, out * ratio}), at));
  };
  const Tensor value =
      sampled(r, places(r.y, r.box_height, r.rows), places(r.x, r.box_width, r.columns), mode);
  const Tensor cells = value.reshape({r.boxes, r.rows, ratio, r.columns, ratio, value.dim(2)});
  return cells.reduce(r.largest ? ops::ReduceOp::max : ops::ReduceOp::mean, {2, 4});
}

// A place for about every pixel, so that larger boxes have more of them: one place of each cell in a step.
Tensor pooled_by_size(const Call& c, const Regions& r, ops::IndexMode mode) {
  const DType type = r.pixels.dtype();
  const auto whole = [](const Tensor& t) { return rlx::ceil(t).max(0.0); };
  const Tensor high = whole(r.box_height / double(r.rows)), wide = whole(r.box_width / double(r.columns));
  const Tensor count = high * wide, some_high = high.max(1.0), some_wide = wide.max(1.0);  // [boxes, 1]
  const auto cells = [&](int64_t n) { return c.iota(Shape(type, {1, n}), 1); };
  const Tensor row = cells(r.rows), column = cells(r.columns);
  const Tensor steps = count.reduce(ops::ReduceOp::max).max(0.0);
  const Tensor none = c.full({r.boxes, r.rows * r.columns, r.pixels.dim(1)}, type, 0);
  const Tensors sums = rlx::while_loop(
      Tensors{c.scalar(type, 0), none}, {}, [&](const Tensors& args) { return args[0] < steps; },
      [&](const Tensors& args) {
        const Tensor &k = args[0], &sum = args[1];
        const Tensor down = rlx::floor(k / some_wide), right = k - down * some_wide;
        const Tensor ys = r.y + r.box_height / double(r.rows) * (row + (down + 0.5) / some_high);
        const Tensor xs = r.x + r.box_width / double(r.columns) * (column + (right + 0.5) / some_wide);
        const Tensor value = sampled(r, ys, xs, mode);
        const Tensor next = r.largest ? (k < 1.0).where(value, sum.max(value)) : sum + value;
        return Tensors{k + 1.0, rlx::where((k < count).unsqueeze(2), next, sum)};
      });
  const Tensor y = r.largest ? sums[1] : sums[1] / count.max(1.0).unsqueeze(2);
  return y.reshape({r.boxes, r.rows, r.columns, y.dim(2)});
}

}  // namespace

Items roi_align(Call& c) {
  const Regions r = read_regions(c);
  const int64_t ratio = c.integer("sampling_ratio", 0);
  const Bound* boxes = bound_at(c.item(1), 0);
  if (boxes == nullptr) boxes = bound_at(c.item(2), 0);
  if (!c.item(0).bounds.empty()) c.unsupported("a number of maps that depends on data");
  // Boxes beyond the count may name any map.
  const auto mode = boxes == nullptr ? ops::IndexMode::error : ops::IndexMode::clamp;
  const Tensor y = ratio > 0 ? pooled_evenly(c, r, ratio, mode) : pooled_by_size(c, r, mode);
  Item out(y.transpose({0, 3, 1, 2}));
  if (boxes != nullptr) out.bounds.push_back({0, boxes->count});
  return {std::move(out)};
}

}  // namespace rlx::onnx
