#include "rlx/ops/linear/grouped_matmul.h"

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/complex.h"
#include "rlx/ops/index/gather.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/numeric.h"
#include "rlx/ops/shape/iota.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::ops {
namespace {

std::vector<int64_t> expert_ids(const Literal& e, int64_t experts, std::string_view op) {
  auto ids = index_values(e, op, "e");
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= experts) {
      throw invalid(op, ": element ", i, " of e is ", ids[i], "; it must be at least 0 and below ", experts);
    }
  }
  return ids;
}

// Expert numbers of joined rows when every example has `experts` matrices of its own.
Expr joined_ids(const Vmap& c, int i, Dim experts) {
  const Expr e = cast(lifted(c, i), DType::i64);
  const Expr example = iota(c.graph, Shape(DType::i64, {c.size, 1}), 0);
  return reshape(e + example * dim_value(c.graph, experts), {c.size * e.dim(1)});
}

void check_rows(Infer& c) {
  c.same_dtype({0, 1});
  c.require_float_or_complex(0);
  c.require_rank(0, 2);
  c.require_index(2);
  c.require_rank(2, 1);
  c.same(c.in(0).dim(0), c.in(2).dim(0), "numbers of rows of x and of e");
}

}  // namespace

Shapes GroupedMatmul::infer(Infer& c, Attrs&) {
  check_rows(c);
  c.require_rank(1, 3);
  const Shape &x = c.in(0), &w = c.in(1);
  if (decide_equal(x.dim(1), w.dim(1)) == false)
    c.fail("w: ", w, " has ", w.dim(1), " rows per expert; x: ", x, " needs ", x.dim(1));
  c.same(x.dim(1), w.dim(1), "inner sizes");
  return {x.with_dims({x.dim(0), w.dim(2)})};
}

Literals GroupedMatmul::reference(const Eval& c, const Attrs&) {
  const Shape& ws = c.in(1).shape();
  const int64_t inner = ws.dim(1).value(), columns = ws.dim(2).value();
  const auto ids = expert_ids(c.in(2), ws.dim(0).value(), name);
  return {by_accumulator(c.out(), [&]<class T>() {
    const auto x = values_as<T>(c.in(0)), w = values_as<T>(c.in(1));
    std::vector<T> y(ids.size() * size_t(columns), T(0));
    for (size_t i = 0; i < ids.size(); ++i) {
      for (int64_t n = 0; n < columns; ++n) {
        for (int64_t k = 0; k < inner; ++k) {
          y[i * size_t(columns) + size_t(n)] +=
              x[i * size_t(inner) + size_t(k)] * w[size_t((ids[i] * inner + k) * columns + n)];
        }
      }
    }
    return y;
  })};
}

Exprs GroupedMatmul::decompose(const Lower& c, const Attrs&) {
  const Expr chosen = gather(c.in(1), c.in(2), 0);  // [M, K, N]
  const Expr y = matmul(unsqueeze(c.in(0), 1), chosen);
  return {reshape(y, c.out().dims())};
}

Exprs GroupedMatmul::vjp(const Vjp& c, const Attrs&) {
  Exprs out(3);
  const Expr x = c.in(0), w = c.in(1), e = c.in(2);
  if (c.wants(0)) out[0] = grouped_matmul(c.dy(), swap_last(conj_of(w)), e);
  if (c.wants(1)) out[1] = grouped_outer(conj_of(x), c.dy(), e, w.dim(0));
  return out;
}

Exprs GroupedMatmul::jvp(const Jvp& c, const Attrs&) {
  return {add_or(c.has_dx(0) ? grouped_matmul(c.dx(0), c.in(1), c.in(2)) : Expr{},
                 c.has_dx(1) ? grouped_matmul(c.in(0), c.dx(1), c.in(2)) : Expr{})};
}

Exprs GroupedMatmul::vmap(const Vmap& c, const Attrs&) {
  const bool own = c.batched(1);
  const Expr w = own ? joined(c, 1) : c.in(1);
  const Expr e = own ? joined_ids(c, 2, c.in(1).dim(1)) : joined(c, 2);
  const Expr y = grouped_matmul(joined(c, 0), w, e);
  return {reshape(y, {c.size, c.in(2).dim(-1), y.dim(1)})};
}

