#include "rlx/ops/random/dropout.h"

#include <cmath>

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/random/random.h"

namespace rlx::ops {

Shapes Dropout::infer(Infer& c, Attrs& a) {
  c.require_float_or_complex(0);
  if (!(a.rate >= 0 && a.rate < 1)) c.fail("rate is ", a.rate, "; it must be at least 0 and below 1");
  require_stream(c, 1);
  c.require_rank(1, 0);
  c.require_rank(2, 0);
  return {c.in(0)};
}

// The mask compares words, not floats, so it does not depend on the dtype of x.
Exprs Dropout::decompose(const Lower& c, const Attrs& a) {
  const Expr x = c.in(0), bits = random_bits(c.in(1), c.in(2), x.shape().dims());
  const double threshold = std::min(std::nearbyint(a.rate * 0x1p32), 0x1p32 - 1);
  const Expr kept = compare(CompareOp::ge, bits, scalar_like(bits, threshold));
  return {where(kept, x * (1 / (1 - a.rate)), scalar_like(x, 0))};
}

std::vector<OpSample<Dropout::Attrs>> Dropout::samples() {
  return {{{0.5}, {"f32[4,5]", "i64[]", "i64[]"}}, {{0.1}, {"f64[7]", "u32[]", "i64[]"}},
          {{0}, {"f32[3]", "i64[]", "u32[]"}},     {{0.9}, {"f16[0]", "i32[]", "i64[]"}},
          {{0.25}, {"f32[]", "i64[]", "i64[]"}},   {{0.5}, {"c64[3]", "i64[]", "i64[]"}}};
}

Expr dropout(Expr x, Expr key, Expr counter, double rate) {
  return make<Dropout>(*x.graph, {rate}, {x, key, counter});
}

}  // namespace rlx::ops
