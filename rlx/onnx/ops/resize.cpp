// Resampling in all modes: per axis, each place of the result is a weighted sum of a few places of the operand.
#include <algorithm>
#include <cmath>

#include "rlx/lang/operators.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {
namespace {

struct Settings {
  std::string mode, coordinates, rounding;
  double cubic = -0.75, extrapolation = 0;
  bool exclude_outside = false, antialias = false;
};

// One axis of a resize; `start` and `end` cut the operand in tf_crop_and_resize.
struct Axis {
  int64_t in = 0, out = 0;
  float scale = 1, start = 0, end = 1;
};

// Where place o of the result lies on the operand. In f32, as exporters' factors are: 3 / 0.6 is 5 there, and in wider types
// of the same factor a little less, which is another element.
float place(const Settings& s, const Axis& a, int64_t o) {
  const float x = float(o), in = float(a.in), out = float(a.out);
  const float length = a.scale * in;
  if (s.coordinates == "align_corners") return length == 1 ? 0 : x * (in - 1) / (length - 1);
  if (s.coordinates == "asymmetric") return x / a.scale;
  if (s.coordinates == "tf_half_pixel_for_nn") return (x + 0.5f) / a.scale;
  if (s.coordinates == "pytorch_half_pixel" && a.out == 1) return 0;
  if (s.coordinates == "tf_crop_and_resize") {
    return a.out > 1 ? a.start * (in - 1) + x * (a.end - a.start) * (in - 1) / (out - 1)
                     : 0.5f * (a.start + a.end) * (in - 1);
  }
  float offset = 0;
  if (s.coordinates == "half_pixel_symmetric") offset = in / 2 * (1 - out / length);
  return offset + (x + 0.5f) / a.scale - 0.5f;
}

int64_t nearest(const Settings& s, double x) {
  if (s.rounding == "floor") return int64_t(std::floor(x));
  if (s.rounding == "ceil") return int64_t(std::ceil(x));
  const bool tie = x - std::floor(x) == 0.5;
  if (tie) return int64_t(s.rounding == "round_prefer_ceil" ? std::ceil(x) : std::floor(x));
  return int64_t(std::round(x));
}

double cubic_weight(double t, double a) {
  t = std::fabs(t);
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  if (t < 2) return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
  return 0;
}

struct Taps {
  std::vector<int64_t> first;               // per place of the result
  std::vector<std::vector<double>> weight;  // by tap, then by place
  std::vector<bool> outside;
};

Taps taps_of(const Settings& s, const Axis& a) {
  const bool cubic = s.mode == "cubic";
  const double squeeze = s.antialias ? std::min(double(a.scale), 1.0) : 1.0;
  const int reach = cubic ? 2 : 1;
  const int64_t start = int64_t(std::floor(-double(reach) / squeeze)) + 1, count = 2 * (1 - start);
  Taps t;
  t.weight.assign(size_t(count), std::vector<double>(size_t(a.out), 0.0));
  for (int64_t o = 0; o < a.out; ++o) {
    const double x = place(s, a, o), base = std::floor(x);
    t.first.push_back(int64_t(base) + start);
    t.outside.push_back(x < 0 || x > double(a.in - 1));
    double sum = 0;
    for (int64_t k = 0; k < count; ++k) {
      const double d = (double(start + k) - (x - base)) * squeeze;
      double w = cubic ? cubic_weight(d, s.cubic) : std::max(0.0, 1 - std::fabs(d));
      const int64_t at = t.first.back() + k;
      if (s.exclude_outside && (at < 0 || at >= a.in)) w = 0;
      t.weight[size_t(k)][size_t(o)] = w;
      sum += w;
    }
    for (int64_t k = 0; k < count; ++k) t.weight[size_t(k)][size_t(o)] /= sum;
  }
  return t;
}

Tensor along(const Call& c, const Tensor& x, int axis, const std::vector<double>& values, DType type) {
  Dims dims(size_t(x.rank()), 1);
  dims[size_t(axis)] = int64_t(values.size());
  return c.constant(Literal::reals(Shape(type, dims), values));
}

Tensor resampled(const Call& c, const Tensor& x, int axis, const Settings& s, const Axis& a) {
  // With antialias a sample reaches over in / out elements.
  const double reach = s.antialias && a.scale > 0 ? 8 / std::min(double(a.scale), 1.0) : 4;
  c.require_table({a.out, int64_t(std::min(reach, 1e18))}, "the new extent");
  const auto picked = [&](const std::vector<int64_t>& places) {
    std::vector<int64_t> inside;
    for (const int64_t p : places) inside.push_back(std::clamp<int64_t>(p, 0, a.in - 1));
    return rlx::gather(x, c.constant(Literal::of<int64_t>({a.out}, inside)), {.axis = axis});
  };
  Tensor y;
  std::vector<double> outside;
  if (s.mode == "nearest") {
    std::vector<int64_t> places;
    for (int64_t o = 0; o < a.out; ++o) {
      const double p = place(s, a, o);
      places.push_back(nearest(s, p));
      outside.push_back(p < 0 || p > double(a.in - 1));
    }
    y = picked(places);
  } else {
    const Taps t = taps_of(s, a);
    for (size_t k = 0; k < t.weight.size(); ++k) {
      if (std::all_of(t.weight[k].begin(), t.weight[k].end(), [](double w) { return w == 0; })) continue;
      std::vector<int64_t> places;
      for (const int64_t f : t.first) places.push_back(f + int64_t(k));
      const Tensor part = picked(places) * along(c, x, axis, t.weight[k], x.dtype());
      y = y.is_empty() ? part : y + part;
    }
    outside.assign(t.outside.begin(), t.outside.end());
  }
  if (s.coordinates == "tf_crop_and_resize" &&
      std::any_of(outside.begin(), outside.end(), [](double v) { return v != 0; }))
    y = rlx::where(along(c, x, axis, outside, DType::bool_), c.scalar(y.dtype(), s.extrapolation), y);
  return y;
}

Settings read_settings(const Call& c) {
  Settings s;
  s.mode = c.text("mode", "nearest");
  s.coordinates = c.text("coordinate_transformation_mode", "half_pixel");
  s.rounding = c.text("nearest_mode", "round_prefer_floor");
  s.cubic = c.real("cubic_coeff_a", -0.75);
  s.extrapolation = c.real("extrapolation_value", 0);
  s.exclude_outside = c.flag("exclude_outside");
  s.antialias = c.flag("antialias");
  if (s.mode != "nearest" && s.mode != "linear" && s.mode != "cubic") throw c.wrong("mode is '", s.mode, "'");
  return s;
}

// The library's own operator, for symbolic sizes and for speed: whole ratios on the last axes.
std::optional<Tensor> plain_resize(const Tensor& x, const Settings& s, const std::vector<int>& axes,
                                   const Dims& sizes, bool exact) {
  const bool linear = s.mode == "linear" && s.coordinates == "half_pixel" && !s.antialias;
  const bool pytorch = s.mode == "linear" && s.coordinates == "pytorch_half_pixel" && !s.antialias;
  const bool corners = s.mode == "linear" && s.coordinates == "align_corners";
  const bool repeat = s.mode == "nearest" && s.coordinates == "asymmetric" && s.rounding == "floor";
  if (!exact || (!linear && !corners && !repeat && !pytorch) || !is_float(x.dtype())) return std::nullopt;
  // A single element lies elsewhere in pytorch_half_pixel; twice a size is never one.
  for (size_t i = 0; pytorch && i < axes.size(); ++i) {
    if (sizes[i] == Dim(1) || (sizes[i].is_symbolic() && !exact_div(sizes[i], 2))) return std::nullopt;
  }
  if (axes.empty() || axes.size() > 3 || axes.back() != x.rank() - 1 ||
      axes.front() != x.rank() - int(axes.size()))
    return std::nullopt;
  return rlx::resize(x, {.mode = repeat ? ops::ResizeMode::nearest : ops::ResizeMode::linear,
                         .size = sizes,
                         .align_corners = corners});
}

// A size times a factor, rounded down; nothing where that has no expression.
std::optional<Dim> scaled(Dim n, double factor, bool& exact) {
  if (n.is_static()) {
    // 0.7 in f32 is less than 0.7, yet ten times it is 7 there.
    const double v = std::floor(float(n.value()) * float(factor));
    exact = exact && double(n.value()) * factor == v;
    return Dim(int64_t(v));
  }
  if (factor == std::floor(factor) && factor >= 1) return n * Dim(int64_t(factor));
  exact = false;
  return std::nullopt;
}

Items resize_to(const Call& c, const Settings& s, std::vector<int> axes, const std::vector<double>& scales,
                std::optional<Dims> sizes, const std::vector<double>& roi) {
  Tensor x = c.in(0);
  bool exact = true;
  Dims to;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (sizes) {
      to.push_back((*sizes)[i]);
    } else {
      const auto d = scaled(x.dim(axes[i]), scales[i], exact);
      if (!d)
        throw c.wrong("a factor of ", scales[i], " for ", x.dim(axes[i]),
                      " elements; give values to the import");
      to.push_back(*d);
    }
  }
  // Axes that keep their size take no part.
  std::vector<int> moving;
  Dims moving_to;
  for (size_t i = 0; i < axes.size(); ++i) {
    const bool stays =
        to[i] == x.dim(axes[i]) && (sizes || scales[i] == 1) && s.coordinates != "tf_crop_and_resize";
    if (stays) continue;
    moving.push_back(axes[i]);
    moving_to.push_back(to[i]);
  }
  if (moving.empty()) return {x};
  if (std::find(to.begin(), to.end(), Dim(0)) != to.end()) {
    Dims dims = x.shape().dims();
    for (size_t i = 0; i < axes.size(); ++i) dims[size_t(axes[i])] = to[i];
    return {c.full(dims, x.dtype(), 0)};
  }
  if (std::is_sorted(moving.begin(), moving.end())) {
    if (auto y = plain_resize(x, s, moving, moving_to, exact)) return {*y};
  }
  const DType type = x.dtype();
  const bool whole = !is_float(type) && s.mode != "nearest";
  if (whole) x = x.cast(DType::f32);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (std::find(moving.begin(), moving.end(), axes[i]) == moving.end()) continue;
    Axis a{x.dim(axes[i]).value(), to[i].value()};
    a.scale = sizes ? float(a.out) / float(a.in) : float(scales[i]);
    if (a.in == 0) throw c.wrong("axis ", axes[i], " goes from ", a.in, " to ", a.out);
    if (!roi.empty()) a.start = float(roi[i]), a.end = float(roi[i + axes.size()]);
    x = resampled(c, x, axes[i], s, a);
  }
  return {whole ? rlx::round(x).cast(type) : x};
}

