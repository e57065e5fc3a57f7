// Boxes of tensors and borders around them.
#include <algorithm>
#include <limits>

#include "rlx/lang/operators.h"
#include "rlx/onnx/bounds.h"
#include "rlx/onnx/follow.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {
namespace {

// The part start:end:step of one axis.
struct Part {
  Dim start = 0, limit = 0;
  int64_t step = 1;
  bool flip = false;
};

// Numbers from here on mean the end of the axis in the direction of the slice, from -kFar down its beginning: exporters write
// the largest numbers of 32 or of 64 bits.
constexpr int64_t kFar = std::numeric_limits<int32_t>::max();

bool is_far_ahead(const Size& s) { return s.number() && *s.number() >= kFar; }
bool is_far_back(const Size& s) { return s.number() && *s.number() <= -kFar; }

// A place on an axis of size n, counted from the end when it is negative. Numbers are cut to the axis where that can be
// decided; symbolic places are taken to lie inside, which running the graph checks.
Dim place(const Call& c, const Size& at, Dim n, int64_t least, Dim most) {
  Size s = is_far_ahead(at) ? Size(most) : is_far_back(at) ? Size(least) : at;
  if (s.number() && *s.number() < 0) {
    const auto from_end = plus(Size(n), s);
    if (!from_end) throw c.wrong("place ", *s.number(), " of an axis of size ", n);
    s = *from_end;
  }
  if (s.number() && *s.number() < least) s = Size(least);
  if (const auto beyond = less(Size(most), s); beyond && *beyond) s = Size(most);
  const auto d = s.dim();
  if (!d) throw c.wrong("a place of ", *s.number());
  return *d;
}

Part part_of(const Call& c, const Size& start, const Size& end, int64_t step, Dim n) {
  if (step == 0) throw c.wrong("a step is 0");
  if (step > 0) {
    Part p{place(c, start, n, 0, n), place(c, end, n, 0, n), step, false};
    if (const auto empty = less(Size(p.limit), Size(p.start)); empty && *empty) p.limit = p.start;
    return p;
  }
  // Backwards: the axis is reversed, and places count from its other end. A slice begins at an element that there is.
  const Dim most = n.is_static() ? Dim(std::max<int64_t>(0, n.value() - 1)) : n - Dim(1);
  const auto mirrored = [&](const Size& at, bool is_end) -> Dim {
    const Dim last = is_end ? n : most;
    if (is_far_back(at)) return last;
    if (is_far_ahead(at)) return is_end ? n : Dim(0);
    if (at.number() && *at.number() < 0) {
      const int64_t k = -*at.number() - 1;  // -1 is the first of the reversed axis
      if (n.is_static()) return Dim(std::min(k, last.value()));
      return is_end || k == 0 ? Dim(k) : min(Dim(k), max(n, Dim(1)) - Dim(1));
    }
    if (n.is_static() && at.number()) return Dim(std::max<int64_t>(0, n.value() - 1 - *at.number()));
    const auto d = minus(Size(n - Dim(1)), at);
    if (!d || !d->dim())
      throw c.wrong("a slice backwards ", is_end ? "to" : "from",
                    " a symbolic place; give values to the import");
    return *d->dim();
  };
  Part p{mirrored(start, false), mirrored(end, true), -step, true};
  if (const auto empty = less(Size(p.limit), Size(p.start)); empty && *empty) p.limit = p.start;
  return p;
}

// Part of an axis where data decides its size, or a place: read one by one.
Item counted_part(const Call& c, const Item& in, int axis, const Size& start, const Size& end, int64_t step) {
  if (step == 0) throw c.wrong("a step is 0");
  const Tensor x = c.tensor_of(in);
  const Dim n = x.dim(axis);
  const Bound* b = bound_at(in, axis);
  const Tensor size = b == nullptr ? c.dim_value(n) : b->count;
  const Tensor least = c.scalar(DType::i64, step > 0 ? 0 : -1), most = step > 0 ? size : size - 1;
  const auto inside = [&](const Size& at, bool is_end) {
    if (is_far_ahead(at)) return is_end && step < 0 ? least : most;
    if (is_far_back(at)) return is_end ? least : c.scalar(DType::i64, 0);
    const Tensor place = value_of(c.graph(), at);
    const Tensor from_start = (place < 0).where(place + size, place);
    // A place to start from is one that there is.
    return from_start.max(is_end ? least : c.scalar(DType::i64, 0)).min(most);
  };
  const Tensor first = inside(start, false), last = inside(end, true);
  const int64_t stride = step > 0 ? step : -step;
  const Tensor length = step > 0 ? last - first : first - last;
  const Tensor count = rlx::div((length + double(stride - 1)).max(0), c.scalar(DType::i64, double(stride)));
  // As many as there can be: from the start on, or up to the end of the axis.
  std::optional<Size> room = Size(n);
  if (step > 0 && start.number() && *start.number() > 0) room = larger(*minus(*room, start), Size(0));
  if (step > 0 && start.number() && *start.number() < 0) room = smaller(*room, Size(-*start.number()));
  if (step > 0 && end.number() && *end.number() >= 0 && room) room = smaller(*room, end);
  if (step > 0 && end.is_counted() && !end.may_be_negative() && room) room = smaller(*room, Size(end.most()));
  const Dim places = room && room->dim() ? ceildiv(*room->dim(), stride) : n;
  const Tensor steps = c.iota(Shape(DType::i64, {places}), 0);
  const Tensor at = step == 1 ? steps + first : steps * double(step) + first;
  Item out(start.number() == 0 && step == 1
               ? x.narrow(axis, 0, places)
               : rlx::gather(x, at, {.axis = axis, .mode = ops::IndexMode::clamp}));
  out.bounds.push_back({axis, count});
  for (const Bound& other : in.bounds) add_bound(out, other);
  return out;
}

Items slice(Call& c) {
  Tensor x = c.in(0);
  std::vector<Size> starts, ends;
  std::vector<int64_t> axes, steps;
  if (c.opset() < 10) {
    for (const int64_t v : c.integers("starts")) starts.emplace_back(v);
    for (const int64_t v : c.integers("ends")) ends.emplace_back(v);
    axes = c.integers("axes");
  } else {
    starts = c.sizes(1, "the starts of the slice"), ends = c.sizes(2, "the ends of the slice");
    if (c.has(3)) axes = c.known_ints(3, "the axes of the slice");
    if (c.has(4)) steps = c.known_ints(4, "the steps of the slice");
  }
  if (axes.empty()) {
    for (size_t i = 0; i < starts.size(); ++i) axes.push_back(int64_t(i));
  }
  steps.resize(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size())
    throw c.wrong(starts.size(), " starts, ", ends.size(), " ends and ", axes.size(), " axes");
  ops::Slice::Attrs box;
  for (int i = 0; i < x.rank(); ++i) {
    box.start.push_back(0);
    box.limit.push_back(x.dim(i));
    box.stride.push_back(1);
  }
  std::vector<int> flipped;
  std::vector<size_t> counted;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int axis = c.axis(axes[i], x.rank());
    if (bound_at(c.item(0), axis) != nullptr || starts[i].is_counted() || ends[i].is_counted()) {
      counted.push_back(i);
      continue;
    }
    const Part p = part_of(c, starts[i], ends[i], steps[i], x.dim(axis));
    box.start[size_t(axis)] = p.start;
    box.limit[size_t(axis)] = p.limit;
    box.stride[size_t(axis)] = p.step;
    if (p.flip) flipped.push_back(axis);
  }
  if (!flipped.empty()) x = rlx::flip(x, {.axes = flipped});
  Item out(rlx::slice(x, box));
  out.bounds = c.item(0).bounds;
  for (const size_t i : counted)
    out = counted_part(c, out, c.axis(axes[i], x.rank()), starts[i], ends[i], steps[i]);
  return {std::move(out)};
}

