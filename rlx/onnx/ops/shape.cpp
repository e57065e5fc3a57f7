// Extents and order of axes: reshape, transpose, expand, concat, split, tile, and what reads extents.
#include <algorithm>
#include <cmath>

#include "rlx/lang/functions.h"
#include "rlx/lang/operators.h"
#include "rlx/onnx/bounds.h"
#include "rlx/onnx/follow.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {
namespace {

Items not_static(Call& c) { throw c.wrong("the extents of its operand are not known"); }

// Where bounds go in a reshape: an axis keeps its own when the product of extents before it stays. A single one may
// take what is behind it along, or leave some of it: what is meant stays together at the start.
std::vector<Bound> kept_bounds(const Call& c, const Item& in, const Dims& to) {
  std::vector<Bound> out;
  const Dims from = in.shape().dims();
  for (const Bound& b : in.bounds) {
    const auto axis = from.begin() + b.axis;
    const Dim before = product(Dims(from.begin(), axis));
    Dim passed = 1;
    int same = -1, other = -1;
    for (size_t i = 0; i < to.size(); ++i) {
      if (passed == before && to[i] == *axis && same < 0) same = int(i);
      if (passed == before && to[i] != Dim(1) && other < 0) other = int(i);
      passed = passed * to[i];
    }
    if (same >= 0) {
      out.push_back({same, b.count});
    } else if (other >= 0 && in.bounds.size() == 1) {
      const Dim had = product(Dims(axis + 1, from.end())),
                has = product(Dims(to.begin() + other + 1, to.end()));
      const Tensor elements = had == Dim(1) ? b.count : b.count * c.dim_value(had);
      out.push_back({other, has == Dim(1) ? elements : rlx::div(elements, c.dim_value(has))});
    } else {
      c.unsupported("a reshape of an axis whose size depends on data");
    }
  }
  return out;
}

Items reshape(Call& c) {
  const Tensor x = c.in(0);
  const bool zero_is_zero = c.flag("allowzero");
  Dims to;
  if (c.opset() < 5) {
    for (const int64_t v : c.integers("shape")) to.push_back(v == -1 ? Dim::inferred() : Dim(v));
    c.ignore("consumed_inputs");
  } else {
    // Extents that data decides are those of the bounded axes.
    to = c.item(0).bounds.empty() ? c.dims(1, "the new shape") : c.most_dims(1, "the new shape");
  }
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] == Dim(0) && !zero_is_zero) {
      if (int(i) >= x.rank())
        throw c.wrong("entry ", i, " of the new shape is 0, but the operand has ", x.rank(), " axes");
      to[i] = x.dim(int(i));
    }
  }
  // -1 beside a size of 0 has no quotient; ONNX takes it as what is left, which is 0.
  Item out(x.reshape(to));
  if (!c.item(0).bounds.empty()) out.bounds = kept_bounds(c, c.item(0), out.shape().dims());
  return {std::move(out)};
}

Items transpose(Call& c) {
  const Tensor x = c.in(0);
  std::vector<int> perm;
  for (const int64_t p : c.integers("perm")) perm.push_back(int(p));
  if (perm.empty()) {
    for (int i = x.rank() - 1; i >= 0; --i) perm.push_back(i);
  }
  Item out(x.rank() == 0 ? x : x.transpose(perm));
  for (const Bound& b : c.item(0).bounds) {
    const auto at = std::find(perm.begin(), perm.end(), b.axis);
    out.bounds.push_back({int(at - perm.begin()), b.count});
  }
  return {std::move(out)};
}

