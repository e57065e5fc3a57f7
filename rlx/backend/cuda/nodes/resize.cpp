// Resampling of the last axes and its transpose: a thread for each element of the result, sums in f64.
#include "rlx/ops/conv/resize.h"

#include "rlx/backend/cuda/kernels/complex.h"
#include "rlx/backend/cuda/nodes/element_kernel.h"

namespace rlx::cuda {
namespace {

// Position o of an axis of `to` elements is (1 - part) x[low] + part x[high] of one of `from`.
constexpr char kTaps[] = R"cuda(
struct Tap { i64 low, high; f64 part; };
inline Tap nearest(i64 o, i64 from, i64 to) { return {o * from / to, o * from / to, 0.0}; }
inline Tap between(f64 at, i64 from) {
  i64 low = i64(floor(at));
  low = low < from - 1 ? low : from - 1;
  return {low, low + 1 < from - 1 ? low + 1 : from - 1, at - f64(low)};
}
inline Tap linear(i64 o, i64 from, i64 to) {
  const f64 at = (f64(o) + 0.5) * f64(from) / f64(to) - 0.5;
  return between(at > 0 ? at : 0.0, from);
}
inline Tap corners(i64 o, i64 from, i64 to) { return between(to > 1 ? f64(o) * f64(from - 1) / f64(to - 1) : 0.0, from); }

// The weight with which x[i] enters position o.
inline f64 weight(Tap t, i64 i) { return (t.low == i ? 1 - t.part : 0.0) + (t.high == i ? t.part : 0.0); }
// Positions that x[i] may enter lie among these: those between i - 1 and i + 1, with one to spare for rounding. The rule rises with o.
struct Range { i64 first, behind; };
inline Range near(f64 first, f64 last, i64 i, i64 from, i64 to) {
  i64 a = i64(floor(first)) - 1, b = i64(ceil(last)) + 2;
  a = i == 0 || a < 0 ? 0 : a;
  b = i == from - 1 || b > to ? to : b;
  return {a, b};
}
inline Range nearest_users(i64 i, i64 from, i64 to) {
  return {(i * to + from - 1) / from, ((i + 1) * to + from - 1) / from};
}
inline Range linear_users(i64 i, i64 from, i64 to) {
  const f64 step = f64(to) / f64(from);
  return near((f64(i) - 0.5) * step - 0.5, (f64(i) + 1.5) * step - 0.5, i, from, to);
}
inline Range corners_users(i64 i, i64 from, i64 to) {
  if (from == 1 || to == 1) return {0, i == 0 || from == 1 ? to : 0};
  const f64 step = f64(to - 1) / f64(from - 1);
  return near(f64(i - 1) * step, f64(i + 1) * step, i, from, to);
}
)cuda";

Support accepts(const Request& r) {
  if (!r.in[0].is_row_major()) return Support::no("operand 0 is strided");
  return Support::yes();
}

struct ResizeNumbers {
  std::string_view memory, wide;
  std::string read, zero, add, write;
};
/// How numbers are read, summed with weights `w` and written.
ResizeNumbers numbers_of(DType t) {
  if (is_complex(t))
    return {"c64", "c128", "as_c128(", "c128{}", "all = {all.x + w * v.x, all.y + w * v.y};", "all"};
  const bool narrow = t == DType::f16 || t == DType::bf16;
  return {memory_type(t), "f64", "as_f64(", "0.0", "all += w * v;", narrow ? "f32(all)" : "all"};
}

std::string_view rule_of(ops::ResizeMode mode, bool align_corners) {
  return mode == ops::ResizeMode::nearest ? "nearest" : align_corners ? "corners" : "linear";
}

/// Loops over what one element of the result is made of. `loop(i, axis)` gives the head of the loop along resized axis i, with weight
/// w<i> and place p<i> of the operand known behind it.
template <class Loop>
std::unique_ptr<Step> prepare_with(const Request& r, size_t axes, Loop loop) {
  const Shape &x = r.in[0].shape, &y = r.out[0].shape;
  const ResizeNumbers t = numbers_of(y.dtype());
  const int first = y.rank() - int(axes);
  std::string body = cat("  ", t.wide, " all = ", t.zero, ";\n"), weight = "1.0", place, ends;
  const std::vector<int64_t> strides = row_major_strides(x.dims());
  for (int axis = 0; axis < y.rank(); ++axis) {
    const int i = axis - first;
    if (i >= 0) {
      body += loop(i, axis);
      weight += cat(" * w", i);
      ends += "}";
    }
    place +=
        cat(axis ? " + " : "", i < 0 ? cat("i", axis) : cat("p", i), " * i64(", strides[size_t(axis)], ")");
  }
  // Nothing times an infinite neighbour.
  body += cat("  const f64 w = ", weight, ";\n  if (w != 0) {\n    const auto v = ", t.read, "x[", place,
              "]);\n    ", t.add, "\n  }\n  ", ends, "\n  put(y[e], ", t.write, ");\n");
  Source s = element_kernel("resize", sizes_of(y), cat("const ", t.memory, "* x, ", t.memory, "* y"), body);
  s.text = cat(is_complex(y.dtype()) ? kComplexNumbers : "", kTaps, s.text);
  return element_step(device_of(r), s, 1, 1, y.elements(), "a thread for each result");
}

std::unique_ptr<Step> prepare(const Request& r) {
  const auto& a = r.node.as<ops::Resize>();
  const Shape &x = r.in[0].shape, &y = r.out[0].shape;
  const std::string_view rule = rule_of(a.mode, a.align_corners);
  return prepare_with(r, a.size.size(), [&](int i, int axis) {
    return cat("  const Tap t", i, " = ", rule, "(i", axis, ", ", x.dim(axis).value(), ", ",
               y.dim(axis).value(), ");\n  for (int side", i, " = 0; side", i, " < 2; ++side", i,
               ") {\n  const f64 w", i, " = side", i, " ? t", i, ".part : 1 - t", i, ".part;\n  const i64 p",
               i, " = side", i, " ? t", i, ".high : t", i, ".low;\n");
  });
}

std::unique_ptr<Step> prepare_backward(const Request& r) {
  const auto& a = r.node.as<ops::ResizeBackward>();
  const Shape &dy = r.in[0].shape, &dx = r.out[0].shape;
  const std::string_view rule = rule_of(a.mode, a.align_corners);
  return prepare_with(r, a.size.size(), [&](int i, int axis) {
    const std::string sizes = cat(dx.dim(axis).value(), ", ", dy.dim(axis).value());
    return cat("  const Range u", i, " = ", rule, "_users(i", axis, ", ", sizes, ");\n  for (i64 p", i,
               " = u", i, ".first; p", i, " < u", i, ".behind; ++p", i, ") {\n  const f64 w", i, " = weight(",
               rule, "(p", i, ", ", sizes, "), i", axis, ");\n");
  });
}

}  // namespace

void add_resize(KernelTable& table) {
  table.add<ops::Resize>({"resize", accepts, prepare});
  table.add<ops::ResizeBackward>({"resize_backward", accepts, prepare_backward});
}

}  // namespace rlx::cuda
