#include "rlx/ops/elementwise/unary.h"

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/complex.h"

namespace rlx::ops::detail {

Shapes infer_unary(Infer& c, bool integers, bool complexes) {
  const DType t = c.in(0).dtype();
  const bool allowed =
      (is_float(t) && !is_storage_only(t)) || (integers && is_integer(t)) || (complexes && is_complex(t));
  if (!allowed) {
    c.fail("x: ", c.in(0), " has dtype ", t, "; it takes floats", integers ? ", integers" : "",
           complexes ? ", complex numbers" : "");
  }
  return {c.in(0)};
}

std::vector<OpSample<NoAttrs>> unary_samples(UnaryDomain domain, bool integers, bool complexes) {
  const std::string fill = domain == UnaryDomain::positive ? " positive" : "";
  std::vector<OpSample<NoAttrs>> out = {{{}, {"f32[2,3]" + fill}}, {{}, {"f64[7]" + fill}},
                                        {{}, {"f32[]" + fill}},    {{}, {"f32[0,3]" + fill}},
                                        {{}, {"f16[1]" + fill}},   {{}, {"bf16[5]" + fill}}};
  if (integers) out.push_back({{}, {"i32[4]"}});
  if (complexes) out.push_back({{}, {"c64[3]"}});
  return out;
}

Expr scale_by(Expr factor, Expr dy) { return mul(dy, factor); }

Expr scale_by_conj(Expr factor, Expr dy) { return mul(dy, conj_of(factor)); }

}  // namespace rlx::ops::detail