// Positions of an axis with a border, folded back into 0 .. n - 1.
Tensor folded_places(const Call& c, const std::string& mode, Dim n, Dim low, Dim high) {
  const Tensor at = c.iota(Shape(DType::i64, {n + low + high}), 0) - c.dim_value(low);
  const Tensor last = c.dim_value(n - Dim(1));
  if (mode == "edge") return at.max(0).min(last);
  if (mode == "wrap") {
    const Tensor size = c.dim_value(n);
    return rlx::rem(rlx::rem(at, size) + size, size);
  }
  // Reflection: a saw of period 2 (n - 1).
  if (n == Dim(1)) return at * 0.0;
  const Tensor period = c.dim_value(Dim(2) * (n - Dim(1)));
  const Tensor phase = rlx::rem(rlx::rem(at, period) + period, period);
  return last - rlx::abs(last - phase);
}

Items pad(Call& c) {
  Tensor x = c.in(0);
  const std::string mode = c.text("mode", "constant");
  std::vector<Size> pads;
  double value = 0;
  if (c.opset() < 11) {
    for (const int64_t v : c.has_attr("pads") ? c.integers("pads") : c.integers("paddings"))
      pads.emplace_back(v);
    value = c.real("value", 0);
  } else {
    pads = c.sizes(1, "the widths of the border");
    for (const Size& s : pads) {
      if (s.is_counted()) c.unsupported("a border whose width depends on data");
    }
    if (c.has(2)) value = c.known_real(2, "the value of the border");
  }
  std::vector<int> axes, bounded;
  if (c.has(3)) {
    for (const int64_t a : c.known_ints(3, "the axes")) axes.push_back(c.axis(a, x.rank()));
  } else {
    for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  }
  for (const Bound& b : c.item(0).bounds) bounded.push_back(b.axis);
  const bool constant = mode == "constant";
  if (constant && !bounded.empty()) x = masked(c, 0, bounded, value);
  if (pads.size() != 2 * axes.size()) throw c.wrong(pads.size(), " widths for ", axes.size(), " axes");
  Dims low(size_t(x.rank()), 0), high(size_t(x.rank()), 0);
  // Negative widths cut; the rest is added.
  for (size_t i = 0; i < axes.size(); ++i) {
    Size before = pads[i], after = pads[i + axes.size()];
    const int64_t cut_before = before.number() ? std::max<int64_t>(0, -*before.number()) : 0;
    const int64_t cut_after = after.number() ? std::max<int64_t>(0, -*after.number()) : 0;
    if (cut_before + cut_after > 0)
      x = x.narrow(axes[i], cut_before, x.dim(axes[i]) - Dim(cut_before + cut_after));
    low[size_t(axes[i])] = cut_before > 0 ? Dim(0) : *before.dim();
    high[size_t(axes[i])] = cut_after > 0 ? Dim(0) : *after.dim();
  }
  if (constant) {
    Item out(rlx::pad(x, {.low = low, .high = high, .value = value}));
    for (const Bound& b : c.item(0).bounds) {
      // Behind what is meant the operand holds the value of the border already.
      const auto grown =
          c.dim_value(out.shape().dims()[size_t(b.axis)]) - c.dim_value(c.shape(0).dims()[size_t(b.axis)]);
      out.bounds.push_back({b.axis, (b.count + grown).max(0)});
    }
    return {std::move(out)};
  }
  if (mode != "edge" && mode != "reflect" && mode != "wrap") throw c.wrong("mode is '", mode, "'");
  for (int i = 0; i < x.rank(); ++i) {
    if (low[size_t(i)] == Dim(0) && high[size_t(i)] == Dim(0)) continue;
    if (bound_at(c.item(0), i) != nullptr)
      c.unsupported("a mirrored border of an axis whose size depends on data");
    x = rlx::gather(x, folded_places(c, mode, x.dim(i), low[size_t(i)], high[size_t(i)]), {.axis = i});
  }
  Item out(x);
  out.bounds = c.item(0).bounds;
  return {std::move(out)};
}

Items center_crop_pad(Call& c) {
  Tensor x = c.in(0);
  const Dims to = c.dims(1, "the new sizes");
  std::vector<int> axes;
  for (const int64_t a : c.integers("axes")) axes.push_back(c.axis(a, x.rank()));
  if (axes.empty()) {
    for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  }
  if (axes.size() != to.size()) throw c.wrong(to.size(), " sizes for ", axes.size(), " axes");
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t n = x.dim(axes[i]).value(), m = to[i].value();
    if (m <= n) {
      x = x.narrow(axes[i], (n - m) / 2, m);
    } else {
      Dims low(size_t(x.rank()), 0), high(size_t(x.rank()), 0);
      low[size_t(axes[i])] = (m - n) / 2;
      high[size_t(axes[i])] = m - n - (m - n) / 2;
      x = rlx::pad(x, {.low = low, .high = high});
    }
  }
  return {x};
}

}  // namespace

std::span<const Entry> slice_entries() {
  static const std::vector<Entry> kEntries{
      {"CenterCropPad", 18, center_crop_pad},
      {"Pad", 1, pad, BoundsRule::by_hand},
      {"Slice", 1, slice, BoundsRule::by_hand, follow_slice},
  };
  return kEntries;
}

}  // namespace rlx::onnx
