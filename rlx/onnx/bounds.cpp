#include "rlx/onnx/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rlx/lang/functions.h"
#include "rlx/lang/operators.h"

namespace rlx::onnx {

const Bound* bound_at(const Item& it, int axis) {
  const auto at =
      std::find_if(it.bounds.begin(), it.bounds.end(), [&](const Bound& b) { return b.axis == axis; });
  return at == it.bounds.end() ? nullptr : &*at;
}

void add_bound(Item& it, const Bound& b) {
  if (bound_at(it, b.axis) == nullptr) it.bounds.push_back(b);
}

void meet_elementwise(Call& c) {
  for (int i = 0; i < c.count(); ++i) {
    if (!c.has(i)) continue;
    for (const Bound& b : std::vector<Bound>(c.item(i).bounds)) {
      const int from_end = c.rank(i) - b.axis;
      std::optional<Size> least = Size(c.shape(i).dims()[size_t(b.axis)]);
      for (int k = 0; k < c.count() && least; ++k) {
        if (!c.has(k) || c.rank(k) < from_end) continue;
        const Dim d = c.shape(k).dims()[size_t(c.rank(k) - from_end)];
        if (d != Dim(1)) least = smaller(*least, Size(d));
      }
      if (!least || !least->dim()) continue;
      for (int k = 0; k < c.count(); ++k) {
        if (!c.has(k) || c.rank(k) < from_end) continue;
        const int axis = c.rank(k) - from_end;
        const Dim d = c.shape(k).dims()[size_t(axis)];
        if (d == Dim(1) || d == *least->dim()) continue;
        Item cut(c.in(k).narrow(axis, 0, *least->dim()));
        cut.bounds = c.item(k).bounds, cut.element = c.item(k).element, cut.sources = c.item(k).sources;
        c.replace(k, std::move(cut));
      }
    }
  }
}

std::vector<Bound> bounds_of(const std::vector<Size>& sizes) {
  std::vector<Bound> out;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].is_counted()) out.push_back({int(i), sizes[i].count().max(0)});
  }
  return out;
}

std::vector<Bound> bounds_without(const Item& it, const std::vector<int>& gone, bool keep) {
  std::vector<Bound> out;
  for (const Bound& b : it.bounds) {
    if (std::find(gone.begin(), gone.end(), b.axis) != gone.end()) continue;
    const auto before = std::count_if(gone.begin(), gone.end(), [&](int a) { return a < b.axis; });
    out.push_back({keep ? b.axis : b.axis - int(before), b.count});
  }
  return out;
}

Literal first_places(const Literal& x, int axis, int64_t count) {
  Dims dims = x.shape().dims();
  const AxisView v = axis_view(x.shape(), axis);
  dims[size_t(axis)] = count;
  Literal out = Literal::zeros(Shape(x.dtype(), dims));
  const size_t inner = size_t(v.inner) * dtype_size(x.dtype());
  for (int64_t o = 0; o < v.outer; ++o) {
    const auto from = x.bytes().subspan(size_t(o * v.length) * inner, size_t(count) * inner);
    std::copy(from.begin(), from.end(), out.mutable_bytes().begin() + ptrdiff_t(size_t(o * count) * inner));
  }
  return out;
}

Tensor meant_places(const Call& c, Dim n, int axis, int rank, const Tensor& count) {
  Dims dims(size_t(rank), 1);
  dims[size_t(axis)] = n;
  return c.iota(Shape(DType::i64, {n}), 0).reshape(dims) < count;
}

Tensor masked(const Call& c, int i, const std::vector<int>& axes, const Literal& fill) {
  Tensor x = c.in(i);
  for (const int axis : axes) {
    if (const Bound* b = bound_at(c.item(i), axis))
      x = rlx::where(meant_places(c, x.dim(axis), axis, x.rank(), b->count), x, c.constant(fill));
  }
  return x;
}

Tensor masked(const Call& c, int i, const std::vector<int>& axes, double fill) {
  return masked(c, i, axes, Literal::scalar(c.dtype(i), fill));
}

Literal lowest(DType t) {
  if (is_float(t)) return Literal::scalar(t, -std::numeric_limits<double>::infinity());
  if (t == DType::i64) return Literal::of<int64_t>({}, {std::numeric_limits<int64_t>::min()});
  if (t == DType::bool_ || t == DType::u8 || t == DType::u32) return Literal::scalar(t, 0);
  return Literal::scalar(t, -std::ldexp(1.0, int(dtype_size(t)) * 8 - 1));
}

Literal highest(DType t) {
  if (is_float(t)) return Literal::scalar(t, std::numeric_limits<double>::infinity());
  if (t == DType::i64) return Literal::of<int64_t>({}, {std::numeric_limits<int64_t>::max()});
  if (t == DType::bool_) return Literal::scalar(t, 1);
  const bool is_signed = t != DType::u8 && t != DType::u32;
  return Literal::scalar(t, std::ldexp(1.0, int(dtype_size(t)) * 8 - (is_signed ? 1 : 0)) - 1);
}

Tensor count_of(const Tensor& flags) { return flags.cast(DType::i64).sum(); }

Tensor chosen_first(const Tensor& flags) {
  return rlx::argsort(flags.cast(DType::i32), {.axis = 0, .descending = true}).cast(DType::i64);
}

Item bounded_rows(const Call& c, const Tensor& x, const Tensor& at, const Tensor& count, int axis) {
  const Tensor rows = rlx::gather(x, at, {.axis = axis});
  Item out(rlx::where(meant_places(c, rows.dim(axis), axis, rows.rank(), count), rows, rows.zeros_like()));
  out.bounds.push_back({axis, count});
  return out;
}

}  // namespace rlx::onnx
