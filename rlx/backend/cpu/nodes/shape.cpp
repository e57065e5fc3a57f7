// Operators that move elements and change none: joins, borders, boxes at places given at run time.
#include <algorithm>
#include <cstring>

#include "rlx/backend/cpu/kernels/copy.h"
#include "rlx/backend/cpu/nodes/whole_numbers.h"
#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/dynamic_slice.h"
#include "rlx/ops/shape/iota.h"
#include "rlx/ops/shape/pad.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::cpu {
namespace {

std::vector<int64_t> row_major(const Arg& x) { return row_major_strides(x.shape.dims()); }

// A copy of a box of these sizes between two arrays, from and to given when it runs. Axes of size 1 are left
// out.
StridedCopy box_copy(const Arg& box, const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  StridedCopy c{.element_bytes = int(dtype_size(box.dtype()))};
  for (int i = 0; i < box.shape.rank(); ++i) {
    const int64_t size = box.shape.dim(i).value();
    if (size == 1) continue;
    c.size[c.rank] = size;
    c.from_stride[c.rank] = from[size_t(i)];
    c.to_stride[c.rank++] = to[size_t(i)];
  }
  if (c.rank == 0) c.size[0] = c.from_stride[0] = c.to_stride[0] = 1, c.rank = 1;
  return c;
}

void run_copy(const Launch& l, const StridedCopy& c, const std::byte* from, std::byte* to) {
  StridedCopy now = c;
  now.from = from;
  now.to = to;
  strided_copy(l.team, now);
}

Support few_axes(const Arg& x) {
  if (x.shape.rank() > StridedCopy::kMaxRank)
    return Support::no(x.shape.rank(), " axes, more than ", StridedCopy::kMaxRank);
  return Support::yes();
}

// ---- concat ----

Support accepts_concat(const Request& r) { return few_axes(r.out[0]); }

std::unique_ptr<Step> prepare_concat(const Request& r) {
  const int axis = r.node.as<ops::Concat>().axis;
  const std::vector<int64_t> to = row_major(r.out[0]);
  const auto element = int64_t(dtype_size(r.out[0].dtype()));
  struct Part {
    size_t operand;
    StridedCopy copy;
    int64_t offset;  // bytes
  };
  std::vector<Part> parts;
  int64_t at = 0;
  for (size_t i = 0; i < r.in.size(); ++i) {
    const Arg& x = r.in[i];
    if (x.shape.elements() > 0)
      parts.push_back({i, box_copy(x, x.layout.strides, to), at * to[size_t(axis)] * element});
    at += x.shape.dim(axis).value();
  }
  return make_step([parts](const Launch& l) {
    for (const Part& p : parts) run_copy(l, p.copy, l.in[p.operand], l.out[0] + p.offset);
  });
}

// ---- pad ----

Support accepts_pad(const Request& r) { return few_axes(r.out[0]); }

// The border is made of two boxes for each axis: what lies before and behind x along it, within x along the
// axes before it and over the whole result along those behind it. So every element is written once.
std::unique_ptr<Step> prepare_pad(const Request& r) {
  const auto& a = r.node.as<ops::Pad>();
  const Arg &x = r.in[0], &y = r.out[0];
  const int rank = y.shape.rank();
  const std::vector<int64_t> to = row_major(y);
  const auto element = int64_t(dtype_size(y.dtype()));
  struct Border {
    StridedFill fill;
    int64_t offset;  // bytes
  };
  std::vector<Border> borders;
  int64_t start = 0;
  for (int axis = 0; axis < rank; ++axis) {
    const int64_t low = a.low[size_t(axis)].value(), size = x.shape.dim(axis).value();
    const int64_t whole = y.shape.dim(axis).value(), stride = to[size_t(axis)];
    for (const auto& [first, count] :
         {std::pair(int64_t(0), low), std::pair(low + size, whole - low - size)}) {
      Border b{{.rank = rank, .element_bytes = int(element)}, (start + first * stride) * element};
      int64_t elements = 1;
      for (int i = 0; i < rank; ++i) {
        b.fill.size[i] = i < axis ? x.shape.dim(i).value() : i == axis ? count : y.shape.dim(i).value();
        b.fill.stride[i] = to[size_t(i)];
        elements *= b.fill.size[i];
      }
      if (elements > 0) borders.push_back(b);
    }
    start += low * stride;
  }
  const bool inside = x.shape.elements() > 0;
  const StridedCopy copy = inside ? box_copy(x, x.layout.strides, to) : StridedCopy{};
  const Literal value = Literal::scalar(y.dtype(), a.value);
  return make_step([borders, copy, inside, value, offset = start * element](const Launch& l) {
    for (const Border& b : borders) {
      StridedFill now = b.fill;
      now.value = value.bytes().data();
      now.to = l.out[0] + b.offset;
      strided_fill(l.team, now);
    }
    if (inside) run_copy(l, copy, l.in[0], l.out[0] + offset);
  });
}

// ---- boxes at places given at run time ----

struct Starts {
  DType dtype = DType::i32;
  std::vector<int64_t> most;    // per axis
  std::vector<int64_t> stride;  // bytes from place to place of the large array

