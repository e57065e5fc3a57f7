#include "rlx/ops/elementwise/complex.h"

#include "rlx/ir/leaves.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"

namespace rlx::ops {
namespace {

void require_complex(Infer& c) {
  if (!is_complex(c.in(0).dtype()))
    c.fail("z: ", c.in(0), " has dtype ", c.in(0).dtype(), "; it must be c64");
}

std::vector<OpSample<NoAttrs>> complex_samples() {
  return {{{}, {"c64[2,3]"}}, {{}, {"c64[]"}}, {{}, {"c64[0]"}}, {{}, {"c64[1]"}}, {{}, {"c64[5]"}}};
}

template <class F>
Literals to_real(const Eval& c, F f) {
  const auto z = c.in(0).to_complexes();
  std::vector<double> y(z.size());
  for (size_t i = 0; i < z.size(); ++i) y[i] = f(z[i]);
  return {Literal::reals(c.out(), y)};
}

}  // namespace

Shapes Conjugate::infer(Infer& c, Attrs&) { return require_complex(c), Shapes{c.in(0)}; }
Literals Conjugate::reference(const Eval& c, const Attrs&) {
  auto z = c.in(0).to_complexes();
  for (auto& v : z) v = std::conj(v);
  return {Literal::complexes(c.out(), z)};
}
Exprs Conjugate::vjp(const Vjp& c, const Attrs&) { return {conjugate(c.dy())}; }
Exprs Conjugate::jvp(const Jvp& c, const Attrs&) { return {conjugate(c.dx(0))}; }
std::vector<OpSample<NoAttrs>> Conjugate::samples() { return complex_samples(); }

Shapes ComplexNormSq::infer(Infer& c, Attrs&) {
  return require_complex(c), Shapes{c.in(0).with_dtype(DType::f32)};
}
Literals ComplexNormSq::reference(const Eval& c, const Attrs&) {
  return to_real(c, [](std::complex<double> z) { return std::norm(z); });
}
Exprs ComplexNormSq::vjp(const Vjp& c, const Attrs&) {
  return {c.in(0) * make_complex(c.dy(), zeros_like(c.dy()))};
}
Exprs ComplexNormSq::jvp(const Jvp& c, const Attrs&) {
  return {2.0 * real_part(conjugate(c.in(0)) * c.dx(0))};
}
std::vector<OpSample<NoAttrs>> ComplexNormSq::samples() { return complex_samples(); }

Shapes RealPart::infer(Infer& c, Attrs&) {
  return require_complex(c), Shapes{c.in(0).with_dtype(DType::f32)};
}
Literals RealPart::reference(const Eval& c, const Attrs&) {
  return to_real(c, [](std::complex<double> z) { return z.real(); });
}
Exprs RealPart::vjp(const Vjp& c, const Attrs&) { return {make_complex(0.5 * c.dy(), zeros_like(c.dy()))}; }
Exprs RealPart::jvp(const Jvp& c, const Attrs&) { return {real_part(c.dx(0))}; }
std::vector<OpSample<NoAttrs>> RealPart::samples() { return complex_samples(); }

Shapes ImagPart::infer(Infer& c, Attrs&) {
  return require_complex(c), Shapes{c.in(0).with_dtype(DType::f32)};
}
Literals ImagPart::reference(const Eval& c, const Attrs&) {
  return to_real(c, [](std::complex<double> z) { return z.imag(); });
}
Exprs ImagPart::vjp(const Vjp& c, const Attrs&) { return {make_complex(zeros_like(c.dy()), 0.5 * c.dy())}; }
Exprs ImagPart::jvp(const Jvp& c, const Attrs&) { return {imag_part(c.dx(0))}; }
std::vector<OpSample<NoAttrs>> ImagPart::samples() { return complex_samples(); }

Shapes MakeComplex::infer(Infer& c, Attrs&) {
  c.same_dtype({0, 1});
  if (c.in(0).dtype() != DType::f32 && c.in(0).dtype() != DType::f64) {
    c.fail("re: ", c.in(0), " has dtype ", c.in(0).dtype(), "; it must be f32 or f64");
  }
  return {Shape(DType::c64, c.broadcast(c.in(0), c.in(1)))};
}
Literals MakeComplex::reference(const Eval& c, const Attrs&) {
  const auto at_re = broadcast_positions(c.in(0).shape().dims(), c.out().dims());
  const auto at_im = broadcast_positions(c.in(1).shape().dims(), c.out().dims());
  std::vector<std::complex<double>> z(at_re.size());
  for (size_t i = 0; i < z.size(); ++i) z[i] = {c.in(0).real_at(at_re[i]), c.in(1).real_at(at_im[i])};
  return {Literal::complexes(c.out(), z)};
}
Exprs MakeComplex::vjp(const Vjp& c, const Attrs&) {
  const DType t = c.in(0).dtype();
  return {unbroadcast(cast(2.0 * real_part(c.dy()), t), c.in(0).shape().dims()),
          unbroadcast(cast(2.0 * imag_part(c.dy()), t), c.in(1).shape().dims())};
}
Exprs MakeComplex::jvp(const Jvp& c, const Attrs&) { return {make_complex(c.dx(0), c.dx(1))}; }
std::vector<OpSample<NoAttrs>> MakeComplex::samples() {
  return {{{}, {"f32[2,3]", "f32[3]"}},
          {{}, {"f32[]", "f32[]"}},
          {{}, {"f32[0]", "f32[1]"}},
          {{}, {"f32[1]", "f32[1]"}},
          {{}, {"f32[5]", "f32[]"}}};
}

Expr conjugate(Expr z) { return make<Conjugate>(*z.graph, {}, {z}); }
Expr conj_of(Expr t) { return is_complex(t.dtype()) ? conjugate(t) : t; }
Expr complex_norm_sq(Expr z) { return make<ComplexNormSq>(*z.graph, {}, {z}); }
Expr real_part(Expr z) { return make<RealPart>(*z.graph, {}, {z}); }
Expr imag_part(Expr z) { return make<ImagPart>(*z.graph, {}, {z}); }
Expr make_complex(Expr re, Expr im) { return make<MakeComplex>(*re.graph, {}, {re, im}); }

}  // namespace rlx::ops
