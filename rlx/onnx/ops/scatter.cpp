// Writing by index.
#include <algorithm>

#include "rlx/lang/control.h"
#include "rlx/lang/operators.h"
#include "rlx/onnx/bounds.h"
#include "rlx/onnx/follow.h"
#include "rlx/onnx/places.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {
namespace {

// Products have no scatter of their own: one update after the other multiplies its row.
Tensor scatter_products(const Call& c, const Tensor& base, const Tensor& at, const Tensor& updates) {
  Dims row = base.shape().dims();
  row[0] = 1;
  const Tensor rest = c.full({int64_t(base.rank() - 1)}, DType::i64, 0);
  return rlx::scan(Tensors{base}, {.consts = {rest}, .xs = {at, updates}},
                   [&](Tensor y, Tensor zeros, Tensor i, Tensor u) {
                     const Tensor start = base.rank() == 1
                                              ? i.reshape({1})
                                              : rlx::concat({i.reshape({1}), zeros}, {.axis = 0});
                     const Tensor now = rlx::dynamic_slice(y, start, {.sizes = row});
                     return rlx::dynamic_update_slice(y, now * u.reshape(row), start);
                   })[0];
}

Tensor scattered(const Call& c, const std::string& kind, const Tensor& base, const Tensor& at,
                 const Tensor& updates) {
  using ops::ScatterKind;
  if (kind == "mul") return scatter_products(c, base, at, updates);
  const ScatterKind how = kind == "none"  ? ScatterKind::set
                          : kind == "add" ? ScatterKind::add
                          : kind == "max" ? ScatterKind::max
                                          : ScatterKind::min;
  if (how == ScatterKind::min && kind != "min") throw c.wrong("reduction is '", kind, "'");
  return rlx::scatter(base, at, updates, {.kind = how});
}

// As scattered, without the updates that are not meant: they go to a row behind the others, which is then cut off.
Tensor scattered_part(const Call& c, const Tensor& base, const Tensor& at, const Tensor& updates,
                      const Tensor& meant) {
  const std::string kind = c.text("reduction", "none");
  if (meant.is_empty()) return scattered(c, kind, base, at, updates);
  const Dim rows = base.dim(0);
  Dims high(size_t(base.rank()), 0);
  high[0] = 1;
  const Tensor longer = rlx::pad(base, {.low = Dims(size_t(base.rank()), 0), .high = high});
  return scattered(c, kind, longer, rlx::where(meant, at, c.dim_value(rows)), updates).narrow(0, 0, rows);
}

// Indices and updates of which data decides how many there are may be held in different numbers: the lesser is enough.
void meet(const Call& c, Tensor& indices, Tensor& updates, int axes) {
  for (int i = 0; i < axes; ++i) {
    if (bound_at(c.item(1), i) == nullptr && bound_at(c.item(2), i) == nullptr) continue;
    const auto both = smaller(Size(indices.dim(i)), Size(updates.dim(i)));
    if (!both || !both->dim() || indices.dim(i) == updates.dim(i)) continue;
    indices = indices.narrow(i, 0, *both->dim()), updates = updates.narrow(i, 0, *both->dim());
  }
}

// Which of the updates are meant, by the axes that indices and updates share; empty when all are.
Tensor meant_updates(const Call& c, const Tensor& indices, int axes) {
  Tensor meant;
  const Dims dims = indices.shape().dims();
  for (int i = 0; i < axes; ++i) {
    const Bound* b = bound_at(c.item(1), i);
    if (b == nullptr) b = bound_at(c.item(2), i);
    if (b == nullptr) continue;
    const Tensor here = meant_places(c, dims[size_t(i)], i, axes, b->count);
    meant = meant.is_empty() ? here : rlx::logical_and(meant, here);
  }
  if (meant.is_empty()) return meant;
  const Dims shared(dims.begin(), dims.begin() + axes);
  return meant.expand(shared).reshape({product(shared)});
}

// Results have the bounds of what is written to.
Items with_base_bounds(const Call& c, const Tensor& y) {
  Item out(y);
  out.bounds = c.item(0).bounds;
  return {std::move(out)};
}

Items scatter_elements(Call& c) {
  const Tensor x = c.in(0);
  const int axis = c.axis(c.integer("axis", 0), x.rank());
  Tensor indices = wrapped(c, c.in(1), x.dim(axis)), updates = c.in(2);
  meet(c, indices, updates, x.rank());
  const Shape places(DType::i64, indices.shape().dims());
  Tensor flat = c.full(places.dims(), DType::i64, 0);
  for (int i = 0; i < x.rank(); ++i)
    flat = flat * c.dim_value(x.dim(i)) + (i == axis ? indices : c.iota(places, i));
  const Dim count = indices.shape().num_elements();
  const Tensor y = scattered_part(c, x.reshape({x.shape().num_elements()}), flat.reshape({count}),
                                  updates.reshape({count}), meant_updates(c, indices, indices.rank()));
  return with_base_bounds(c, y.reshape(x.shape().dims()));
}

Items scatter_nd(Call& c) {
  const Tensor x = c.in(0);
  Tensor indices = c.in(1), updates = c.in(2);
  meet(c, indices, updates, std::min(indices.rank() - 1, updates.rank()));
  const int depth = int(indices.dim(-1).value());
  if (depth > x.rank()) throw c.wrong("indices of ", depth, " entries for ", x.shape());
  const Dims& dims = x.shape().dims();
  const Dims extents(dims.begin(), dims.begin() + depth);
  Dims rest(dims.begin() + depth, dims.end()), rows = rest, writes = rest;
  const Tensor flat = flat_places(c, indices, extents);
  const Dim count = flat.shape().num_elements();
  rows.insert(rows.begin(), product(extents));
  writes.insert(writes.begin(), count);
  const Tensor y = scattered_part(c, x.reshape(rows), flat.reshape({count}), updates.reshape(writes),
                                  meant_updates(c, indices, indices.rank() - 1));
  return with_base_bounds(c, y.reshape(dims));
}

// A cache [batch, .., length, ..] and rows written from a place of its own for each batch entry.
Items tensor_scatter(Call& c) {
  const Tensor cache = c.in(0), update = c.in(1);
  const int axis = c.axis(c.integer("axis", -2), cache.rank());
  const bool circular = c.text("mode", "linear") == "circular";
  if (axis == 0) throw c.wrong("axis 0 is that of the batch");
  const Shape places(DType::i64, update.shape().dims());
  Dims per_batch(size_t(cache.rank()), 1);
  per_batch[0] = cache.dim(0);
  Tensor at = c.iota(places, axis);
  if (c.has(2)) at = at + c.in(2).cast(DType::i64).reshape(per_batch);
  if (circular) at = rlx::rem(at, c.dim_value(cache.dim(axis)));
  Tensor flat = c.full(places.dims(), DType::i64, 0);
  for (int i = 0; i < cache.rank(); ++i)
    flat = flat * c.dim_value(cache.dim(i)) + (i == axis ? at : c.iota(places, i));
  const Dim count = update.shape().num_elements();
  return {rlx::scatter(cache.reshape({cache.shape().num_elements()}), flat.reshape({count}),
                       update.reshape({count}))
              .reshape(cache.shape().dims())};
}

}  // namespace

std::span<const Entry> scatter_entries() {
  static const std::vector<Entry> kEntries{
      {"Scatter", 9, scatter_elements, BoundsRule::by_hand},
      {"ScatterElements", 11, scatter_elements, BoundsRule::by_hand, follow_scatter},
      {"ScatterND", 11, scatter_nd, BoundsRule::by_hand, follow_scatter},
      {"TensorScatter", 24, tensor_scatter},
  };
  return kEntries;
}

}  // namespace rlx::onnx
