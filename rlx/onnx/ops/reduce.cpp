// Reductions, running sums, extremes with their places, sorting.
#include "rlx/lang/operators.h"
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

template <ReduceOp kKind>
Items reduce(Call& c) {
  const Tensor x = c.in(0);
  const Axes a = axes_of(c, x.rank());
  const DType type = x.dtype();
  // As u8, whose least and greatest are those of a bool where nothing is left to choose from.
  if (type == DType::bool_) return {reduced(x.cast(DType::u8), kKind, a).cast(type)};
  const bool ordered = kKind == ReduceOp::max || kKind == ReduceOp::min;
  if (ordered && is_u64(c.item(0))) return {in_order(reduced(in_order(x), kKind, a))};
  // Means of integers, and empty extremes of them, follow the integers' own rules.
  if (kKind == ReduceOp::mean && !is_float(type)) return {reduced(x.cast(DType::f64), kKind, a).cast(type)};
  return {reduced(x, kKind, a)};
}

template <auto kBefore, auto kAfter>
Items around_sum(Call& c) {
  const Tensor x = c.in(0);
  return {kAfter(reduced(kBefore(x), ReduceOp::sum, axes_of(c, x.rank())))};
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
  const Tensor x = c.in(0);
  const Axes a = axes_of(c, x.rank());
  if (a.nothing || a.list.empty()) return {x};
  if (is_float(x.dtype())) return {rlx::logsumexp(x, {.axes = a.list, .keep_dim = a.keep})};
  return {rlx::logsumexp(x.cast(DType::f64), {.axes = a.list, .keep_dim = a.keep}).cast(x.dtype())};
}

template <bool kLargest>
Items arg_extreme(Call& c) {
  Tensor x = c.in(0);
  const int axis = c.axis(c.integer("axis", 0), x.rank());
  const bool keep = c.flag("keepdims", true), last = c.flag("select_last_index");
  if (last) x = rlx::flip(x, {.axes = {axis}});
  const Tensor at = kLargest ? rlx::argmax(x, {.axis = axis, .keep_dim = keep, .dtype = DType::i64})
                             : rlx::argmin(x, {.axis = axis, .keep_dim = keep, .dtype = DType::i64});
  if (!last) return {at};
  return {c.dim_value(x.dim(axis) - Dim(1)) - at};
}

template <bool kProduct>
Items running(Call& c) {
  const Tensor x = c.in(0);
  const int axis = c.axis(c.known_int(1, "the axis"), x.rank());
  const bool exclusive = c.flag("exclusive"), reverse = c.flag("reverse");
  if (kProduct) return {rlx::cumprod(x, {.axis = axis, .exclusive = exclusive, .reverse = reverse})};
  return {rlx::cumsum(x, {.axis = axis, .exclusive = exclusive, .reverse = reverse})};
}

Items top_k(Call& c) {
  const Tensor x = c.in(0);
  const int axis = c.axis(c.integer("axis", -1), x.rank());
  int64_t k = 0;
  if (c.opset() < 10) {
    k = c.integer("k", 0);
  } else {
    // The size of an axis, or the lesser of it and a number, as exporters write it, is an expression.
    const auto sizes = c.sizes(1, "the number of elements to keep");
    if (sizes.size() == 1 && !sizes[0].number()) {
      const Dim keep = *sizes[0].dim();
      const bool down = c.flag("largest", true);
      c.ignore("sorted");
      const auto [values, at] = rlx::sort(x, {.axis = axis, .descending = down});
      if (keep == x.dim(axis)) return {values, at.cast(DType::i64)};
      return {values.narrow(axis, 0, keep), at.narrow(axis, 0, keep).cast(DType::i64)};
    }
    k = c.known_int(1, "the number of elements to keep");
  }
  c.ignore("sorted");
  const bool largest = c.flag("largest", true);
  if (k < 0) throw c.wrong("it keeps ", k, " elements");
  if (!largest || k == 0) {
    const auto [values, at] = rlx::sort(x, {.axis = axis, .descending = largest});
    return {values.narrow(axis, 0, k), at.narrow(axis, 0, k).cast(DType::i64)};
  }
  const auto [values, at] = rlx::top_k(x, {.k = int(k), .axis = axis});
  return {values, at.cast(DType::i64)};
}

}  // namespace

std::span<const Entry> reduce_entries() {
  static const std::vector<Entry> kEntries{
      {"ArgMax", 1, arg_extreme<true>},
      {"ArgMin", 1, arg_extreme<false>},
      {"CumProd", 26, running<true>},
      {"CumSum", 11, running<false>},
      {"ReduceL1", 1, around_sum<magnitude, same>},
      {"ReduceL2", 1, around_sum<square, root>},
      {"ReduceLogSum", 1, around_sum<same, logarithm>},
      {"ReduceLogSumExp", 1, log_sum_exp},
      {"ReduceMax", 1, reduce<ReduceOp::max>},
      {"ReduceMean", 1, reduce<ReduceOp::mean>},
      {"ReduceMin", 1, reduce<ReduceOp::min>},
      {"ReduceProd", 1, reduce<ReduceOp::prod>, BoundsRule::refuse, follow_product},
      {"ReduceSum", 1, reduce<ReduceOp::sum>},
      {"ReduceSumSquare", 1, around_sum<square, same>},
      {"TopK", 1, top_k},
  };
  return kEntries;
}

}  // namespace rlx::onnx