Items squeeze(Call& c) {
  const Tensor x = c.in(0);
  const auto given = c.ints_of("axes", 1);
  std::vector<int> gone;
  if (given) {
    gone = c.axes(*given, x.rank());
  } else {
    for (int i = 0; i < x.rank(); ++i) {
      if (x.dim(i) == Dim(1)) gone.push_back(i);
    }
  }
  Dims to;
  std::vector<int> place(size_t(x.rank()), -1);
  for (int i = 0; i < x.rank(); ++i) {
    if (std::find(gone.begin(), gone.end(), i) != gone.end()) {
      if (decide_equal(x.dim(i), 1) == false)
        throw c.wrong("axis ", i, " has size ", x.dim(i), "; only axes of size 1 can go");
      continue;
    }
    place[size_t(i)] = int(to.size());
    to.push_back(x.dim(i));
  }
  Item out(x.reshape(to));
  for (const Bound& b : c.item(0).bounds) {
    if (place[size_t(b.axis)] < 0) c.unsupported("taking away an axis whose size depends on data");
    out.bounds.push_back({place[size_t(b.axis)], b.count});
  }
  return {std::move(out)};
}

Items unsqueeze(Call& c) {
  const Tensor x = c.in(0);
  const auto given = c.ints_of("axes", 1);
  if (!given) throw c.wrong("it names no axes");
  const int rank = x.rank() + int(given->size());
  const std::vector<int> added = c.axes(*given, rank);
  Dims to;
  std::vector<int> place;
  for (int i = 0, next = 0; i < rank; ++i) {
    if (std::find(added.begin(), added.end(), i) != added.end()) {
      to.push_back(1);
    } else {
      place.push_back(i);
      to.push_back(x.dim(next++));
    }
  }
  Item out(x.reshape(to));
  for (const Bound& b : c.item(0).bounds) out.bounds.push_back({place[size_t(b.axis)], b.count});
  return {std::move(out)};
}

Items flatten(Call& c) {
  const Tensor x = c.in(0);
  const int64_t given = c.integer("axis", 1);
  const int axis = given == x.rank() ? x.rank() : c.axis(given, x.rank());
  Dim first = 1, rest = 1;
  for (int i = 0; i < x.rank(); ++i) (i < axis ? first : rest) = (i < axis ? first : rest) * x.dim(i);
  Item out(x.reshape({first, rest}));
  if (!c.item(0).bounds.empty()) out.bounds = kept_bounds(c, c.item(0), out.shape().dims());
  return {std::move(out)};
}

// Extents of a broadcast, where 1 in either gives way.
Items expand(Call& c) {
  const Tensor x = c.in(0);
  Dims to = c.most_dims(1, "the new shape");
  const std::vector<Bound> given = bounds_of(c.sizes(1, "the new shape"));
  const int shape_rank = int(to.size());
  for (size_t k = 0; k < to.size() && k < size_t(x.rank()); ++k) {
    Dim& d = to[to.size() - 1 - k];
    const Dim own = x.dim(x.rank() - 1 - int(k));
    if (d == Dim(1) || d.is_inferred()) d = own;
  }
  while (int(to.size()) < x.rank()) to.insert(to.begin(), x.dim(x.rank() - 1 - int(to.size())));
  Item out(x.expand(to));
  const int rank = int(to.size());
  for (const Bound& b : given) add_bound(out, {b.axis + rank - shape_rank, b.count});
  for (const Bound& b : c.item(0).bounds) {
    const int axis = b.axis + rank - x.rank();
    if (x.dim(b.axis) == to[size_t(axis)]) add_bound(out, {axis, b.count});  // else one row that is repeated
  }
  return {std::move(out)};
}

// Operands joined along an axis of which only parts are meant: those parts, one behind the other.
Items joined_parts(const Call& c, int axis) {
  Tensors flags;
  for (int i = 0; i < c.count(); ++i) {
    const Bound* b = bound_at(c.item(i), axis);
    const Dim n = c.shape(i).dims()[size_t(axis)];
    flags.push_back(b == nullptr ? c.full({n}, DType::bool_, 1) : meant_places(c, n, 0, 1, b->count));
  }
  const Tensor meant = rlx::concat(flags, {.axis = 0});
  Item out =
      bounded_rows(c, rlx::concat(c.all(), {.axis = axis}), chosen_first(meant), count_of(meant), axis);
  for (const Item& it : c.items()) {
    for (const Bound& b : it.bounds) add_bound(out, b);
  }
  return {std::move(out)};
}