std::vector<OpSample<NoAttrs>> GroupedMatmul::samples() {
  return {{{}, {"f32[7,5]", "f32[4,5,3]", "i32[7] <4"}},   {{}, {"f64[2,3]", "f64[1,3,2]", "i64[2] <1"}},
          {{}, {"f32[0,3]", "f32[2,3,2]", "i32[0] <2"}},   {{}, {"f16[1,1]", "f16[1,1,1]", "u32[1] <1"}},
          {{}, {"bf16[3,2]", "bf16[2,2,2]", "i32[3] <2"}}, {{}, {"c64[2,2]", "c64[2,2,1]", "i32[2] <2"}}};
}

Shapes GroupedOuter::infer(Infer& c, Attrs& a) {
  check_rows(c);
  c.require_rank(1, 2);
  c.same(c.in(0).dim(0), c.in(1).dim(0), "numbers of rows of x and y");
  if (a.experts.is_inferred()) c.fail("experts ", a.experts, " must not be negative");
  return {c.in(0).with_dims({a.experts, c.in(0).dim(1), c.in(1).dim(1)})};
}

Literals GroupedOuter::reference(const Eval& c, const Attrs& a) {
  const int64_t rows = c.in(0).shape().dim(1).value(), columns = c.in(1).shape().dim(1).value();
  const auto ids = expert_ids(c.in(2), a.experts.value(), name);
  return {by_accumulator(c.out(), [&]<class T>() {
    const auto x = values_as<T>(c.in(0)), y = values_as<T>(c.in(1));
    std::vector<T> w(size_t(c.out().elements()), T(0));
    for (size_t i = 0; i < ids.size(); ++i) {
      for (int64_t k = 0; k < rows; ++k) {
        for (int64_t n = 0; n < columns; ++n) {
          w[size_t((ids[i] * rows + k) * columns + n)] +=
              x[i * size_t(rows) + size_t(k)] * y[i * size_t(columns) + size_t(n)];
        }
      }
    }
    return w;
  })};
}

// x masked to the rows of each expert, [E, M, K], then one product per expert.
Exprs GroupedOuter::decompose(const Lower& c, const Attrs& a) {
  const Expr x = c.in(0);
  const Expr mask = cast(one_hot(c.in(2), a.experts, 0), x.dtype());
  return {matmul(swap_last(unsqueeze(mask, -1) * x), c.in(1))};
}

Exprs GroupedOuter::vjp(const Vjp& c, const Attrs&) {
  Exprs out(3);
  if (c.wants(0)) out[0] = grouped_matmul(conj_of(c.in(1)), swap_last(c.dy()), c.in(2));
  if (c.wants(1)) out[1] = grouped_matmul(conj_of(c.in(0)), c.dy(), c.in(2));
  return out;
}

Exprs GroupedOuter::jvp(const Jvp& c, const Attrs& a) {
  return {add_or(c.has_dx(0) ? grouped_outer(c.dx(0), c.in(1), c.in(2), a.experts) : Expr{},
                 c.has_dx(1) ? grouped_outer(c.in(0), c.dx(1), c.in(2), a.experts) : Expr{})};
}

Exprs GroupedOuter::vmap(const Vmap& c, const Attrs& a) {
  const Expr w = grouped_outer(joined(c, 0), joined(c, 1), joined_ids(c, 2, a.experts), c.size * a.experts);
  return {reshape(w, {c.size, a.experts, w.dim(1), w.dim(2)})};
}

double GroupedOuter::operations(std::span<const Shape> in, std::span<const Shape>, const Attrs&) {
  return 2.0 * double(in[0].elements()) * double(in[1].dim(-1).value());
}

std::vector<OpSample<GroupedOuter::Attrs>> GroupedOuter::samples() {
  return {{{4}, {"f32[7,5]", "f32[7,3]", "i32[7] <4"}},
          {{2}, {"f64[2,3]", "f64[2,2]", "i64[2] <1"}},
          {{3}, {"f32[0,3]", "f32[0,2]", "i32[0] <3"}},
          {{1}, {"f16[1,1]", "f16[1,1]", "u32[1] <1"}},
          {{2}, {"c64[2,2]", "c64[2,1]", "i32[2] <2"}}};
}

Expr grouped_matmul(Expr x, Expr w, Expr e) { return make<GroupedMatmul>(*x.graph, {}, {x, w, e}); }
Expr grouped_outer(Expr x, Expr y, Expr e, Dim experts) {
  return make<GroupedOuter>(*x.graph, {experts}, {x, y, e});
}

}  // namespace rlx::ops
