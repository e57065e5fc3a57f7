#include "rlx/ops/index/scatter.h"

#include "rlx/ir/leaves.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/index/gather.h"
#include "rlx/ops/require.h"
#include "rlx/ops/shape/expand.h"
#include "rlx/ops/shape/iota.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {
namespace {

// Checks indices [b.., U] against updates [b.., U, t..].
void check_updates(Infer& c, int indices, int updates, int batch_dims) {
  if (batch_dims < 0) c.fail("batch_dims is ", batch_dims, "; it must not be negative");
  c.require_index(indices);
  c.require_min_rank(updates, batch_dims + 1);
  const Dims& dims = c.in(updates).dims();
  require_dims(c, indices, Dims(dims.begin(), dims.begin() + batch_dims + 1), "(one index for each update)");
}

template <class T>
T combine(ScatterKind kind, T old, T update) {
  if (kind == ScatterKind::set) return update;
  if (kind == ScatterKind::add) return Add::eval(old, update);
  if constexpr (!std::is_same_v<T, std::complex<double>>) {
    return kind == ScatterKind::max ? Max::eval(old, update) : Min::eval(old, update);
  }
  return old;
}

struct Rows {
  int64_t batch, rows, updates, inner;
};

template <class T>
std::vector<T> scatter_values(std::vector<T> y, const std::vector<T>& updates,
                              const std::vector<int64_t>& index, const Rows& s, ScatterKind kind) {
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t u = 0; u < s.updates; ++u) {
      const int64_t from = b * s.updates + u, row = b * s.rows + index[size_t(from)];
      for (int64_t i = 0; i < s.inner; ++i) {
        T& at = y[size_t(row * s.inner + i)];
        at = combine(kind, at, updates[size_t(from * s.inner + i)]);
      }
    }
  }
  return y;
}

}  // namespace

Shapes Scatter::infer(Infer& c, Attrs& a) {
  const Shape& base = c.in(0);
  c.same_dtype({0, 2});
  if (a.kind != ScatterKind::set) c.require_numeric(0);
  if (is_complex(base.dtype()) && (a.kind == ScatterKind::max || a.kind == ScatterKind::min))
    c.fail("base: ", base, " is complex and has no order");
  check_updates(c, 1, 2, a.batch_dims);
  c.require_min_rank(0, a.batch_dims + 1);
  require_dims(c, 2, base.with_dim(a.batch_dims, c.in(2).dim(a.batch_dims)).dims(), "(whole rows of base)");
  return {base};
}

Literals Scatter::reference(const Eval& c, const Attrs& a) {
  const Literal &base = c.in(0), &updates = c.in(2);
  const auto [batch, rows, inner] = axis_view(base.shape(), a.batch_dims);
  const Rows s{batch, rows, updates.shape().dim(a.batch_dims).value(), inner};
  const auto index = index_values_below(rows, c.in(1), a.mode, name);
  if (is_complex(base.dtype()))
    return {Literal::complexes(
        c.out(), scatter_values(base.to_complexes(), updates.to_complexes(), index, s, a.kind))};
  if (is_float(base.dtype()))
    return {Literal::reals(c.out(), scatter_values(base.to_reals(), updates.to_reals(), index, s, a.kind))};
  return {Literal::integers(c.out(),
                            scatter_values(base.to_integers(), updates.to_integers(), index, s, a.kind))};
}

namespace {

// For each update, whether it was the last one for its row: 1 or 0, with size-1 axes behind it.
Expr last_of_row(Expr base, Expr indices, Expr updates, const Scatter::Attrs& a) {
  Dims per_row(base.shape().dims().begin(), base.shape().dims().begin() + a.batch_dims + 1);
  const Shape order(DType::i64, indices.shape().dims());
  const Expr number = iota(*base.graph, order, a.batch_dims);
  const Expr last = scatter(full(*base.graph, Shape(DType::i64, per_row), -1), indices, number,
                            ScatterKind::max, a.batch_dims, a.mode);
  Dims dims = order.dims();
  dims.resize(size_t(updates.rank()), Dim(1));
  return reshape(equal(batched_gather(last, indices, a.batch_dims, a.batch_dims, a.mode), number), dims);
}

}  // namespace

