#include "rlx/ops/shape/iota.h"

#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/index/indices.h"
#include "rlx/ops/require.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {

Shapes Iota::infer(Infer& c, Attrs& a) {
  for (const Dim d : a.shape.dims()) {
    if (d.is_inferred()) c.fail("shape ", a.shape, " has an axis of size -1; give a size or a symbol");
  }
  if (a.shape.dtype() == DType::bool_ || is_storage_only(a.shape.dtype()))
    c.fail("shape ", a.shape, " has dtype ", a.shape.dtype(), "; it must be numeric");
  const int asked = a.axis;
  if (!normalize_axis(a.axis, a.shape.rank())) c.fail("axis ", asked, " is out of range for ", a.shape);
  require_positions(c, a.shape.dtype(), a.shape.dim(a.axis));
  return {a.shape};
}

Literals Iota::reference(const Eval& c, const Attrs& a) {
  const auto [outer, length, inner] = axis_view(c.out(), a.axis);
  std::vector<int64_t> v;
  v.reserve(size_t(c.out().elements()));
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t k = 0; k < length; ++k) v.insert(v.end(), size_t(inner), k);
  }
  if (is_integer(c.out().dtype())) return {Literal::integers(c.out(), v)};
  return {Literal::reals(c.out(), std::vector<double>(v.begin(), v.end()))};
}

std::vector<OpSample<Iota::Attrs>> Iota::samples() {
  return {{{parse_shape("i32[5]"), 0}, {}},   {{parse_shape("f32[2,3]"), -1}, {}},
          {{parse_shape("i64[3,2]"), 0}, {}}, {{parse_shape("f64[0,2]"), 1}, {}},
          {{parse_shape("f16[1]"), 0}, {}},   {{parse_shape("c64[3]"), 0}, {}},
          {{parse_shape("u8[2,2,2]"), 1}, {}}};
}

Shapes OneHot::infer(Infer& c, Attrs& a) {
  c.require_index(0);
  if (a.depth.is_inferred()) c.fail("depth -1 is negative");
  if (is_storage_only(a.dtype)) c.fail("dtype ", a.dtype, " only stores; ask for f16 or wider and cast");
  Dims dims = c.in(0).dims();
  const int asked = a.axis;
  if (!normalize_axis(a.axis, c.in(0).rank() + 1))
    c.fail("axis ", asked, " is out of range for a result of rank ", dims.size() + 1);
  dims.insert(dims.begin() + a.axis, a.depth);
  return {Shape(a.dtype, std::move(dims))};
}

Literals OneHot::reference(const Eval& c, const Attrs& a) {
  const auto index = index_values(c.in(0), name, "indices");
  const auto [outer, depth, inner] = axis_view(c.out(), a.axis);
  std::vector<double> v(size_t(c.out().elements()));
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const int64_t d = index[size_t(o * inner + i)];
      if (d >= 0 && d < depth) v[size_t((o * depth + d) * inner + i)] = 1;
    }
  }
  return {Literal::reals(c.out(), v)};
}

Exprs OneHot::decompose(const Lower& c, const Attrs& a) {
  Dims counted(c.out().dims().size(), Dim(1));
  counted[size_t(a.axis)] = a.depth;
  const Expr places = iota(c.graph, Shape(DType::i64, counted), a.axis);
  return {cast(equal(unsqueeze(cast(c.in(0), DType::i64), a.axis), places), a.dtype)};
}

Exprs OneHot::vmap(const Vmap& c, const Attrs& a) { return {one_hot(c.in(0), a.depth, a.axis + 1, a.dtype)}; }

std::vector<OpSample<OneHot::Attrs>> OneHot::samples() {
  return {{{5, -1, DType::f32}, {"i32[3] <5"}}, {{4, 0, DType::f64}, {"i64[2,3] <6"}},
          {{3, 1, DType::i32}, {"u8[2,2] <3"}}, {{1, -1, DType::f16}, {"i32[1] <1"}},
          {{7, -1, DType::bool_}, {"i32[0]"}},  {{2, -2, DType::f32}, {"i16[4] <3"}},
          {{3, 0, DType::c64}, {"u32[] <3"}},   {{0, -1, DType::f32}, {"i32[2] in -2..2"}}};
}

Expr iota(Graph& g, const Shape& shape, int axis) { return make<Iota>(g, {shape, axis}, {}); }
Expr one_hot(Expr indices, Dim depth, int axis, DType dtype) {
  return make<OneHot>(*indices.graph, {depth, axis, dtype}, {indices});
}

}  // namespace rlx::ops
