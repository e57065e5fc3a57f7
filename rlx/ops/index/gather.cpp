#include "rlx/ops/index/gather.h"

#include <cstring>
#include <numeric>

#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/index/scatter.h"
#include "rlx/ops/require.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::ops {
namespace {

// Extents of the result: the table's with the axis replaced by the index axes behind the batch.
Dims gathered_dims(const Dims& table, const Dims& indices, int axis, int batch_dims) {
  Dims dims(table.begin(), table.begin() + axis);
  dims.insert(dims.end(), indices.begin() + batch_dims, indices.end());
  dims.insert(dims.end(), table.begin() + axis + 1, table.end());
  return dims;
}

Literal gather_values(const Eval& c, int axis, int batch_dims, IndexMode mode, std::string_view op) {
  const Literal& table = c.in(0);
  const auto [before, size, inner] = axis_view(table.shape(), axis);
  const auto index = index_values_below(size, c.in(1), mode, op);
  int64_t batch = 1;
  for (int i = 0; i < batch_dims; ++i) batch *= table.shape().dim(i).value();
  Literal y = Literal::zeros(c.out());
  if (y.elements() == 0) return y;
  const int64_t outer = before / batch, count = int64_t(index.size()) / batch;
  const size_t row = size_t(inner) * dtype_size(table.dtype());
  std::byte* to = y.mutable_bytes().data();
  for (int64_t o = 0; o < before; ++o) {
    for (int64_t k = 0; k < count; ++k, to += row)
      std::memcpy(to, table.bytes().data() + size_t(o * size + index[size_t(o / outer * count + k)]) * row,
                  row);
  }
  return y;
}

// The transpose of batched_gather: dy with its index axes as one axis behind the batch, summed into rows.
Expr put_back(Expr dy, Expr indices, const Dims& table, int axis, int batch_dims, IndexMode mode) {
  const int index_axes = indices.rank() - batch_dims;
  std::vector<int> perm(size_t(dy.rank()));
  std::iota(perm.begin(), perm.end(), 0);
  std::rotate(perm.begin() + batch_dims, perm.begin() + axis, perm.begin() + axis + index_axes);
  Dims flat(indices.shape().dims().begin(), indices.shape().dims().begin() + batch_dims);
  flat.push_back(product(Dims(indices.shape().dims().begin() + batch_dims, indices.shape().dims().end())));
  const Expr flat_indices = reshape(indices, flat);
  for (int i = batch_dims; i < int(table.size()); ++i) {
    if (i != axis) flat.push_back(table[size_t(i)]);
  }
  const Expr rows = reshape(transpose(dy, perm), flat);
  return move_axis(scatter_add(rows, flat_indices, table[size_t(axis)], batch_dims, mode), batch_dims, axis);
}

}  // namespace

Shapes Gather::infer(Infer& c, Attrs& a) {
  c.require_index(1);
  a.axis = c.axis(a.axis, 0);
  return {c.in(0).with_dims(gathered_dims(c.in(0).dims(), c.in(1).dims(), a.axis, 0))};
}

Literals Gather::reference(const Eval& c, const Attrs& a) {
  return {gather_values(c, a.axis, 0, a.mode, name)};
}

Exprs Gather::vjp(const Vjp& c, const Attrs& a) {
  return {gather_backward(c.dy(), c.in(1), c.in(0).shape().dims(), a.axis, a.mode), Expr{}};
}

Exprs Gather::jvp(const Jvp& c, const Attrs& a) {
  return {c.has_dx(0) ? gather(c.dx(0), c.in(1), a.axis, a.mode) : Expr{}};
}

Exprs Gather::vmap(const Vmap& c, const Attrs& a) {
  if (!c.batched(1)) return {gather(c.in(0), c.in(1), a.axis + 1, a.mode)};
  if (!c.batched(0)) return {move_axis(gather(c.in(0), c.in(1), a.axis, a.mode), a.axis, 0)};
  return {batched_gather(c.in(0), c.in(1), a.axis + 1, 1, a.mode)};
}

std::vector<OpSample<Gather::Attrs>> Gather::samples() {
  return {{{0}, {"f32[9,5]", "i32[2,4] <9"}},
          {{1}, {"f64[3,4,2]", "i64[5] <4"}},
          {{-1}, {"f32[2,3]", "u32[] <3"}},
          {{0}, {"f16[4]", "u8[3] <4"}},
          {{0}, {"i32[3,2]", "i32[0]"}},
          {{0}, {"bool[1,2]", "i32[1] <1"}},
          {{1, IndexMode::clamp}, {"f32[2,3]", "i32[4] in -2..5"}},
          {{0}, {"c64[3]", "i16[2,2] <3"}},
          {{1}, {"f32[0,3]", "i32[2] <3"}}};
}

