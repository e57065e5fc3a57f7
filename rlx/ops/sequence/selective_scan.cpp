#include "rlx/ops/sequence/selective_scan.h"

#include <cmath>

#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/reduce/cumulative.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/require.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {

Shapes SelectiveScan::infer(Infer& c, Attrs& attrs) {
  c.require_float(0);
  c.same_dtype({0, 1, 2, 3, 4});
  c.require_rank(0, 3);
  c.require_rank(2, 2);
  const Shape& x = c.in(0);
  if (attrs.state_size == 0) {
    if (!c.in(2).dim(1).is_static()) c.fail("a: ", c.in(2), " does not tell state_size; give it");
    attrs.state_size = c.in(2).dim(1).value();
  }
  if (attrs.state_size < 0) c.fail("state_size is ", attrs.state_size, "; it must be 0 or more");
  const Dim batch = x.dim(0), seq = x.dim(1), channels = x.dim(2), states = attrs.state_size;
  const std::string why = cat("for x: ", x, " and state_size ", attrs.state_size);
  require_dims(c, 1, {batch, seq, channels}, why);
  require_dims(c, 2, {channels, states}, why);
  require_dims(c, 3, {batch, seq, states}, why);
  require_dims(c, 4, {batch, seq, states}, why);
  return {x};
}

Literals SelectiveScan::reference(const Eval& e, const Attrs&) {
  const Shape& s = e.in(0).shape();
  const int64_t batch = s.dim(0).value(), seq = s.dim(1).value(), channels = s.dim(2).value(),
                states = e.in(2).shape().dim(1).value();
  const auto x = e.in(0).to_reals(), delta = e.in(1).to_reals(), a = e.in(2).to_reals(),
             b = e.in(3).to_reals(), c = e.in(4).to_reals();
  std::vector<double> y(x.size());
  for (int64_t row = 0; row < batch; ++row) {
    for (int64_t h = 0; h < channels; ++h) {
      std::vector<double> state(size_t(states), 0);
      for (int64_t t = 0; t < seq; ++t) {
        const size_t at = size_t((row * seq + t) * channels + h), at_state = size_t((row * seq + t) * states);
        double sum = 0;
        for (size_t i = 0; i < size_t(states); ++i) {
          state[i] = std::exp(delta[at] * a[size_t(h * states) + i]) * state[i] +
                     delta[at] * b[at_state + i] * x[at];
          sum += c[at_state + i] * state[i];
        }
        y[at] = sum;
      }
    }
  }
  return {Literal::reals(e.out(), y)};
}

// All times at once, [batch, seq, h, n]; the recurrence itself is linear.
Exprs SelectiveScan::decompose(const Lower& e, const Attrs&) {
  const Expr delta = unsqueeze(e.in(1), 3);
  const Expr decay = exp(delta * e.in(2));
  const Expr input = delta * unsqueeze(e.in(0), 3) * unsqueeze(e.in(3), 2);
  return {reduce_sum(linear_recurrence(decay, input, 1) * unsqueeze(e.in(4), 2), {3})};
}

// For each state of each channel: delta a, its exponential, three products and two sums; delta x is shared.
double SelectiveScan::operations(std::span<const Shape> in, std::span<const Shape>, const Attrs&) {
  return double(in[0].elements()) * (7 * double(in[2].dim(1).value()) + 1);
}

std::vector<OpSample<SelectiveScan::Attrs>> SelectiveScan::samples() {
  return {{{2}, {"f32[2,3,4]", "f32[2,3,4]", "f32[4,2]", "f32[2,3,2]", "f32[2,3,2]"}},
          {{0}, {"f64[1,5,3]", "f64[1,5,3] unit", "f64[3,3]", "f64[1,5,3]", "f64[1,5,3]"}},
          {{2}, {"f32[2,0,3]", "f32[2,0,3]", "f32[3,2]", "f32[2,0,2]", "f32[2,0,2]"}},
          {{1}, {"f16[1,1,1]", "f16[1,1,1]", "f16[1,1]", "f16[1,1,1]", "f16[1,1,1]"}},
          {{3}, {"bf16[1,2,1]", "bf16[1,2,1]", "bf16[1,3]", "bf16[1,2,3]", "bf16[1,2,3]"}}};
}

Expr selective_scan(Expr x, Expr delta, Expr a, Expr b, Expr c, int64_t state_size) {
  return make<SelectiveScan>(*x.graph, {state_size}, {x, delta, a, b, c});
}

}  // namespace rlx::ops
