#include "rlx/ops/shape/dynamic_slice.h"

#include <algorithm>

#include "rlx/ir/leaves.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/logical.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/index/gather.h"
#include "rlx/ops/index/indices.h"
#include "rlx/ops/shape/box.h"
#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/iota.h"
#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {
namespace {

void check_starts(Infer& c, int operand) {
  const Shape& starts = c.in(operand);
  c.require_index(operand);
  c.require_rank(operand, 1);
  if (decide_equal(starts.dim(0), Dim(c.in(0).rank())) == false)
    c.fail("starts: ", starts, " has ", starts.dim(0), " entries for x: ", c.in(0));
  c.same(starts.dim(0), Dim(c.in(0).rank()), "entries of starts and rank of x");
}

void check_box(Infer& c, const Dims& box, std::string_view what) {
  const Shape& x = c.in(0);
  if (int(box.size()) != x.rank()) c.fail(what, " ", box, " has ", box.size(), " entries for x: ", x);
  for (int k = 0; k < x.rank(); ++k) {
    const Dim size = box[size_t(k)];
    if (size.is_inferred()) c.fail(what, " ", box, " has a negative entry");
    if (size.is_static() && x.dim(k).is_static() && size.value() > x.dim(k).value())
      c.fail(what, " ", box, " does not fit x: ", x, "; axis ", k, " has size ", x.dim(k));
  }
}

// Positions of the box in x, by the limited starts.
std::vector<int64_t> dynamic_positions(const Eval& c, int starts_operand, const Dims& box,
                                       std::string_view op) {
  const Dims& dims = c.in(0).shape().dims();
  auto start = index_values(c.in(starts_operand), op, "starts");
  for (size_t k = 0; k < dims.size(); ++k)
    start[k] = std::clamp<int64_t>(start[k], 0, dims[k].value() - box[k].value());
  return box_positions(box, dims, start, std::vector<int64_t>(dims.size(), 1));
}

// Under a batch of starts [batch, rank]: the limited start of one axis, i64[batch,1].
Expr limited_start(Expr starts, int axis, Dim size, Dim box) {
  const Expr s = narrow(cast(starts, DType::i64), 1, axis, 1);
  return max(min(s, dim_value(*s.graph, size - box)), scalar_like(s, 0));
}

Expr with_zero_front(Expr starts) {
  return concat({full(*starts.graph, Shape(starts.dtype(), {1}), 0), starts}, 0);
}

}  // namespace

Shapes DynamicSlice::infer(Infer& c, Attrs& a) {
  check_starts(c, 1);
  check_box(c, a.sizes, "sizes");
  return {c.in(0).with_dims(a.sizes)};
}

Literals DynamicSlice::reference(const Eval& c, const Attrs& a) {
  return {pick_elements(c.in(0), dynamic_positions(c, 1, a.sizes, name), c.out())};
}

Exprs DynamicSlice::vjp(const Vjp& c, const Attrs&) {
  return {dynamic_update_slice(zeros_like(c.in(0)), c.dy(), c.in(1)), Expr{}};
}

Exprs DynamicSlice::jvp(const Jvp& c, const Attrs& a) {
  return {c.has_dx(0) ? dynamic_slice(c.dx(0), c.in(1), a.sizes) : Expr{}};
}

// With a place for each example the box is gathered axis by axis.
Exprs DynamicSlice::vmap(const Vmap& c, const Attrs& a) {
  if (!c.batched(1)) {
    Dims sizes = a.sizes;
    sizes.insert(sizes.begin(), c.size);
    return {dynamic_slice(c.in(0), with_zero_front(c.in(1)), sizes)};
  }
  Expr y = lifted(c, 0);
  for (int k = 0; k < int(a.sizes.size()); ++k) {
    const Dim box = a.sizes[size_t(k)];
    const Expr places = iota(c.graph, Shape(DType::i64, {1, box}), 1);
    y = batched_gather(y, limited_start(c.in(1), k, y.dim(k + 1), box) + places, k + 1, 1);
  }
  return {y};
}

