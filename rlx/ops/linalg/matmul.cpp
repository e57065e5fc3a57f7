#include "rlx/ops/linalg/matmul.h"

#include <complex>

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/linalg/dot_general.h"
#include "rlx/ops/linalg/matrix.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {
namespace {

Shape batch_of(const Shape& s) { return s.with_dims(Dims(s.dims().begin(), s.dims().end() - 2)); }

template <class T>
std::vector<T> multiply(const std::vector<T>& a, const std::vector<T>& b, const Eval& c) {
  const Shape &ls = c.in(0).shape(), &rs = c.in(1).shape();
  const int64_t m = ls.dim(-2).value(), k = ls.dim(-1).value(), n = rs.dim(-1).value();
  const Dims batch = batch_of(c.out()).dims();
  const auto at_a = broadcast_positions(batch_of(ls).dims(), batch);
  const auto at_b = broadcast_positions(batch_of(rs).dims(), batch);
  std::vector<T> y(size_t(c.out().elements()));
  for (size_t t = 0; t < at_a.size(); ++t) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        T sum = 0;
        for (int64_t p = 0; p < k; ++p)
          sum += a[size_t((at_a[t] * m + i) * k + p)] * b[size_t((at_b[t] * k + p) * n + j)];
        y[(t * size_t(m) + size_t(i)) * size_t(n) + size_t(j)] = sum;
      }
    }
  }
  return y;
}

}  // namespace

Shape product_shape(Infer& c, const Shape& left, int i) {
  const Shape& right = c.in(i);
  if (left.rank() < 2) c.fail(left, " has rank ", left.rank(), "; it must have rank 2 or more");
  c.require_min_rank(i, 2);
  if (decide_equal(left.dim(-1), right.dim(-2)) == false) {
    c.fail("inner sizes differ, ", left, " x ", c.operand_name(i), ": ", right, "; ", c.operand_name(i),
           " must have ", left.dim(-1), " rows");
  }
  c.same(left.dim(-1), right.dim(-2), "inner sizes");
  Dims dims = c.broadcast(batch_of(left), batch_of(right));
  dims.push_back(left.dim(-2));
  dims.push_back(right.dim(-1));
  return left.with_dims(std::move(dims));
}

Shapes Matmul::infer(Infer& c, Attrs&) {
  require_product(c);
  c.require_min_rank(0, 2);
  return {product_shape(c, c.in(0), 1).with_dtype(product_dtype(c.in(0).dtype()))};
}

Literals Matmul::reference(const Eval& c, const Attrs&) {
  if (is_complex(c.out().dtype()))
    return {Literal::complexes(c.out(), multiply(c.in(0).to_complexes(), c.in(1).to_complexes(), c))};
  if (is_integer(c.out().dtype()))
    return {Literal::integers(c.out(), multiply(c.in(0).to_integers(), c.in(1).to_integers(), c))};
  return {Literal::reals(c.out(), multiply(c.in(0).to_reals(), c.in(1).to_reals(), c))};
}

namespace {

// All axes but the last as rows of a matrix.
Expr as_rows(Expr x) {
  const Dims& dims = x.shape().dims();
  return reshape(x, {product(Dims(dims.begin(), dims.end() - 1)), dims.back()});
}

}  // namespace

Exprs Matmul::vjp(const Vjp& c, const Attrs&) {
  Exprs out(2);
  // A matrix that serves a whole batch: the sum over the batch is part of one product.
  const bool shared = c.in(1).rank() == 2 && c.in(0).rank() > 2;
  if (c.wants(0)) out[0] = unbroadcast(matmul(c.dy(), adjoint(c.in(1))), c.in(0).shape().dims());
  if (c.wants(1))
    out[1] = shared ? matmul(adjoint(as_rows(c.in(0))), as_rows(c.dy()))
                    : unbroadcast(matmul(adjoint(c.in(0)), c.dy()), c.in(1).shape().dims());
  return out;
}

Exprs Matmul::jvp(const Jvp& c, const Attrs&) {
  return {add_or(c.has_dx(0) ? matmul(c.dx(0), c.in(1)) : Expr{},
                 c.has_dx(1) ? matmul(c.in(0), c.dx(1)) : Expr{})};
}

// Batch axes broadcast, so a batch in front only needs size-1 axes up to the other operand's rank.
Exprs Matmul::vmap(const Vmap& c, const Attrs&) {
  const Exprs aligned = align_batched(c);
  return {matmul(aligned[0], aligned[1])};
}

double product_operations(std::span<const Shape> in, std::span<const Shape> out) {
  return 2.0 * double(out[0].elements()) * double(in[0].dim(-1).value());
}

std::vector<OpSample<Matmul::Attrs>> Matmul::samples() {
  return {{{}, {"f32[2,3]", "f32[3,4]"}},   {{}, {"f64[2,1,3,5]", "f64[4,5,2]"}},
          {{}, {"f32[3,2,5]", "f32[5,1]"}}, {{}, {"f32[0,3]", "f32[3,2]"}},
          {{}, {"f32[2,0]", "f32[0,2]"}},   {{}, {"f16[1,1]", "f16[1,1]"}},
          {{}, {"bf16[2,7]", "bf16[7,3]"}}, {{}, {"i8[2,5]", "u8[5,3]"}},
          {{}, {"c64[2,3]", "c64[3,2]"}},   {{}, {"i32[2,2]", "i32[2,2]"}}};
}

Expr matmul(Expr lhs, Expr rhs) { return make<Matmul>(*lhs.graph, {}, {lhs, rhs}); }

}  // namespace rlx::ops
