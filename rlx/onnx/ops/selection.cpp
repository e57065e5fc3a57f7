// Results whose size depends on data: as large as they can become, with a count of what is meant.
#include <limits>

#include "rlx/lang/control.h"
#include "rlx/lang/functions.h"
#include "rlx/lang/operators.h"
#include "rlx/onnx/bounds.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {
namespace {

Items non_zero(Call& c) {
  const Tensor x = c.in(0);
  const Dim n = x.shape().num_elements();
  std::vector<int> bounded;
  for (const Bound& b : c.item(0).bounds) bounded.push_back(b.axis);
  const Tensor some = masked(c, 0, bounded, 0);
  const Tensor flags = x.dtype() == DType::bool_ ? some.reshape({n}) : some.reshape({n}).ne(0);
  const Tensor order = chosen_first(flags), count = count_of(flags);
  // Flat places as one row of indices per axis.
  const int rank = std::max(1, x.rank());
  Tensors rows(static_cast<size_t>(rank));
  Tensor rest = order;
  for (int i = rank - 1; i >= 0; --i) {
    const Tensor size = c.dim_value(x.rank() == 0 ? Dim(1) : x.dim(i));
    rows[size_t(i)] = rlx::rem(rest, size);
    rest = rlx::div(rest, size);
  }
  const Tensor all = rlx::stack(rows, 0);
  const Tensor meant = c.iota(Shape(DType::i64, {1, n}), 1) < count;
  Item out(rlx::where(meant, all, all.zeros_like()));
  out.bounds.push_back({1, count});
  return {std::move(out)};
}

Items compress(Call& c) {
  Tensor x = c.in(0);
  const bool flat = !c.has_attr("axis");
  if (flat && x.rank() != 1 && !c.item(0).bounds.empty())
    c.unsupported("a choice from all elements of an operand whose size depends on data");
  const int axis = flat ? 0 : c.axis(c.integer("axis", 0), x.rank());
  if (flat) x = x.reshape({x.shape().num_elements()});
  Tensor flags = masked(c, 1, {0}, 0);
  if (const Bound* b = bound_at(c.item(0), axis); b != nullptr && flags.dim(0) == x.dim(axis))
    flags = rlx::logical_and(flags, meant_places(c, x.dim(axis), 0, 1, b->count));
  // What the condition does not reach is left out.
  if (decide_equal(flags.dim(0), x.dim(axis)) == false)
    flags = rlx::pad(flags.cast(DType::i32), {.low = {0}, .high = {x.dim(axis) - flags.dim(0)}}).ne(0);
  Item out = bounded_rows(c, x, chosen_first(flags), count_of(flags), axis);
  for (const Bound& b : c.item(0).bounds) add_bound(out, b);
  return {std::move(out)};
}

// Rows [n, m] in lexicographic order: sorted by one column after the other, from the last to the first.
Tensor lexicographic(const Call& c, const Tensor& rows) {
  Tensor order = c.iota(Shape(DType::i64, {rows.dim(0)}), 0);
  for (int64_t k = rows.dim(1).value() - 1; k >= 0; --k) {
    const Tensor column = rlx::gather(rows.narrow(1, k, 1).squeeze(1), order);
    order = rlx::gather(order, rlx::argsort(column, {.axis = 0}).cast(DType::i64));
  }
  return order;
}

Items unique(Call& c) {
  Tensor x = c.in(0);
  const bool flat = !c.has_attr("axis"), sorted = c.flag("sorted", true);
  const int axis = flat ? 0 : c.axis(c.integer("axis", 0), x.rank());
  if (flat) x = x.reshape({x.shape().num_elements()});
  std::vector<int> perm{axis};
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) perm.push_back(i);
  }
  const Dim n = x.dim(axis);
  const Tensor slices = x.rank() == 1 ? x : x.transpose(perm);
  const Tensor rows = slices.reshape({n, floordiv(x.shape().num_elements(), n)});
  const Tensor order = lexicographic(c, rows), in_order = rlx::gather(rows, order);
  // A row starts a group when it differs from the one before it.
  const Dim more = n - Dim(1);
  const Tensor differs = rlx::any(
      rlx::compare(in_order.narrow(0, 1, more), in_order.narrow(0, 0, more), {.kind = ops::CompareOp::ne}),
      {.axes = {1}, .keep_dim = false});
  const Tensor starts = rlx::concat({c.full({1}, DType::bool_, 1), differs}, {.axis = 0});
  const Tensor group = starts.cast(DType::i64).cumsum(0) - 1;
  const Tensor count = count_of(starts);
  // The sort is stable: the first of a group is its first occurrence. Places not used hold 0.
  const Tensor zeros = c.full({n}, DType::i64, 0);
  const Tensor group_of_slice = rlx::scatter(zeros, order, group);
  const Tensor size_of_group = rlx::scatter_add(c.full({n}, DType::i64, 1), group, {.rows = n});
  const Tensor first = rlx::scatter(c.full({n}, DType::i64, double(int64_t(1) << 52)), group, order,
                                    {.kind = ops::ScatterKind::min});
  Tensor rank_of_group = c.iota(Shape(DType::i64, {n}), 0), ranked = rank_of_group;
  if (!sorted) {
    ranked = rlx::argsort(first, {.axis = 0}).cast(DType::i64);
    rank_of_group = rlx::scatter(zeros, ranked, c.iota(Shape(DType::i64, {n}), 0));
  }
  const Tensor meant = c.iota(Shape(DType::i64, {n}), 0) < count;
  const Tensor first_ranked = rlx::where(meant, rlx::gather(first, ranked), zeros);
  const auto bounded = [&](const Tensor& t) {
    Item out(rlx::where(meant, t, zeros));
    out.bounds.push_back({0, count});
    return out;
  };
  return {bounded_rows(c, x, first_ranked, count, axis), bounded(first_ranked),
          Item(rlx::gather(rank_of_group, group_of_slice)), bounded(rlx::gather(size_of_group, ranked))};
}