  int64_t offset(const std::byte* data) const {
    int64_t out = 0;
    for (size_t i = 0; i < most.size(); ++i) {
      const int64_t at = integer_at(dtype, data, int64_t(i));
      out += std::clamp<int64_t>(at, 0, most[i]) * stride[i];
    }
    return out;
  }
};

Starts starts_of(const Arg& starts, const Arg& large, const std::vector<int64_t>& strides, const Arg& box) {
  Starts s{.dtype = starts.dtype()};
  for (int i = 0; i < large.shape.rank(); ++i) {
    s.most.push_back(large.shape.dim(i).value() - box.shape.dim(i).value());
    s.stride.push_back(strides[size_t(i)] * int64_t(dtype_size(large.dtype())));
  }
  return s;
}

Support accepts_starts(const Request& r, const Arg& starts) {
  if (!is_integer(starts.dtype())) return Support::no("starts are ", starts.dtype());
  if (!starts.is_row_major()) return Support::no("starts are strided");
  return few_axes(r.in[0]);
}

Support accepts_dynamic_slice(const Request& r) { return accepts_starts(r, r.in[1]); }

std::unique_ptr<Step> prepare_dynamic_slice(const Request& r) {
  if (r.out[0].shape.elements() == 0) return make_step([](const Launch&) {});
  const Starts starts = starts_of(r.in[1], r.in[0], r.in[0].layout.strides, r.out[0]);
  const StridedCopy copy = box_copy(r.out[0], r.in[0].layout.strides, row_major(r.out[0]));
  return make_step(
      [starts, copy](const Launch& l) { run_copy(l, copy, l.in[0] + starts.offset(l.in[1]), l.out[0]); });
}

Support accepts_dynamic_update_slice(const Request& r) { return accepts_starts(r, r.in[2]); }

// Operand 0 is copied unless the result has taken its place.
std::unique_ptr<Step> prepare_dynamic_update_slice(const Request& r) {
  const Arg &x = r.in[0], &update = r.in[1], &y = r.out[0];
  if (y.shape.elements() == 0) return make_step([](const Launch&) {});
  const std::vector<int64_t> to = row_major(y);
  const Starts starts = starts_of(r.in[2], y, to, update);
  const StridedCopy whole = box_copy(x, x.layout.strides, to);
  const bool any = update.shape.elements() > 0;
  const StridedCopy part = any ? box_copy(update, update.layout.strides, to) : StridedCopy{};
  auto step = make_step([starts, whole, any, part](const Launch& l) {
    if (l.in[0] != l.out[0]) run_copy(l, whole, l.in[0], l.out[0]);
    if (any) run_copy(l, part, l.in[1], l.out[0] + starts.offset(l.in[2]));
  });
  step->in_place = {0};
  return step;
}

// ---- a view that strides cannot tell ----

Support accepts_reshape(const Request& r) { return few_axes(r.in[0]); }

std::unique_ptr<Step> prepare_reshape(const Request& r) {
  const Arg& x = r.in[0];
  if (x.shape.elements() == 0) return make_step([](const Launch&) {});
  const StridedCopy copy = box_copy(x, x.layout.strides, row_major(x));
  return make_step([copy](const Launch& l) { run_copy(l, copy, l.in[0], l.out[0]); });
}

// ---- constants of a shape ----

Support accepts_always(const Request&) { return Support::yes(); }

// The positions along the axis are kept, and every run spreads them.
std::unique_ptr<Step> prepare_iota(const Request& r) {
  const Arg& y = r.out[0];
  if (y.shape.elements() == 0) return make_step([](const Launch&) {});
  const AxisView view = axis_view(y.shape, r.node.as<ops::Iota>().axis);
  std::vector<int64_t> places(size_t(view.length));
  for (size_t i = 0; i < places.size(); ++i) places[i] = int64_t(i);
  const Shape line(y.dtype(), {view.length});
  const Literal values = is_integer(y.dtype())
                             ? Literal::integers(line, places)
                             : Literal::reals(line, std::vector<double>(places.begin(), places.end()));
  StridedCopy c{.rank = 3, .element_bytes = int(dtype_size(y.dtype()))};
  c.size[0] = view.outer, c.size[1] = view.length, c.size[2] = view.inner;
  c.from_stride[1] = 1;
  c.to_stride[0] = view.length * view.inner, c.to_stride[1] = view.inner, c.to_stride[2] = 1;
  return make_step([values, c](const Launch& l) { run_copy(l, c, values.bytes().data(), l.out[0]); });
}

Support accepts_one_hot(const Request& r) {
  const Arg& x = r.in[0];
  if (!is_integer(x.dtype())) return Support::no("indices are ", x.dtype());
  return all_row_major(r);
}

std::unique_ptr<Step> prepare_one_hot(const Request& r) {
  const Arg& y = r.out[0];
  const AxisView view = axis_view(y.shape, r.node.as<ops::OneHot>().axis);
  const Literal one = Literal::scalar(y.dtype(), 1);
  const auto element = int64_t(dtype_size(y.dtype()));
  const auto bytes = size_t(y.shape.size_bytes());
  return make_step([view, one, element, bytes, from = r.in[0].dtype()](const Launch& l) {
    std::memset(l.out[0], 0, bytes);
    for (int64_t i = 0; i < view.outer * view.inner; ++i) {
      const int64_t d = integer_at(from, l.in[0], i);
      if (d < 0 || d >= view.length) continue;
      const int64_t at = (i / view.inner * view.length + d) * view.inner + i % view.inner;
      std::memcpy(l.out[0] + at * element, one.bytes().data(), size_t(element));
    }
  });
}

}  // namespace

void add_shape(KernelTable& table) {
  table.add<ops::Concat>({"concat_strided", accepts_concat, prepare_concat});
  table.add<ops::Pad>({"pad_strided", accepts_pad, prepare_pad});
  table.add<ops::DynamicSlice>({"dynamic_slice_strided", accepts_dynamic_slice, prepare_dynamic_slice});
  table.add<ops::DynamicUpdateSlice>(
      {"dynamic_update_slice_strided", accepts_dynamic_update_slice, prepare_dynamic_update_slice});
  table.add<ops::Reshape>({"reshape_strided", accepts_reshape, prepare_reshape});
  table.add<ops::Iota>({"iota_spread", accepts_always, prepare_iota});
  table.add<ops::OneHot>({"one_hot_rows", accepts_one_hot, prepare_one_hot});
}

}  // namespace rlx::cpu
