#include "rlx/ops/elementwise/classify.h"

#include <cmath>

namespace rlx::ops {
namespace {

Shapes infer_classify(Infer& c) {
  c.require_float_or_complex(0);
  return {c.in(0).with_dtype(DType::bool_)};
}

template <class F>
Literals classify(const Eval& c, F f) {
  Literal y = Literal::zeros(c.out());
  const auto out = y.mutable_data<bool>();
  for (size_t i = 0; i < out.size(); ++i) {
    const auto z = c.in(0).complex_at(int64_t(i));
    out[i] = f(z.real(), z.imag());
  }
  return {y};
}

std::vector<OpSample<NoAttrs>> classify_samples() {
  return {{{}, {"f32[2,3]"}}, {{}, {"f64[7]"}},  {{}, {"f32[]"}},
          {{}, {"f16[0,3]"}}, {{}, {"bf16[1]"}}, {{}, {"c64[3]"}}};
}

}  // namespace

Shapes IsNan::infer(Infer& c, Attrs&) { return infer_classify(c); }
Literals IsNan::reference(const Eval& c, const Attrs&) {
  return classify(c, [](double re, double im) { return std::isnan(re) || std::isnan(im); });
}
std::vector<OpSample<NoAttrs>> IsNan::samples() { return classify_samples(); }

Shapes IsFinite::infer(Infer& c, Attrs&) { return infer_classify(c); }
Literals IsFinite::reference(const Eval& c, const Attrs&) {
  return classify(c, [](double re, double im) { return std::isfinite(re) && std::isfinite(im); });
}
std::vector<OpSample<NoAttrs>> IsFinite::samples() { return classify_samples(); }

Expr is_nan(Expr x) { return make<IsNan>(*x.graph, {}, {x}); }
Expr is_finite(Expr x) { return make<IsFinite>(*x.graph, {}, {x}); }

}  // namespace rlx::ops