// Corners of boxes as (y1, x1, y2, x2) with y1 <= y2 and x1 <= x2, each [.., n].
struct Corners {
  Tensor y1, x1, y2, x2;
};

Corners corners(const Tensor& boxes, bool centred) {
  const auto column = [&](int64_t k) { return boxes.narrow(-1, k, 1).squeeze(-1); };
  if (centred) {
    const Tensor x = column(0), y = column(1), w = column(2) * 0.5, h = column(3) * 0.5;
    return {y - h, x - w, y + h, x + w};
  }
  const Tensor a = column(0), b = column(1), d = column(2), e = column(3);
  return {a.min(d), b.min(e), a.max(d), b.max(e)};
}

// Greedy suppression of one class of one picture: boxes by falling score; a box stays unless one that stays before it
// overlaps it by more than the limit. Returns flags in the order of scores.
Tensor survivors(const Call& c, const Corners& k, const Tensor& candidate, const Tensor& overlap_limit,
                 int64_t n) {
  const Tensor area = (k.y2 - k.y1) * (k.x2 - k.x1);
  const auto row = [](const Tensor& t) { return t.unsqueeze(0); };
  const auto column = [](const Tensor& t) { return t.unsqueeze(1); };
  const Tensor h = (column(k.y2).min(row(k.y2)) - column(k.y1).max(row(k.y1))).max(0.0);
  const Tensor w = (column(k.x2).min(row(k.x2)) - column(k.x1).max(row(k.x1))).max(0.0);
  const Tensor both = h * w, whole = column(area) + row(area) - both;
  const Tensor iou = (whole > 0.0).where(both / whole, 0.0);
  const Tensor clash = iou > overlap_limit;  // [n, n]
  const Tensor none = c.full({n}, DType::bool_, 0);
  const Tensor places = c.iota(Shape(DType::i64, {n}), 0);
  const Tensors xs{clash, candidate, places};
  return rlx::scan(
      Tensors{none}, {.xs = xs}, [&](Tensor kept, Tensor clashes, Tensor is_candidate, Tensor i) {
        const Tensor hit = rlx::any(rlx::logical_and(kept, clashes), {.axes = {}, .keep_dim = false});
        const Tensor stays = rlx::logical_and(is_candidate, rlx::logical_not(hit));
        const Tensor here = places.eq(i);
        return rlx::logical_or(kept, rlx::logical_and(here, stays));
      })[0];
}

Items non_max_suppression(Call& c) {
  const Tensor boxes = c.in(0), scores = c.in(1);  // [batch, n, 4], [batch, classes, n]
  const bool centred = c.flag("center_point_box");
  const int64_t batch = scores.dim(0).value(), classes = scores.dim(1).value(), n = scores.dim(2).value();
  int64_t most = c.has(2) ? c.known_int(2, "the most boxes of a class") : 0;
  most = std::min(most, n);
  const Tensor overlap = c.has(3) ? c.in(3).reshape({}) : c.scalar(DType::f32, 0);
  const Tensor threshold = c.has(4) ? c.in(4).reshape({}) : Tensor();
  Tensor valid;  // boxes that are meant, where their number depends on data
  for (int operand : {0, 1}) {
    for (const Bound& b : c.item(operand).bounds) {
      if (b.axis != (operand == 0 ? 1 : 2))
        c.unsupported("a number of pictures or classes that depends on data");
      valid = c.iota(Shape(DType::i64, {n}), 0) < b.count;
    }
  }
  if (most <= 0 || batch * classes == 0) return {c.full({0, 3}, DType::i64, 0)};
  Tensors rows, flags;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t k = 0; k < classes; ++k) {
      const Tensor score = scores[b][k];
      Tensor candidate = c.full({n}, DType::bool_, 1);
      if (!threshold.is_empty()) candidate = score > threshold;
      if (!valid.is_empty()) candidate = rlx::logical_and(candidate, valid);
      const Tensor order =
          rlx::argsort(
              rlx::where(candidate, score, c.scalar(score.dtype(), -std::numeric_limits<double>::infinity())),
              {.axis = 0, .descending = true})
              .cast(DType::i64);
      const Tensor kept = survivors(c, corners(rlx::gather(boxes[b], order), centred),
                                    rlx::gather(candidate, order), overlap, n);
      // The first `most` that stay.
      const Tensor limited = rlx::logical_and(kept, kept.cast(DType::i64).cumsum(0) <= double(most));
      const Tensor first = chosen_first(limited).narrow(0, 0, most);
      const Tensor box = rlx::gather(order, first);
      rows.push_back(
          rlx::stack({c.full({most}, DType::i64, double(b)), c.full({most}, DType::i64, double(k)), box}, 1));
      flags.push_back(rlx::gather(limited, first));
    }
  }
  const Tensor all = rows.size() == 1 ? rows[0] : rlx::concat(rows, {.axis = 0});
  const Tensor meant = flags.size() == 1 ? flags[0] : rlx::concat(flags, {.axis = 0});
  return {bounded_rows(c, all, chosen_first(meant), count_of(meant))};
}

}  // namespace

std::span<const Entry> selection_entries() {
  static const std::vector<Entry> kEntries{
      {"Compress", 9, compress, BoundsRule::by_hand},
      {"NonMaxSuppression", 10, non_max_suppression, BoundsRule::by_hand},
      {"NonZero", 9, non_zero, BoundsRule::by_hand},
      {"Unique", 11, unique},
  };
  return kEntries;
}

}  // namespace rlx::onnx
