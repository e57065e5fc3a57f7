#include "rlx/ops/fft/fft.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include "rlx/ir/leaves.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/fft/fourier.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::ops {
namespace {

using Complex = std::complex<double>;

double scale_of(size_t n, const Fft::Attrs& a) {
  if (a.norm == FftNorm::ortho) return 1 / std::sqrt(double(n));
  return a.norm == FftNorm::forward && a.inverse ? 1 / double(n) : 1;
}

}  // namespace

Shapes Fft::infer(Infer& c, Attrs&) {
  const Shape& x = c.in(0);
  c.require_min_rank(0, 1);
  if (is_complex(x.dtype())) return {x};
  c.require_float(0);
  const Dim odd = mod(x.dim(-1), 2);
  if (odd == Dim(1)) {
    c.fail("x: ", x, " is real and its last axis has odd size ", x.dim(-1),
           "; it must hold the real parts, then as many imaginary parts");
  }
  c.same(odd, 0, "the remainder of the last axis of a real tensor by 2 and 0");
  return {x};
}

Literals Fft::reference(const Eval& c, const Attrs& a) {
  const bool split = !is_complex(c.out().dtype());
  const auto [rows, length, unused] = axis_view(c.out(), c.out().rank() - 1);
  const auto n = size_t(split ? length / 2 : length);
  const Fourier transform(n, a.inverse ? 1 : -1);
  const double scale = scale_of(n, a);
  std::vector<Complex> values(size_t(rows) * n), out(values.size());
  if (split) {
    const auto parts = c.in(0).to_reals();
    for (size_t r = 0; r < size_t(rows); ++r) {
      for (size_t i = 0; i < n; ++i) values[r * n + i] = {parts[r * 2 * n + i], parts[r * 2 * n + n + i]};
    }
  } else {
    values = c.in(0).to_complexes();
  }
  for (size_t r = 0; r < size_t(rows); ++r) transform.run(values.data() + r * n, out.data() + r * n);
  for (Complex& z : out) z *= scale;
  if (!split) return {Literal::complexes(c.out(), out)};
  std::vector<double> parts(2 * out.size());
  for (size_t r = 0; r < size_t(rows); ++r) {
    for (size_t i = 0; i < n; ++i) {
      parts[r * 2 * n + i] = out[r * n + i].real();
      parts[r * 2 * n + n + i] = out[r * n + i].imag();
    }
  }
  return {Literal::reals(c.out(), parts)};
}

// The matrix of the transform is symmetric, so its adjoint is the transform with the other sign; for the
// split layout the same holds for the transpose of the real matrix [[Re, -Im], [Im, Re]].
Exprs Fft::vjp(const Vjp& c, const Attrs& a) {
  const Expr dx = fft(c.dy(), !a.inverse);
  const Dim length = dx.dim(-1), n = is_complex(dx.dtype()) ? length : floordiv(length, 2);
  const Expr scale = fft_scale(dx, n, a.inverse, a.norm);
  return {scale ? dx * scale : dx};
}

Exprs Fft::vmap(const Vmap& c, const Attrs& a) { return {fft_norm(c.in(0), a.inverse, a.norm)}; }

// As of a transform by powers of two.
double Fft::operations(std::span<const Shape> in, std::span<const Shape>, const Attrs&) {
  const int64_t parts = is_complex(in[0].dtype()) ? 1 : 2, points = in[0].dim(-1).value() / parts;
  return 5 * double(in[0].elements() / parts) * std::log2(double(std::max<int64_t>(1, points)));
}

std::vector<OpSample<Fft::Attrs>> Fft::samples() {
  using enum FftNorm;
  return {{{false, backward}, {"c64[3,8]"}}, {{true, backward}, {"f32[2,6]"}},
          {{false, forward}, {"f64[10]"}},   {{true, forward}, {"f64[2,1,14]"}},
          {{false, ortho}, {"c64[12]"}},     {{true, ortho}, {"f32[2]"}},
          {{false, backward}, {"f32[3,0]"}}, {{true, forward}, {"c64[0,5]"}},
          {{false, backward}, {"f16[8]"}},   {{false, backward}, {"c64[1]"}}};
}

Expr fft(Expr x, bool inverse) { return fft_norm(x, inverse, FftNorm::backward); }

Expr fft_norm(Expr x, bool inverse, FftNorm norm) { return make<Fft>(*x.graph, {inverse, norm}, {x}); }

Expr fft_axis(Expr x, int axis, bool inverse, FftNorm norm) {
  return move_axis(fft_norm(move_axis(x, axis, -1), inverse, norm), -1, axis);
}

Expr fftn(Expr x, std::vector<int> axes, bool inverse, FftNorm norm) {
  for (int& axis : axes) {
    const int asked = axis;
    if (!normalize_axis(axis, x.rank()))
      throw invalid("fftn: axis ", asked, " is out of range for x: ", x.shape());
  }
  std::sort(axes.begin(), axes.end());
  if (const auto twice = std::adjacent_find(axes.begin(), axes.end()); twice != axes.end())
    throw invalid("fftn: axis ", *twice, " is listed twice for x: ", x.shape());
  if (axes.size() > 1 && !is_complex(x.dtype())) {
    throw invalid("fftn: x: ", x.shape(), " is real, which has room for one transformed axis, and ",
                  axes.size(), " are listed; make it c64");
  }
  for (const int axis : axes) x = fft_axis(x, axis, inverse, norm);
  return x;
}

Expr ifftn(Expr x, std::vector<int> axes, FftNorm norm) { return fftn(x, std::move(axes), true, norm); }

Expr fft_scale(Expr x, Dim n, bool inverse, FftNorm norm) {
  if (norm == FftNorm::backward || (norm == FftNorm::forward && !inverse)) return {};
  // In f64 until the end: the count of points is exact there.
  const Expr points = count_like(full(*x.graph, Shape(DType::f64, {n}), 1), {0});
  return cast(1.0 / (norm == FftNorm::ortho ? sqrt(points) : points), x.dtype());
}

}  // namespace rlx::ops