Items concat(Call& c) {
  const int axis = c.axis(c.integer("axis", 1), c.rank(0));
  const bool in_parts = std::any_of(c.items().begin(), c.items().end(),
                                    [&](const Item& it) { return bound_at(it, axis) != nullptr; });
  if (in_parts && c.count() > 1) return joined_parts(c, axis);
  Item out(c.count() == 1 ? c.in(0) : rlx::concat(c.all(), {.axis = axis}));
  for (const Item& it : c.items()) {
    for (const Bound& b : it.bounds) {
      add_bound(out, b);
    }
  }
  return {std::move(out)};
}

Items split(Call& c) {
  const Tensor x = c.in(0);
  const int axis = c.axis(c.integer("axis", 0), x.rank());
  const Dim size = x.dim(axis);
  Dims parts;
  if (c.has_attr("split")) {
    for (const int64_t v : c.integers("split")) parts.push_back(v);
  } else if (c.has(1)) {
    parts = c.dims(1, "the sizes of the parts");
  } else {
    const int64_t n = c.integer("num_outputs", int64_t(c.node().outputs.size()));
    if (n < 1) throw c.wrong("it has no outputs");
    const Dim each = ceildiv(size, n);
    for (int64_t i = 0; i + 1 < n; ++i) parts.push_back(each);
    parts.push_back(size - each * Dim(n - 1));
  }
  Items out;
  Dim start = 0;
  for (const Dim part : parts) {
    Item item(x.narrow(axis, start, part));
    for (const Bound& b : c.item(0).bounds) {
      if (b.axis == axis) c.unsupported("splitting an axis whose size depends on data");
      item.bounds.push_back(b);
    }
    out.push_back(std::move(item));
    start = start + part;
  }
  c.ignore("num_outputs");
  return out;
}

Items tile(Call& c) {
  const Tensor x = c.in(0);
  const Dims repeats = c.most_dims(1, "the number of repetitions");
  const std::vector<Bound> given = bounds_of(c.sizes(1, "the number of repetitions"));
  if (int(repeats.size()) != x.rank()) throw c.wrong(repeats.size(), " repetitions for ", x.rank(), " axes");
  // Each repeated axis [n] becomes [r, n], then r n.
  Dims with_ones, wide, to;
  for (int i = 0; i < x.rank(); ++i) {
    with_ones.insert(with_ones.end(), {Dim(1), x.dim(i)});
    wide.insert(wide.end(), {repeats[size_t(i)], x.dim(i)});
    to.push_back(repeats[size_t(i)] * x.dim(i));
  }
  Item out(x.reshape(with_ones).expand(wide).reshape(to));
  for (const Bound& b : c.item(0).bounds) {
    if (repeats[size_t(b.axis)] != Dim(1)) c.unsupported("repeating an axis whose size depends on data");
    out.bounds.push_back(b);
  }
  for (const Bound& b : given) out.bounds.push_back({b.axis, b.count * c.dim_value(x.dim(b.axis))});
  return {std::move(out)};
}

Items constant_of_shape(Call& c) {
  const Dims dims = c.most_dims(0, "the shape");
  const auto value = c.tensor("value");
  Item out(value ? c.constant(value->reshaped({})).expand(dims) : c.full(dims, DType::f32, 0));
  if (value) out.element = file::ElementType(c.find("value")->tensor->type);
  out.bounds = bounds_of(c.sizes(0, "the shape"));
  return {std::move(out)};
}

