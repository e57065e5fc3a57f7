// Factorisations and solutions of linear systems, column by column: what picks row or column j is a product with the unit
// vector of j.
#include "rlx/base/error.h"
#include "rlx/lang/control.h"
#include "rlx/lang/operators.h"
#include "rlx/onnx/write/lower.h"
#include "rlx/ops/conv/conv_nd.h"
#include "rlx/ops/linalg/triangular_solve.h"
#include "rlx/ops/quant/q_conv2d.h"
#include "rlx/ops/quant/q_matmul.h"
#include "rlx/ops/shape/iota.h"

namespace rlx::onnx {
namespace {

void require_real(const ir::Node& n, const Tensor& x) {
  if (is_complex(x.dtype())) throw invalid("onnx: ", n.op->name, " of complex numbers has no counterpart");
}

Tensor numbers(const Tensor& like, Dim size) { return ops::iota(like.graph(), Shape(DType::i64, {size}), 0); }
Tensor column(const Tensor& v) { return v.unsqueeze(-1); }
Tensor row(const Tensor& v) { return v.unsqueeze(-2); }
/// 1 at place j of so many, as numbers of this type.
Tensor unit(const Tensor& like, Dim size, const Tensor& j) {
  return numbers(like, size).eq(j).cast(like.dtype());
}
Tensor column_of(const Tensor& m, const Tensor& unit) { return (m * unit).sum({-1}); }
Tensor row_of(const Tensor& m, const Tensor& unit) { return (m * column(unit)).sum({-2}); }

Tensor zeros(const Tensor& like, Dims dims) {
  return ir::full(like.graph(), Shape(like.dtype(), std::move(dims)), 0);
}

// y y^T = (a + a^T) / 2.
Tensors cholesky(const ir::Node& n, const Tensors& in) {
  require_real(n, in[0]);
  const Tensor a = (in[0] + in[0].t()) * 0.5;
  const Dim size = a.dim(-1);
  const Tensor y = scan(zeros(a, a.shape().dims()), {.xs = {numbers(a, size)}}, [&](Tensor l, Tensor j) {
    const Tensor e = unit(a, size, j);
    const Tensor rest = column_of(a, e) - rlx::matmul(l, column(row_of(l, e))).squeeze(-1);
    const Tensor diagonal = (rest * e).sum({-1}, true);
    const Tensor made = rlx::where(numbers(a, size) >= j, rest / rlx::sqrt(diagonal), zeros(a, {}));
    return l + column(made) * e;
  });
  return {y};
}

// x of a x = b for b [.., N, K], row by row from the first or the last; entries not solved yet are 0 in x.
Tensor substituted(const Tensor& a, const Tensor& b, bool from_last, bool unit_diagonal) {
  const Dim size = a.dim(-1);
  return scan(zeros(b, b.shape().dims()), {.xs = {numbers(a, size)}, .reverse = from_last},
              [&](Tensor x, Tensor j) {
                const Tensor e = unit(a, size, j), line = row_of(a, e);
                Tensor value = row_of(b, e) - rlx::matmul(row(line), x).squeeze(-2);
                if (!unit_diagonal) value = value / (line * e).sum({-1}, true);
                return x + column(e) * row(value);
              });
}

// Operands with equal batches; a vector on the right is a matrix of one column.
struct System {
  Tensor a, b;
  bool vector = false;
  Tensor result(const Tensor& x) const { return vector ? x.squeeze(-1) : x; }
};

System system_of(const ir::Node& n, const Tensors& in) {
  require_real(n, in[0]);
  System s{in[0], in[1], in[1].rank() == in[0].rank() - 1};
  if (s.vector) s.b = s.b.unsqueeze(-1);
  return s;
}

// Triangles beside the one that is read hold anything: they count as 0.
Tensor triangle(const Tensor& a, bool lower) {
  const Dim size = a.dim(-1);
  const Tensor i = column(numbers(a, size)), k = row(numbers(a, size));
  return rlx::where(lower ? i >= k : i <= k, a, zeros(a, {}));
}

Tensors triangular_solve(const ir::Node& n, const Tensors& in) {
  const auto& attrs = n.as<ops::TriangularSolve>();
  const System s = system_of(n, in);
  const Tensor kept = triangle(s.a, attrs.lower);
  const Tensor a = attrs.transpose ? kept.t() : kept;
  return {s.result(substituted(a, s.b, attrs.lower == attrs.transpose, attrs.unit_diagonal))};
}

// Gaussian elimination with the largest pivot: an upper triangle in the first columns, and the sign of the row swaps.
struct Eliminated {
  Tensor m, sign;
};

Eliminated eliminated(const Tensor& m, Dim size) {
  const Dim width = m.dim(-1);
  Dims batch(m.shape().dims().begin(), m.shape().dims().end() - 2);
  const Tensor one = ir::full(m.graph(), Shape(m.dtype(), batch), 1);
  if (size == Dim(0)) return {m, one};
  const Tensors r = scan({m, one}, {.xs = {numbers(m, size)}}, [&](Tensor rows, Tensor sign, Tensor j) {
    const Tensor places = numbers(m, size), e = unit(m, width, j);
    const Tensor candidates = rlx::where(places >= j, column_of(rows, e).abs(), zeros(m, {}) - 1);
    const Tensor p = rlx::argmax(candidates, {.axis = -1, .keep_dim = true, .dtype = DType::i64});
    const Tensor at_j = places.eq(j), at_p = places.eq(p);
    const Tensor pivot = row_of(rows, at_p.cast(m.dtype())), other = row_of(rows, at_j.cast(m.dtype()));
    const Tensor swapped = rlx::where(column(at_j), row(pivot), rlx::where(column(at_p), row(other), rows));
    const Tensor d = (pivot * e).sum({-1}, true);
    const Tensor safe = rlx::where(d.eq(0), zeros(m, {}) + 1, d);
    const Tensor factor = rlx::where(places > j, column_of(swapped, e) / safe, zeros(m, {}));
    const Tensor turned = rlx::where(p.squeeze(-1).eq(j), one, one * -1.0);
    return Tensors{swapped - column(factor) * row(pivot), sign * turned};
  });
  return {r[0], r[1]};
}

Tensors solve(const ir::Node& n, const Tensors& in) {
  const System s = system_of(n, in);
  const Dim size = s.a.dim(-1);
  const Eliminated e = eliminated(rlx::concat({s.a, s.b}, {.axis = s.a.rank() - 1}), size);
  return {s.result(substituted(e.m.narrow(-1, 0, size), e.m.narrow(-1, size, s.b.dim(-1)), true, false))};
}

Tensors slogdet(const ir::Node& n, const Tensors& in) {
  require_real(n, in[0]);
  const Tensor& a = in[0];
  const Dim size = a.dim(-1);
  const Eliminated e = eliminated(a, size);
  const Tensor eye = column(numbers(a, size)).eq(row(numbers(a, size))).cast(a.dtype());
  const Tensor diagonal = (e.m * eye).sum({-1});
  const Tensor sign = e.sign * rlx::sign(diagonal).reduce(ops::ReduceOp::prod, {-1});
  return {sign, rlx::log(rlx::abs(diagonal)).sum({-1})};
}

// Columns made orthogonal to those before them, twice, which leaves no more than rounding errors.
Tensors qr(const ir::Node& n, const Tensors& in) {
  require_real(n, in[0]);
  const Tensor& a = in[0];
  const Dim rank = n.shapes[0].dim(-1);
  const Tensor q = scan(zeros(a, n.shapes[0].dims()), {.xs = {numbers(a, rank)}}, [&](Tensor made, Tensor j) {
    Tensor v = column(column_of(a, unit(a, a.dim(-1), j)));
    for (int pass = 0; pass < 2; ++pass) v = v - rlx::matmul(made, rlx::matmul(made.t(), v));
    const Tensor length = rlx::sqrt((v * v).sum({-2}, true));
    return made + v / length * unit(a, rank, j);
  });
  const Tensor i = column(numbers(a, rank)), k = row(numbers(a, a.dim(-1)));
  return {q, rlx::where(i <= k, rlx::matmul(q.t(), a), zeros(a, {}))};
}

// Exact sums in f64.
Tensors q_conv2d(const ir::Node& n, const Tensors& in) {
  const auto& a = n.as<ops::QConv2d>();
  const auto centred = [&](int i, int64_t zero) { return in[size_t(i)].cast(DType::f64) - double(zero); };
  ops::Conv2d::Attrs steps;
  steps.kernel_size = a.kernel_size, steps.stride = a.stride, steps.padding = a.padding;
  steps.dilation = a.dilation, steps.groups = a.groups;
  const Tensor sum = rlx::conv2d(centred(0, a.x_zp), centred(1, a.w_zp), steps);
  const Tensor acc = sum + in[2].cast(DType::f64).reshape({1, in[2].dim(0), 1, 1});
  return {Tensor(ops::requantized(ir::Expr(acc), a, in[0].dtype(), 1))};
}

}  // namespace

const std::map<std::string_view, LowerNode>& matrix_lowerings() {
  static const std::map<std::string_view, LowerNode> kLowerings{
      {"batched_dense_solve", solve}, {"cholesky", cholesky},
      {"q_conv2d", q_conv2d},         {"qr", qr},
      {"slogdet", slogdet},           {"triangular_solve", triangular_solve},
  };
  return kLowerings;
}

}  // namespace rlx::onnx
