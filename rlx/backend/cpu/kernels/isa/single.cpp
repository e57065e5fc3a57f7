// Plan: the number fills a vector, the function of vectors runs once, the first lane is the result; sin and cos, which
// widen to f64, in narrow registers. Nothing goes through memory: a loop over single numbers would wait for it. Bound:
// latency.
#include "rlx/backend/cpu/kernels/single.h"

#include "rlx/backend/cpu/kernels/isa/indices.h"
#include "rlx/backend/cpu/simd/unary_math.h"

namespace rlx::cpu::RLX_ISA {
namespace {

template <Unary op>
float one_f32(float x) {
  if constexpr (op == Unary::sin || op == Unary::cos) return sin_quarter_of_one(x, op == Unary::cos);
  return apply<op>(set1(x))[0];
}
template <Unary op>
double one_f64(double x) {
  return apply<op>(set1(x))[0];
}
float power_f32(float a, float b) { return pow(set1(a), set1(b))[0]; }
double power_f64(double a, double b) { return pow(set1(a), set1(b))[0]; }

template <int... i>
SingleKernels make(Indices<i...>) {
  return {{one_f32<Unary(i)>...}, {one_f64<Unary(i)>...}, power_f32, power_f64};
}

}  // namespace

SingleKernels single_kernels();
SingleKernels single_kernels() { return make(MakeIndices<kUnaryCount>()); }

}  // namespace rlx::cpu::RLX_ISA
