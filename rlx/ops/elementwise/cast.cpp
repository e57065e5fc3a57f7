#include "rlx/ops/elementwise/cast.h"

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/complex.h"

namespace rlx::ops {

Shapes Cast::infer(Infer& c, Attrs& a) {
  const DType from = c.in(0).dtype();
  if (is_complex(from) && !is_complex(a.to) && a.to != DType::bool_) {
    c.fail("x: ", c.in(0), " is complex and ", a.to, " is not; take the real part first");
  }
  return {c.in(0).with_dtype(a.to)};
}

Literals Cast::reference(const Eval& c, const Attrs& a) { return {c.in(0).cast(a.to)}; }

Exprs Cast::vjp(const Vjp& c, const Attrs& a) {
  const DType from = c.in(0).dtype();
  if (!is_differentiable(from) || !is_differentiable(a.to)) return {Expr{}};
  // dL/dx of a real x seen as a complex number is twice the real part of dL/d(conj z).
  if (is_complex(a.to) && !is_complex(from)) return {cast(2.0 * real_part(c.dy()), from)};
  return {cast(c.dy(), from)};
}

Exprs Cast::jvp(const Jvp& c, const Attrs& a) {
  if (!is_differentiable(a.to) || !c.has_dx(0)) return {Expr{}};
  return {cast(c.dx(0), a.to)};
}

std::vector<OpSample<Cast::Attrs>> Cast::samples() {
  return {{{DType::f64}, {"f32[2,3]"}},    {{DType::i32}, {"f32[7] in -9..9"}},
          {{DType::bool_}, {"i64[4] <2"}}, {{DType::f16}, {"f64[0]"}},
          {{DType::c64}, {"f32[1]"}},      {{DType::f8e4m3}, {"f32[5]"}},
          {{DType::f32}, {"bool[3]"}},     {{DType::u8}, {"i32[]"}},
          {{DType::f32}, {"f8e5m2[4]"}}};
}

Expr cast(Expr x, DType to) { return x.dtype() == to ? x : make<Cast>(*x.graph, {to}, {x}); }

}  // namespace rlx::ops
