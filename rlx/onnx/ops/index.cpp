// Reading by index.
#include "rlx/lang/operators.h"
#include "rlx/onnx/bounds.h"
#include "rlx/onnx/follow.h"
#include "rlx/onnx/places.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {
namespace {

Items gather(Call& c) {
  const Tensor table = c.in(0);
  const int axis = c.axis(c.integer("axis", 0), table.rank());
  const Item& at = c.item(1);
  Tensor indices = c.in(1);
  // A constant that is not negative needs no wrapping.
  bool wrap = true;
  if (const auto known = c.constant(1)) {
    wrap = false;
    for (const int64_t i : known->to_integers()) wrap = wrap || i < 0;
  }
  // Negative places count from the end of what is meant.
  const Bound* end = bound_at(c.item(0), axis);
  if (wrap) indices = end == nullptr ? wrapped(c, indices, table.dim(axis)) : wrapped(indices, end->count);
  // Places beyond the count of bounded indices may hold anything.
  const auto mode = at.bounds.empty() ? ops::IndexMode::error : ops::IndexMode::clamp;
  Item out(rlx::gather(table, indices, {.axis = axis, .mode = mode}));
  for (const Bound& b : at.bounds) out.bounds.push_back({axis + b.axis, b.count});
  for (const Bound& b : c.item(0).bounds) {
    if (b.axis != axis) out.bounds.push_back({b.axis < axis ? b.axis : b.axis + indices.rank() - 1, b.count});
  }
  return {std::move(out)};
}

Items gather_elements(Call& c) {
  Tensor x = c.in(0);
  const int axis = c.axis(c.integer("axis", 0), x.rank());
  const Bound* end = bound_at(c.item(0), axis);
  Tensor indices = end == nullptr ? wrapped(c, c.in(1), x.dim(axis)) : wrapped(c.in(1), end->count);
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis && indices.dim(i) != x.dim(i)) x = x.narrow(i, 0, indices.dim(i));
  }
  // Places beyond the count of bounded indices may hold anything.
  if (!c.item(1).bounds.empty()) indices = indices.max(0).min(c.dim_value(x.dim(axis) - Dim(1)));
  Item out(rlx::take_along(x, indices, {.axis = axis}));
  out.bounds = c.item(1).bounds;
  return {std::move(out)};
}

Items gather_nd(Call& c) {
  const Tensor x = c.in(0);
  Tensor indices = c.in(1);
  const int batch = int(c.integer("batch_dims", 0)), depth = int(indices.dim(-1).value());
  if (batch < 0 || batch + depth > x.rank())
    throw c.wrong("indices of ", depth, " entries behind ", batch, " batch axes, for ", x.shape());
  const std::vector<Bound>& bounds = c.item(1).bounds;
  Item out;
  out.kind = Item::Kind::tensor;
  out.bounds = bounds;  // the axes of the indices come first
  for (const Bound& b : c.item(0).bounds) {
    if (b.axis >= depth) {
      add_bound(out, {indices.rank() - 1 + b.axis - depth, b.count});
    } else if (b.axis == 0) {
      // Negative places count from the end of what is meant.
      const Tensor first = wrapped(indices.narrow(-1, 0, 1), b.count);
      const Tensor rest = indices.narrow(-1, 1, depth - 1).cast(DType::i64);
      indices = depth == 1 ? first : rlx::concat({first, rest}, {.axis = indices.rank() - 1});
    } else {
      c.unsupported("indices into an axis whose size depends on data, behind others");
    }
  }
  if (!out.bounds.empty() && batch > 0) c.unsupported("an operand whose size depends on data");
  const Dims& dims = x.shape().dims();
  const Dims extents(dims.begin() + batch, dims.begin() + batch + depth);
  const Tensor flat = flat_places(c, indices, extents);
  Dims joined(dims.begin(), dims.begin() + batch);
  joined.push_back(product(extents));
  joined.insert(joined.end(), dims.begin() + batch + depth, dims.end());
  const Tensor rows = x.reshape(joined);
  // Places beyond the count of bounded indices may hold anything.
  const auto mode = bounds.empty() ? ops::IndexMode::error : ops::IndexMode::clamp;
  out.tensor = batch == 0 ? rlx::gather(rows, flat, {.axis = 0, .mode = mode})
                          : rlx::batched_gather(rows, flat, {.axis = batch, .batch_dims = batch});
  return {std::move(out)};
}

Items one_hot(Call& c) {
  const Tensor indices = c.in(0);
  const auto depths = c.sizes(1, "the depth");
  const auto depth = depths.at(0).dim();
  if (depths.size() == 1 && depths[0].is_counted()) c.unsupported("a depth that depends on data");
  if (depths.size() != 1 || !depth) throw c.wrong("the depth must be one number, not negative");
  const Tensor values = c.in(2);
  const int axis = c.axis(c.integer("axis", -1), indices.rank() + 1);
  const Tensor i = indices.cast(DType::i64), wrapped_i = (i < 0).where(i + c.dim_value(*depth), i);
  const Tensor hot = rlx::one_hot(wrapped_i, {.depth = *depth, .axis = axis, .dtype = DType::bool_});
  Item out(rlx::where(hot, values.narrow(0, 1, 1).reshape({}), values.narrow(0, 0, 1).reshape({})));
  for (const Bound& b : c.item(0).bounds)
    out.bounds.push_back({b.axis < axis ? b.axis : b.axis + 1, b.count});
  return {std::move(out)};
}

}  // namespace

std::span<const Entry> index_entries() {
  static const std::vector<Entry> kEntries{
      {"Gather", 1, gather, BoundsRule::by_hand, follow_gather},
      {"GatherElements", 11, gather_elements, BoundsRule::by_hand},
      {"GatherND", 11, gather_nd, BoundsRule::by_hand},
      {"OneHot", 9, one_hot, BoundsRule::by_hand},
  };
  return kEntries;
}

}  // namespace rlx::onnx