Items resize(Call& c) {
  const Settings s = read_settings(c);
  const int rank = c.rank(0);
  std::vector<int> axes;
  for (const int64_t a : c.integers("axes")) axes.push_back(c.axis(a, rank));
  if (axes.empty()) {
    for (int i = 0; i < rank; ++i) axes.push_back(i);
  }
  const bool old = c.opset() < 11;
  const int scale_at = old ? 1 : 2;
  std::vector<double> roi;
  if (!old && s.coordinates == "tf_crop_and_resize" && c.has(1)) roi = c.known(1, "the region").to_reals();
  if (!roi.empty() && roi.size() != 2 * axes.size())
    throw c.wrong(roi.size(), " entries of the region for ", axes.size(), " axes");
  const std::string policy = c.text("keep_aspect_ratio_policy", "stretch");
  if (!old && c.has(3) && c.shape(3).num_elements() != Dim(0)) {
    Dims sizes = c.dims(3, "the new sizes");
    if (sizes.size() != axes.size()) throw c.wrong(sizes.size(), " sizes for ", axes.size(), " axes");
    if (policy == "stretch") return resize_to(c, s, axes, {}, sizes, roi);
    double factor = policy == "not_larger" ? 1e300 : 0;
    for (size_t i = 0; i < axes.size(); ++i) {
      const double f = double(sizes[i].value()) / double(c.shape(0).dim(axes[i]).value());
      factor = policy == "not_larger" ? std::min(factor, f) : std::max(factor, f);
    }
    Settings kept = s;
    Dims to;
    for (size_t i = 0; i < axes.size(); ++i)
      to.push_back(int64_t(std::floor(factor * double(c.shape(0).dim(axes[i]).value()) + 0.5)));
    // The factor, not the rounded sizes, places the elements.
    Tensor x = c.in(0);
    for (size_t i = 0; i < axes.size(); ++i)
      x = resampled(c, x, axes[i], kept, Axis{x.dim(axes[i]).value(), to[i].value(), float(factor)});
    return {x};
  }
  const std::vector<double> scales = c.known(scale_at, "the factors").to_reals();
  if (scales.size() != axes.size()) throw c.wrong(scales.size(), " factors for ", axes.size(), " axes");
  Settings used = s;
  if (old) used.coordinates = "asymmetric", used.rounding = "floor";
  return resize_to(c, used, axes, scales, std::nullopt, roi);
}

Items upsample(Call& c) {
  Settings s;
  s.mode = c.text("mode", "nearest");
  s.coordinates = "asymmetric", s.rounding = "floor";
  std::vector<double> scales;
  if (c.opset() < 9) {
    for (const float v : c.reals("scales")) scales.push_back(v);
  } else {
    scales = c.known(1, "the factors").to_reals();
  }
  std::vector<int> axes;
  for (int i = 0; i < c.rank(0); ++i) axes.push_back(i);
  if (scales.size() != axes.size()) throw c.wrong(scales.size(), " factors for ", axes.size(), " axes");
  return resize_to(c, s, axes, scales, std::nullopt, {});
}

}  // namespace

std::span<const Entry> resize_entries() {
  static const std::vector<Entry> kEntries{
      {"Resize", 10, resize, BoundsRule::rows},
      {"Upsample", 7, upsample, BoundsRule::rows},
  };
  return kEntries;
}

}  // namespace rlx::onnx