Exprs Scatter::vjp(const Vjp& c, const Attrs& a) {
  const Expr base = c.in(0), indices = c.in(1), updates = c.in(2), dy = c.dy();
  const auto picked = [&](Expr t) { return batched_gather(t, indices, a.batch_dims, a.batch_dims, a.mode); };
  Exprs out(3);
  if (a.kind == ScatterKind::add) {
    out[0] = dy;
    if (c.wants(2)) out[2] = picked(dy);
  } else if (a.kind == ScatterKind::set) {
    if (c.wants(0)) out[0] = scatter(dy, indices, zeros_like(updates), a.kind, a.batch_dims, a.mode);
    if (c.wants(2)) out[2] = where(last_of_row(base, indices, updates, a), picked(dy), scalar_like(dy, 0));
  } else {
    const Expr hit_base = cast(equal(base, c.out()), dy.dtype());
    const Expr hit_update = cast(equal(updates, picked(c.out())), dy.dtype());
    const Expr share = dy / scatter(hit_base, indices, hit_update, ScatterKind::add, a.batch_dims, a.mode);
    if (c.wants(0)) out[0] = share * hit_base;
    if (c.wants(2)) out[2] = picked(share) * hit_update;
  }
  return out;
}

Exprs Scatter::vmap(const Vmap& c, const Attrs& a) {
  return {scatter(lifted(c, 0), lifted(c, 1), lifted(c, 2), a.kind, a.batch_dims + 1, a.mode)};
}

std::vector<OpSample<Scatter::Attrs>> Scatter::samples() {
  using enum ScatterKind;
  return {{{set}, {"f32[5,3]", "i32[4] <5", "f32[4,3]"}},
          {{add}, {"f64[3,2]", "i64[7] <3", "f64[7,2]"}},
          {{max}, {"f32[4] distinct", "i32[6] <4", "f32[6] distinct"}},
          {{min}, {"f32[3,2] distinct", "u8[4] <3", "f32[4,2] distinct"}},
          {{set, 1}, {"f32[2,4,2]", "i32[2,3] <4", "f32[2,3,2]"}},
          {{add, 2}, {"f32[2,1,3]", "i32[2,1,2] <3", "f32[2,1,2]"}},
          {{set}, {"bool[3]", "i32[2] <3", "bool[2]"}},
          {{add}, {"f32[3]", "i32[0]", "f32[0]"}},
          {{add, 0, IndexMode::clamp}, {"i32[1]", "i32[3] in -2..2", "i32[3]"}},
          {{set}, {"c64[3,1]", "u32[2] <3", "c64[2,1]"}},
          {{max, 1}, {"i32[2,0,3]", "i32[2,0]", "i32[2,0,3]"}}};
}

Shapes ScatterAdd::infer(Infer& c, Attrs& a) {
  c.require_numeric(0);
  check_updates(c, 1, 0, a.batch_dims);
  if (a.rows.is_inferred()) c.fail("rows -1 is negative; give the number of rows of the result");
  return {c.in(0).with_dim(a.batch_dims, a.rows)};
}

Exprs ScatterAdd::decompose(const Lower& c, const Attrs& a) {
  return {scatter(full(c.graph, c.out(), 0), c.in(1), c.in(0), ScatterKind::add, a.batch_dims, a.mode)};
}

Exprs ScatterAdd::vmap(const Vmap& c, const Attrs& a) {
  return {scatter_add(lifted(c, 0), lifted(c, 1), a.rows, a.batch_dims + 1, a.mode)};
}

std::vector<OpSample<ScatterAdd::Attrs>> ScatterAdd::samples() {
  return {{{6}, {"f32[8,3]", "i32[8] <6"}},
          {{2}, {"f64[5]", "i64[5] <2"}},
          {{3, 1}, {"f32[2,4,2]", "i32[2,4] <3"}},
          {{4}, {"f32[0,2]", "i32[0]"}},
          {{1}, {"f16[1]", "u8[1] <1"}},
          {{3}, {"i32[4,2]", "i8[4] <3"}},
          {{2, 0, IndexMode::clamp}, {"c64[3]", "i32[3] in -2..4"}}};
}

Expr scatter(Expr base, Expr indices, Expr updates, ScatterKind kind, int batch_dims, IndexMode mode) {
  return make<Scatter>(*base.graph, {kind, batch_dims, mode}, {base, indices, updates});
}
Expr scatter_add(Expr updates, Expr indices, Dim rows, int batch_dims, IndexMode mode) {
  return make<ScatterAdd>(*updates.graph, {rows, batch_dims, mode}, {updates, indices});
}

}  // namespace rlx::ops
