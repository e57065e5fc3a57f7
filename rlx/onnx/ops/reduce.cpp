// Reductions, running sums, extremes with their places, sorting.
#include "rlx/lang/functions.h"
#include "rlx/lang/operators.h"
#include "rlx/onnx/bounds.h"
#include "rlx/onnx/follow.h"
#include "rlx/onnx/table.h"
#include "rlx/onnx/unsigned.h"

namespace rlx::onnx {
namespace {

using ops::ReduceOp;

struct Axes {
  std::vector<int> list;
  bool keep = true, nothing = false;  // nothing: the operand stays as it is
};

Axes axes_of(const Call& c, int rank) {
  Axes out;
  out.keep = c.flag("keepdims", true);
  const bool noop = c.flag("noop_with_empty_axes");
  const auto given = c.ints_of("axes", 1);
  if (given && !given->empty()) {
    out.list = c.axes(*given, rank);
  } else if (noop) {
    out.nothing = true;
  } else {
    for (int i = 0; i < rank; ++i) out.list.push_back(i);
  }
  return out;
}

// The library takes an empty list for all axes; a scalar has none.
Tensor reduced(const Tensor& x, ReduceOp kind, const Axes& a) {
  if (a.nothing || a.list.empty()) return x;
  return rlx::reduce(x, {.kind = kind, .axes = a.list, .keep_dim = a.keep});
}

// The result with the bounds of the axes that stay.
Items with_bounds(const Call& c, const Tensor& y, const Axes& a) {
  Item out(y);
  out.bounds = a.nothing ? c.item(0).bounds : bounds_without(c.item(0), a.list, a.keep);
  return {std::move(out)};
}

// Operand 0 with what changes nothing in the places that are not meant.
Tensor whole(const Call& c, const Axes& a, const Literal& neutral) {
  return a.nothing ? c.in(0) : masked(c, 0, a.list, neutral);
}

// How many elements are meant in one of the result, where data decides it.
Tensor meant_count(const Call& c, const Axes& a) {
  Tensor out = c.scalar(DType::i64, 1);
  const Shape s = c.shape(0);
  for (const int axis : a.list) {
    const Bound* b = bound_at(c.item(0), axis);
    out = out * (b == nullptr ? c.dim_value(s.dims()[size_t(axis)]) : b->count);
  }
  return out;
}

Literal neutral_of(ReduceOp kind, DType type) {
  if (kind == ReduceOp::max) return lowest(type);
  if (kind == ReduceOp::min) return highest(type);
  return Literal::scalar(type, kind == ReduceOp::prod ? 1 : 0);
}

Tensor reduced_operand(const Call& c, ReduceOp kind, const Axes& a, const Tensor& x);

template <ReduceOp kKind>
Items reduce(Call& c) {
  const Axes a = axes_of(c, c.rank(0));
  return with_bounds(c, reduced_operand(c, kKind, a, whole(c, a, neutral_of(kKind, c.dtype(0)))), a);
}

Tensor reduced_operand(const Call& c, ReduceOp kKind, const Axes& a, const Tensor& x) {
  const DType type = x.dtype();
  const bool data_decides = !a.nothing && std::any_of(a.list.begin(), a.list.end(), [&](int axis) {
    return bound_at(c.item(0), axis) != nullptr;
  });
  if (kKind == ReduceOp::mean && data_decides) {
    const DType wide = is_float(type) ? type : DType::f64;
    return (reduced(x.cast(wide), ReduceOp::sum, a) / meant_count(c, a).cast(wide)).cast(type);
  }
  // As u8, whose least and greatest are those of a bool where nothing is left to choose from.
  if (type == DType::bool_) return reduced(x.cast(DType::u8), kKind, a).cast(type);
  const bool ordered = kKind == ReduceOp::max || kKind == ReduceOp::min;
  if (ordered && is_u64(c.item(0))) return in_order(reduced(in_order(x), kKind, a));
  // Means of integers, and empty extremes of them, follow the integers' own rules.
  if (kKind == ReduceOp::mean && !is_float(type)) return reduced(x.cast(DType::f64), kKind, a).cast(type);
  return reduced(x, kKind, a);
}

template <auto kBefore, auto kAfter>
Items around_sum(Call& c) {
  const Axes a = axes_of(c, c.rank(0));
  const Tensor x = whole(c, a, Literal::scalar(c.dtype(0), 0));
  return with_bounds(c, kAfter(reduced(kBefore(x), ReduceOp::sum, a)), a);
}

Tensor same(const Tensor& x) { return x; }
Tensor magnitude(const Tensor& x) {
  return x.dtype() == DType::u8 || x.dtype() == DType::u32 ? x : rlx::abs(x);
}
Tensor square(const Tensor& x) { return x * x; }
Tensor root(const Tensor& x) {
  return is_float(x.dtype()) ? rlx::sqrt(x) : rlx::sqrt(x.cast(DType::f64)).cast(x.dtype());
}
Tensor logarithm(const Tensor& x) {
  return is_float(x.dtype()) ? rlx::log(x) : rlx::log(x.cast(DType::f64)).cast(x.dtype());
}

Items log_sum_exp(Call& c) {
  const Axes a = axes_of(c, c.rank(0));
  if (a.nothing || a.list.empty()) return with_bounds(c, c.in(0), a);
  const Tensor x = whole(c, a, lowest(c.dtype(0)));
  const Tensor wide = is_float(x.dtype()) ? x : x.cast(DType::f64);
  return with_bounds(c, rlx::logsumexp(wide, {.axes = a.list, .keep_dim = a.keep}).cast(x.dtype()), a);
}

template <bool kLargest>
Items arg_extreme(Call& c) {
  const int axis = c.axis(c.integer("axis", 0), c.rank(0));
  Tensor x = masked(c, 0, {axis}, kLargest ? lowest(c.dtype(0)) : highest(c.dtype(0)));
  const bool keep = c.flag("keepdims", true), last = c.flag("select_last_index");
  const Axes a{{axis}, keep, false};
  if (last) x = rlx::flip(x, {.axes = {axis}});
  const Tensor at = kLargest ? rlx::argmax(x, {.axis = axis, .keep_dim = keep, .dtype = DType::i64})
                             : rlx::argmin(x, {.axis = axis, .keep_dim = keep, .dtype = DType::i64});
  return with_bounds(c, last ? c.dim_value(x.dim(axis) - Dim(1)) - at : at, a);
}

template <bool kProduct>
Items running(Call& c) {
  const Tensor x = c.in(0);
  const int axis = c.axis(c.known_int(1, "the axis"), x.rank());
  const bool exclusive = c.flag("exclusive"), reverse = c.flag("reverse");
  const Tensor part = masked(c, 0, {axis}, kProduct ? 1 : 0);
  Item out(kProduct ? rlx::cumprod(part, {.axis = axis, .exclusive = exclusive, .reverse = reverse})
                    : rlx::cumsum(part, {.axis = axis, .exclusive = exclusive, .reverse = reverse}));
  out.bounds = c.item(0).bounds;
  return {std::move(out)};
}

// The part of a sorted axis that is kept, and how much of it is meant.
Items top_k(Call& c) {
  const int axis = c.axis(c.integer("axis", -1), c.rank(0));
  const bool largest = c.flag("largest", true);
  c.ignore("sorted");
  // The size of an axis, or the lesser of it and a number, as exporters write it, is an expression.
  Size k = c.opset() < 10 ? Size(c.integer("k", 0)) : Size(0);
  if (c.opset() >= 10) {
    const auto sizes = c.sizes(1, "the number of elements to keep");
    if (sizes.size() != 1) throw c.wrong(sizes.size(), " numbers of elements to keep; it must be one");
    k = sizes[0];
  }
  if (k.number() && *k.number() < 0) throw c.wrong("it keeps ", *k.number(), " elements");
  // What is not meant is sorted to the end.
  const Tensor x = masked(c, 0, {axis}, largest ? lowest(c.dtype(0)) : highest(c.dtype(0)));
  const Bound* b = bound_at(c.item(0), axis);
  const Dim kept = k.is_counted() ? k.most() : *k.dim();
  Tensors found;
  if (k.number() && largest && *k.number() > 0) {
    const auto [values, at] = rlx::top_k(x, {.k = int(*k.number()), .axis = axis});
    found = {values, at.cast(DType::i64)};
  } else {
    const auto [values, at] = rlx::sort(x, {.axis = axis, .descending = largest});
    found = {values, at.cast(DType::i64)};
    if (kept != x.dim(axis)) found = {found[0].narrow(axis, 0, kept), found[1].narrow(axis, 0, kept)};
  }
  Items out;
  for (const Tensor& t : found) {
    Item item(t);
    if (k.is_counted()) item.bounds.push_back({axis, k.count().max(0)});
    if (b != nullptr && !k.is_counted()) item.bounds.push_back({axis, b->count.min(value_of(c.graph(), k))});
    for (const Bound& other : c.item(0).bounds) add_bound(item, other);
    out.push_back(std::move(item));
  }
  return out;
}

}  // namespace

std::span<const Entry> reduce_entries() {
  constexpr auto kByHand = BoundsRule::by_hand;
  static const std::vector<Entry> kEntries{
      {"ArgMax", 1, arg_extreme<true>, kByHand},
      {"ArgMin", 1, arg_extreme<false>, kByHand},
      {"CumProd", 26, running<true>, kByHand},
      {"CumSum", 11, running<false>, kByHand},
      {"ReduceL1", 1, around_sum<magnitude, same>, kByHand},
      {"ReduceL2", 1, around_sum<square, root>, kByHand},
      {"ReduceLogSum", 1, around_sum<same, logarithm>, kByHand},
      {"ReduceLogSumExp", 1, log_sum_exp, kByHand},
      {"ReduceMax", 1, reduce<ReduceOp::max>, kByHand, follow_all<larger>},
      {"ReduceMean", 1, reduce<ReduceOp::mean>, kByHand},
      {"ReduceMin", 1, reduce<ReduceOp::min>, kByHand, follow_all<smaller>},
      {"ReduceProd", 1, reduce<ReduceOp::prod>, kByHand, follow_all<times>},
      {"ReduceSum", 1, reduce<ReduceOp::sum>, kByHand, follow_all<plus>},
      {"ReduceSumSquare", 1, around_sum<square, same>, kByHand},
      {"TopK", 1, top_k, kByHand},
  };
  return kEntries;
}

}  // namespace rlx::onnx