Items range(Call& c) {
  const DType type = c.dtype(0);
  // 0, 1, ... n - 1 with a symbolic n.
  if (!is_float(type) && c.has(1)) {
    const auto start = sizes_of(c.item(0)), limit = sizes_of(c.item(1)), delta = sizes_of(c.item(2));
    const auto step = delta ? delta->values[0].number() : std::nullopt;
    if (start && limit && step && *step > 0) {
      auto n = minus(limit->values[0], start->values[0]);
      if (n && *step > 1) n = plus(*n, Size(*step - 1));
      if (n && *step > 1) n = quotient(*n, Size(*step));
      if (n && (n->is_counted() || (n->dim() && !n->dim()->is_inferred()))) {
        Tensor counted = c.iota(Shape(type, {n->is_counted() ? n->most() : *n->dim()}), 0);
        if (*step > 1) counted = counted * double(*step);
        Item out(start->values[0].number() == 0 ? counted : counted + c.tensor_of(c.item(0)).reshape({}));
        out.bounds = bounds_of({*n});
        return {std::move(out)};
      }
    }
  }
  const Literal start = c.known(0, "the start of the range"), limit = c.known(1, "the end of the range"),
                delta = c.known(2, "the step of the range");
  const double step = delta.real_at(0);
  if (step == 0) throw c.wrong("the step is 0");
  const double count = std::max(0.0, std::ceil((limit.real_at(0) - start.real_at(0)) / step));
  if (!(count < 1e9)) throw c.wrong("the range has ", count, " elements");
  const Tensor counted = c.iota(Shape(type, {int64_t(count)}), 0);
  return {counted * c.constant(delta.reshaped({})) + c.constant(start.reshaped({}))};
}

Items eye_like(Call& c) {
  const Shape s = c.shape(0);
  if (s.rank() != 2) throw c.wrong("the operand has ", s.rank(), " axes; a matrix has 2");
  const auto type = file::info_of(c.element("dtype", file::element_of(s.dtype())));
  const int64_t k = c.integer("k", 0);
  const Shape places(DType::i64, s.dims());
  return {c.iota(places, 1).eq(c.iota(places, 0) + double(k)).cast(*type.dtype)};
}

Items trilu(Call& c) {
  const Tensor x = c.in(0);
  const bool upper = c.flag("upper", true);
  const Shape places(DType::i64, {x.dim(-2), x.dim(-1)});
  Tensor row = c.iota(places, 0);
  if (c.has(1)) {
    const auto k = c.constant(1);
    row = row + (k ? c.scalar(DType::i64, double(k->integer_at(0))) : c.in(1).reshape({}));
  }
  const Tensor column = c.iota(places, 1);
  const Tensor keep = upper ? column >= row : column <= row;
  return {rlx::where(keep, x, x.zeros_like())};
}

}  // namespace

std::span<const Entry> shape_entries() {
  static const std::vector<Entry> kEntries{
      {"Concat", 1, concat, BoundsRule::by_hand, follow_concat},
      {"ConstantOfShape", 9, constant_of_shape},
      {"Expand", 8, expand, BoundsRule::by_hand},
      {"EyeLike", 9, eye_like},
      {"Flatten", 1, flatten, BoundsRule::by_hand},
      {"Range", 11, range},
      {"Reshape", 1, reshape, BoundsRule::by_hand, follow_reshape},
      {"Shape", 1, not_static, BoundsRule::by_hand, follow_shape, false},
      {"Size", 1, not_static, BoundsRule::by_hand, follow_size, false},
      {"Split", 1, split, BoundsRule::by_hand},
      {"Squeeze", 1, squeeze, BoundsRule::by_hand, follow_squeeze},
      {"Tile", 6, tile, BoundsRule::by_hand},
      {"Transpose", 1, transpose, BoundsRule::by_hand},
      {"Trilu", 14, trilu, BoundsRule::elementwise},
      {"Unsqueeze", 1, unsqueeze, BoundsRule::by_hand, follow_unsqueeze},
  };
  return kEntries;
}

}  // namespace rlx::onnx
