#include "rlx/ops/linear/swiglu.h"

#include "rlx/ops/elementwise/activation.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/shape/narrow.h"

namespace rlx::ops {

Shapes FusedSwiglu::infer(Infer& c, Attrs& a) {
  c.require_float(0);
  c.require_min_rank(0, 1);
  const Shape& x = c.in(0);
  const Dim rest = mod(x.dim(-1), 2);
  if (decide_equal(rest, 0) == false) c.fail("x: ", x, " has an odd last axis; it must hold two halves");
  c.same(rest, 0, "last axis modulo 2 and 0");
  if (a.cast_to && (!is_float(*a.cast_to) || is_storage_only(*a.cast_to)))
    c.fail("cast_to is ", *a.cast_to, "; it must be f16, bf16, f32 or f64");
  if (a.cast_to == x.dtype()) a.cast_to.reset();
  const auto half = exact_div(x.dim(-1), 2);
  const Shape y = x.with_dim(-1, half ? *half : floordiv(x.dim(-1), 2));
  return {a.cast_to ? y.with_dtype(*a.cast_to) : y};
}

Exprs FusedSwiglu::decompose(const Lower& c, const Attrs& a) {
  const Expr x = c.in(0);
  const Dim half = c.out().dim(-1);
  const Expr low = narrow(x, -1, 0, half), high = narrow(x, -1, half, half);
  const Expr y = a.gate_first ? high * silu(low) : low * silu(high);
  return {cast(y, c.out().dtype())};
}

std::vector<OpSample<FusedSwiglu::Attrs>> FusedSwiglu::samples() {
  return {{{}, {"f32[2,3,8]"}},   {{true}, {"f64[6]"}},    {{false, DType::f64}, {"f32[2,2]"}},
          {{true}, {"f32[3,0]"}}, {{false}, {"f16[1,2]"}}, {{true, DType::bf16}, {"f32[0,4]"}}};
}

Expr fused_swiglu(Expr x, bool gate_first, std::optional<DType> cast_to) {
  return make<FusedSwiglu>(*x.graph, {gate_first, cast_to}, {x});
}

}  // namespace rlx::ops