std::vector<OpSample<DynamicSlice::Attrs>> DynamicSlice::samples() {
  return {{{{2, 3}}, {"f32[4,3]", "i32[2] <3"}}, {{{1}}, {"f64[5]", "i64[1] in -3..9"}},
          {{{0, 2}}, {"f32[2,2]", "i32[2] <2"}}, {{{}}, {"f32[]", "i32[0]"}},
          {{{3}}, {"i32[7]", "u8[1] <5"}},       {{{1, 1, 2}}, {"c64[2,1,3]", "i16[3] <2"}},
          {{{1}}, {"bool[1]", "i32[1] <1"}}};
}

Shapes DynamicUpdateSlice::infer(Infer& c, Attrs&) {
  c.same_dtype({0, 1});
  check_starts(c, 2);
  check_box(c, c.in(1).dims(), "update");
  return {c.in(0)};
}

Literals DynamicUpdateSlice::reference(const Eval& c, const Attrs&) {
  Literal y = c.in(0);
  put_elements(c.in(1), dynamic_positions(c, 2, c.in(1).shape().dims(), name), y);
  return {y};
}

Exprs DynamicUpdateSlice::vjp(const Vjp& c, const Attrs&) {
  Exprs out(3);
  if (c.wants(0)) out[0] = dynamic_update_slice(c.dy(), zeros_like(c.in(1)), c.in(2));
  if (c.wants(1)) out[1] = dynamic_slice(c.dy(), c.in(2), c.in(1).shape().dims());
  return out;
}

Exprs DynamicUpdateSlice::jvp(const Jvp& c, const Attrs&) {
  if (!c.has_dx(0) && !c.has_dx(1)) return {Expr{}};
  return {dynamic_update_slice(c.dx(0), c.dx(1), c.in(2))};
}

// With a place for each example: every element of x asks which element of the update lies on it, if any.
Exprs DynamicUpdateSlice::vmap(const Vmap& c, const Attrs&) {
  if (!c.batched(2)) return {dynamic_update_slice(lifted(c, 0), lifted(c, 1), with_zero_front(c.in(2)))};
  const Expr x = lifted(c, 0);
  Expr update = lifted(c, 1), inside;
  for (int k = 1; k < x.rank(); ++k) {
    const Dim size = x.dim(k), box = update.dim(k);
    if (box == Dim(0)) return {x};
    if (!box.is_static()) {  // it may be 0: something to gather from where nothing is a hit
      Dims edge = update.shape().dims();
      edge[size_t(k)] = 1;
      update = concat({update, full(c.graph, Shape(update.dtype(), edge), 0)}, k);
    }
    const Expr offset =
        iota(c.graph, Shape(DType::i64, {1, size}), 1) - limited_start(c.in(2), k - 1, size, box);
    Dims dims(size_t(x.rank()), Dim(1));
    dims[0] = c.size, dims[size_t(k)] = size;
    const Expr hit = logical_and(compare(CompareOp::ge, offset, scalar_like(offset, 0)),
                                 less(offset, dim_value(c.graph, box)));
    inside = inside ? logical_and(inside, reshape(hit, dims)) : reshape(hit, dims);
    update = batched_gather(update, offset, k, 1, IndexMode::clamp);
  }
  return {inside ? where(inside, update, x) : update};
}

std::vector<OpSample<NoAttrs>> DynamicUpdateSlice::samples() {
  return {{{}, {"f32[4,3]", "f32[2,3]", "i32[2] <3"}}, {{}, {"f64[5]", "f64[2]", "i64[1] in -3..9"}},
          {{}, {"f32[2,2]", "f32[0,2]", "i32[2] <2"}}, {{}, {"f32[]", "f32[]", "i32[0]"}},
          {{}, {"i32[7]", "i32[3]", "u8[1] <5"}},      {{}, {"c64[2,1,3]", "c64[1,1,2]", "i16[3] <2"}},
          {{}, {"bool[1]", "bool[1]", "i32[1] <1"}}};
}

Expr dynamic_slice(Expr x, Expr starts, Dims sizes) {
  return make<DynamicSlice>(*x.graph, {std::move(sizes)}, {x, starts});
}
Expr dynamic_update_slice(Expr x, Expr update, Expr starts) {
  return make<DynamicUpdateSlice>(*x.graph, {}, {x, update, starts});
}

}  // namespace rlx::ops