Shapes BatchedGather::infer(Infer& c, Attrs& a) {
  const Shape &table = c.in(0), &indices = c.in(1);
  c.require_index(1);
  a.axis = c.axis(a.axis, 0);
  if (a.batch_dims < 0 || a.batch_dims > a.axis || a.batch_dims > indices.rank()) {
    c.fail("batch_dims is ", a.batch_dims, " with axis ", a.axis, " and indices: ", indices,
           "; it must not exceed the axis nor the rank of the indices");
  }
  Dims dims = table.dims();
  for (int i = 0; i < a.batch_dims; ++i)
    dims[size_t(i)] =
        c.same(table.dim(i), indices.dim(i), cat("sizes of batch axis ", i, " of table and indices"));
  return {table.with_dims(gathered_dims(dims, indices.dims(), a.axis, a.batch_dims))};
}

Literals BatchedGather::reference(const Eval& c, const Attrs& a) {
  return {gather_values(c, a.axis, a.batch_dims, a.mode, name)};
}

Exprs BatchedGather::vjp(const Vjp& c, const Attrs& a) {
  return {put_back(c.dy(), c.in(1), c.in(0).shape().dims(), a.axis, a.batch_dims, a.mode), Expr{}};
}

Exprs BatchedGather::jvp(const Jvp& c, const Attrs& a) {
  return {c.has_dx(0) ? batched_gather(c.dx(0), c.in(1), a.axis, a.batch_dims, a.mode) : Expr{}};
}

Exprs BatchedGather::vmap(const Vmap& c, const Attrs& a) {
  return {batched_gather(lifted(c, 0), lifted(c, 1), a.axis + 1, a.batch_dims + 1, a.mode)};
}

std::vector<OpSample<BatchedGather::Attrs>> BatchedGather::samples() {
  return {{{1, 1}, {"f32[2,5,3]", "i32[2,4] <5"}},
          {{2, 1}, {"f64[2,3,4,2]", "i64[2,3] <4"}},
          {{-1, 2}, {"f32[2,2,6]", "i32[2,2,1,3] <6"}},
          {{1, 1}, {"f16[3,4]", "u8[3] <4"}},
          {{0, 0}, {"i32[3,2]", "i32[2] <3"}},
          {{1, 1}, {"bool[0,2]", "i32[0,5] <2"}},
          {{1, 1, IndexMode::clamp}, {"f32[2,3]", "i32[2,4] in -2..5"}},
          {{1, 1}, {"c64[1,3]", "i16[1,2] <3"}},
          {{1, 1}, {"f32[1,1]", "i32[1] <1"}}};
}

Shapes GatherBackward::infer(Infer& c, Attrs& a) {
  c.require_float_or_complex(0);
  c.require_index(1);
  const int asked = a.axis;
  if (!normalize_axis(a.axis, int(a.table_shape.size())))
    c.fail("axis ", asked, " is out of range for table_shape ", a.table_shape);
  require_dims(c, 0, gathered_dims(a.table_shape, c.in(1).dims(), a.axis, 0),
               cat("(gathered from ", a.table_shape, ")"));
  return {c.in(0).with_dims(a.table_shape)};
}

Exprs GatherBackward::decompose(const Lower& c, const Attrs& a) {
  return {put_back(c.in(0), c.in(1), a.table_shape, a.axis, 0, a.mode)};
}

std::vector<OpSample<GatherBackward::Attrs>> GatherBackward::samples() {
  return {{{{9, 5}, 0}, {"f32[2,4,5]", "i32[2,4] <9"}}, {{{3, 4, 2}, 1}, {"f64[3,5,2]", "i64[5] <4"}},
          {{{2, 3}, -1}, {"f32[2]", "u32[] <3"}},       {{{3, 2}, 0}, {"f32[0,2]", "i32[0]"}},
          {{{1}, 0}, {"f16[1]", "i32[1] <1"}},          {{{3}, 0}, {"c64[2,2]", "i16[2,2] <3"}}};
}

Expr gather(Expr table, Expr indices, int axis, IndexMode mode) {
  return make<Gather>(*table.graph, {axis, mode}, {table, indices});
}
Expr batched_gather(Expr table, Expr indices, int axis, int batch_dims, IndexMode mode) {
  return make<BatchedGather>(*table.graph, {axis, batch_dims, mode}, {table, indices});
}
Expr gather_backward(Expr dy, Expr indices, Dims table_shape, int axis, IndexMode mode) {
  return make<GatherBackward>(*dy.graph, {std::move(table_shape), axis, mode}, {dy, indices});
}

}  // namespace rlx::ops
