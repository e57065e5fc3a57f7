#include "rlx/ops/elementwise/compare.h"

namespace rlx::ops {

Shapes Compare::infer(Infer& c, Attrs& a) {
  c.same_dtype({0, 1});
  if (is_complex(c.in(0).dtype()) && a.kind != CompareOp::eq && a.kind != CompareOp::ne) {
    c.fail("complex numbers have no order; only eq and ne compare them");
  }
  if (is_storage_only(c.in(0).dtype()))
    c.fail("operands have dtype ", c.in(0).dtype(), "; cast them to f32 first");
  return {Shape(DType::bool_, c.broadcast(c.in(0), c.in(1)))};
}

namespace {

template <class T>
bool holds(CompareOp kind, T a, T b) {
  switch (kind) {
    case CompareOp::eq:
      return a == b;
    case CompareOp::ne:
      return a != b;
    case CompareOp::lt:
      return a < b;
    case CompareOp::le:
      return a <= b;
    case CompareOp::gt:
      return a > b;
    case CompareOp::ge:
      return a >= b;
  }
  return false;
}

}  // namespace

Literals Compare::reference(const Eval& c, const Attrs& attrs) {
  const Literal &a = c.in(0), &b = c.in(1);
  const auto at_a = broadcast_positions(a.shape().dims(), c.out().dims());
  const auto at_b = broadcast_positions(b.shape().dims(), c.out().dims());
  Literal y = Literal::zeros(c.out());
  const auto out = y.mutable_data<bool>();
  for (size_t i = 0; i < out.size(); ++i) {
    if (is_complex(a.dtype())) {
      out[i] = (a.complex_at(at_a[i]) == b.complex_at(at_b[i])) == (attrs.kind == CompareOp::eq);
    } else if (is_float(a.dtype())) {
      out[i] = holds(attrs.kind, a.real_at(at_a[i]), b.real_at(at_b[i]));
    } else {
      out[i] = holds(attrs.kind, a.integer_at(at_a[i]), b.integer_at(at_b[i]));
    }
  }
  return {y};
}

std::vector<OpSample<Compare::Attrs>> Compare::samples() {
  return {{{CompareOp::eq}, {"i32[2,3] <3", "i32[3] <3"}}, {{CompareOp::ne}, {"bool[4]", "bool[4]"}},
          {{CompareOp::lt}, {"f32[4,1]", "f32[5]"}},       {{CompareOp::le}, {"f64[3]", "f64[]"}},
          {{CompareOp::gt}, {"f16[1]", "f16[1]"}},         {{CompareOp::ge}, {"f32[0,2]", "f32[1,2]"}},
          {{CompareOp::eq}, {"c64[3]", "c64[3]"}},         {{CompareOp::lt}, {"i64[5]", "i64[5]"}}};
}

Expr compare(CompareOp kind, Expr a, Expr b) { return make<Compare>(*a.graph, {kind}, {a, b}); }

}  // namespace rlx::ops
