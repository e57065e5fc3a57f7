#include "rlx/ops/linalg/matrix.h"

#include <limits>

#include "rlx/ir/leaves.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/complex.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/shape/expand.h"
#include "rlx/ops/shape/iota.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::ops {
namespace {

// Row index as a column and column index as a row, for masks of a matrix of x's extents.
std::pair<Expr, Expr> row_and_column(Expr x) {
  return {unsqueeze(index_vector(*x.graph, x.dim(-2)), 1), index_vector(*x.graph, x.dim(-1))};
}

Expr kept_where(CompareOp order, Expr x, int offset) {
  const auto [row, column] = row_and_column(x);
  return where(compare(order, column - row, scalar_like(row, offset)), x, scalar_like(x, 0));
}

}  // namespace

Expr adjoint(Expr x) { return swap_last(conj_of(x)); }

Expr index_vector(Graph& g, Dim n) { return iota(g, Shape(DType::i32, {n}), 0); }

Expr lower_part(Expr x, int offset) { return kept_where(CompareOp::le, x, offset); }
Expr upper_part(Expr x, int offset) { return kept_where(CompareOp::ge, x, offset); }

Expr diagonal_of(Expr x) { return reduce_sum(kept_where(CompareOp::eq, x, 0), {-1}); }

Expr diagonal_matrix(Expr x) {
  Dims dims = x.shape().dims();
  dims.push_back(x.dim(-1));
  return kept_where(CompareOp::eq, expand(unsqueeze(x, x.rank()), dims), 0);
}

Expr identity_like(Expr x) { return kept_where(CompareOp::eq, ones_like(x), 0); }

Expr hermitian_part(Expr x) { return 0.5 * (x + adjoint(x)); }

double epsilon_of(DType t) {
  switch (t) {
    case DType::f16:
      return 0x1p-10;
    case DType::bf16:
      return 0x1p-7;
    case DType::f32:
    case DType::c64:
      return 0x1p-23;
    default:
      return std::numeric_limits<double>::epsilon();
  }
}

Dim require_square(Infer& c, int i) {
  c.require_min_rank(i, 2);
  const Shape& a = c.in(i);
  if (decide_equal(a.dim(-1), a.dim(-2)) == false) {
    c.fail(c.operand_name(i), ": ", a, " is not square; its last two axes must have one size");
  }
  return c.same(a.dim(-1), a.dim(-2), "rows and columns");
}

void require_right_side(Infer& c, int a, int b) {
  const Shape &left = c.in(a), &right = c.in(b);
  const int batch = left.rank() - 2;
  const bool fits = right.rank() == batch + 1 || right.rank() == batch + 2;
  bool agrees = fits;
  for (int i = 0; agrees && i <= batch; ++i) agrees = decide_equal(left.dim(i), right.dim(i)) != false;
  if (!agrees) {
    c.fail(c.operand_name(a), ": ", left, " does not fit ", c.operand_name(b), ": ", right,
           "; it takes [.., N, N] with [.., N] or [.., N, K]");
  }
  for (int i = 0; i <= batch; ++i) c.same(left.dim(i), right.dim(i), "sizes");
}

Expr right_matrix(Expr x, Expr a) { return x.rank() < a.rank() ? unsqueeze(x, x.rank()) : x; }

int64_t matrix_count(int64_t elements, int64_t rows, int64_t columns) {
  return rows * columns == 0 ? 0 : elements / (rows * columns);
}

}  // namespace rlx::ops
