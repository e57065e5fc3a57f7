#include "rlx/ops/random/sample.h"

#include <cmath>
#include <limits>

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/index/take_along.h"
#include "rlx/ops/random/random.h"
#include "rlx/ops/reduce/cumulative.h"
#include "rlx/ops/reduce/extreme.h"
#include "rlx/ops/reduce/softmax.h"
#include "rlx/ops/reduce/sort.h"
#include "rlx/ops/shape/iota.h"
#include "rlx/ops/shape/narrow.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {

Shapes SampleTokens::infer(Infer& c, Attrs& a) {
  const Shape& logits = c.in(0);
  c.require_float(0);
  c.require_min_rank(0, 1);
  require_stream(c, 1);
  c.require_rank(1, 0);
  c.require_rank(2, 0);
  if (logits.dim(-1) == Dim(0)) c.fail("logits: ", logits, " has an empty vocabulary");
  if (a.top_k < 0) c.fail("top_k is ", a.top_k, "; it must not be negative; 0 keeps all");
  if (!(a.top_p > 0 && a.top_p <= 1)) c.fail("top_p is ", a.top_p, "; it must be above 0 and at most 1");
  if (!(a.temperature >= 0) || std::isinf(a.temperature))
    c.fail("temperature is ", a.temperature, "; it must be finite and not negative; 0 takes the largest");
  return {Shape(DType::i32, Dims(logits.dims().begin(), logits.dims().end() - 1))};
}

Exprs SampleTokens::decompose(const Lower& c, const Attrs& a) {
  const Expr given = c.in(0);
  if (a.temperature == 0) return {argmax(given, -1)};
  const DType wide = given.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Expr logits = cast(given, wide) / a.temperature;
  const Dim size = logits.dim(-1);
  const int last = logits.rank() - 1;

  Expr p;  // in order of the vocabulary; not normalised when mass was cut off
  const bool cut_k = a.top_k > 0 && !(size.is_static() && a.top_k >= size.value());
  if (!cut_k && a.top_p == 1) {
    p = softmax(logits, last);
  } else {
    const Exprs sorted = sort(logits, last, true);
    Expr descending = sorted[0];
    if (cut_k) {
      Dims dims(size_t(last) + 1, Dim(1));
      dims[size_t(last)] = size;
      const Expr rank = iota(c.graph, Shape(DType::i64, dims), last);
      const Expr none = scalar_like(descending, -std::numeric_limits<double>::infinity());
      descending = where(less(rank, scalar_like(rank, double(a.top_k))), descending, none);
    }
    Expr kept = softmax(descending, last);
    const Expr mass_before = cumsum(kept, last, true);
    kept = where(less(mass_before, scalar_like(kept, a.top_p)), kept, scalar_like(kept, 0));
    p = put_along(kept, sorted[1], last, size);
  }

  const Expr running = cumsum(p, last);
  const Expr seed{&c.graph, c.graph.constant(Literal::of<int64_t>({}, {a.seed}))};
  const Expr u = random_uniform(cast(c.in(1), DType::i64) + seed, c.in(2), Shape(DType::f32, c.out().dims()));
  const Expr point = unsqueeze(cast(u, wide), last) * narrow(running, last, size - Dim(1), 1);
  return {argmax(cast(less(point, running), DType::u8), last)};  // the first that lies above
}

std::vector<OpSample<SampleTokens::Attrs>> SampleTokens::samples() {
  return {{{}, {"f32[3,7]", "i64[]", "i64[]"}},
          {{4, 1, 0.7}, {"f64[2,9]", "u32[]", "i64[]"}},
          {{0, 0.8, 1.5, 42}, {"f32[5]", "i64[]", "i64[] <1000"}},
          {{3, 0.5}, {"f16[2,2,6]", "i32[]", "u32[]"}},
          {{0, 1, 0}, {"f32[4,5]", "i64[]", "i64[]"}},
          {{}, {"f32[0,3]", "i64[]", "i64[]"}},
          {{1}, {"bf16[1,1]", "i64[]", "i64[]"}}};
}

Expr sample(Expr logits, Expr key, Expr counter, int64_t top_k, double top_p, double temperature,
            int64_t seed) {
  return make<SampleTokens>(*logits.graph, {top_k, top_p, temperature, seed}, {logits, key, counter});
}

}  // namespace rlx::ops
