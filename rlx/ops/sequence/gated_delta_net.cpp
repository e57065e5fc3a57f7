#include "rlx/ops/sequence/gated_delta_net.h"

#include <cmath>

#include "rlx/ir/leaves.h"
#include "rlx/ops/control/scan.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/math.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/require.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::ops {

Shapes GatedDeltaNetRules::infer(Infer& c, Attrs& a) {
  c.require_float(0);
  c.same_dtype({0, 1, 2, 3, 4, 5});
  c.require_rank(0, 4);
  const Shape& q = c.in(0);
  if (a.state_size == 0) {
    if (!q.dim(3).is_static()) c.fail("q: ", q, " does not tell state_size; give it");
    a.state_size = q.dim(3).value();
  }
  if (a.state_size < 0) c.fail("state_size is ", a.state_size, "; it must be 0 or more");
  const Dims lanes{q.dim(0), q.dim(1), q.dim(2), a.state_size}, gates{q.dim(0), q.dim(1), q.dim(2)},
      state{q.dim(0), q.dim(2), a.state_size, a.state_size};
  const std::string why = cat("for q: ", q, " and state_size ", a.state_size);
  for (int i = 0; i < c.count(); ++i) require_dims(c, i, i < 3 ? lanes : i < 5 ? gates : state, why);
  return {q.with_dims(lanes), q.with_dims(state)};
}

Literals GatedDeltaNetRules::reference(const Eval& c, const Attrs& a) {
  const Shape& shape = c.in(0).shape();
  const int64_t batch = shape.dim(0).value(), seq = shape.dim(1).value(), heads = shape.dim(2).value();
  const auto n = size_t(a.state_size);
  const auto q = c.in(0).to_reals(), k = c.in(1).to_reals(), v = c.in(2).to_reals(), g = c.in(3).to_reals(),
             beta = c.in(4).to_reals();
  std::vector<double> y(q.size()), states(size_t(c.out(1).elements()), 0), d(n);
  if (c.count() > 5) states = c.in(5).to_reals();
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      double* s = states.data() + size_t(b * heads + h) * n * n;
      for (int64_t t = 0; t < seq; ++t) {
        const auto at = size_t((b * seq + t) * heads + h);
        const double *qt = q.data() + at * n, *kt = k.data() + at * n, *vt = v.data() + at * n;
        const double gate = std::exp(g[at]);
        for (size_t i = 0; i < n * n; ++i) s[i] *= gate;
        for (size_t j = 0; j < n; ++j) {
          double read = 0;
          for (size_t i = 0; i < n; ++i) read += s[i * n + j] * kt[i];
          d[j] = beta[at] * (vt[j] - read);
        }
        for (size_t i = 0; i < n; ++i)
          for (size_t j = 0; j < n; ++j) s[i * n + j] += kt[i] * d[j];
        for (size_t j = 0; j < n; ++j) {
          double sum = 0;
          for (size_t i = 0; i < n; ++i) sum += s[i * n + j] * qt[i];
          y[at * n + j] = sum / std::sqrt(double(n));
        }
      }
    }
  }
  return {Literal::reals(c.out(0), y), Literal::reals(c.out(1), states)};
}

namespace {

// One step for all batch rows and heads. Inputs are S [batch, heads, n, n],
// then slices of q, k, v, g, beta; row vectors are [batch, heads, 1, n].
Graph delta_step(const Shape& state, const Shape& lanes, const Shape& gates) {
  Graph g("delta_step");
  const auto input = [&g](const char* name, const Shape& s) { return Expr{&g, g.input(name, s)}; };
  const auto row = [](Expr x) { return unsqueeze(x, 2); };
  const auto number = [](Expr x) { return unsqueeze(unsqueeze(x, 2), 3); };
  const Expr before = input("state", state), q = input("q", lanes), k = input("k", lanes),
             v = input("v", lanes), gate = input("g", gates), beta = input("beta", gates);
  const Expr faded = before * number(exp(gate));
  const Expr error = number(beta) * (row(v) - matmul(row(k), faded));
  const Expr after = faded + unsqueeze(k, 3) * error;
  const double scale = 1 / std::sqrt(double(state.dim(2).value()));
  g.set_outputs({after, squeeze(matmul(row(q), after), 2) * scale});
  return g;
}

}  // namespace

Exprs GatedDeltaNetRules::decompose(const Lower& c, const Attrs&) {
  const Shape& q = c.in(0).shape();
  const Shape lanes = c.out(0).with_dims({q.dim(0), q.dim(2), c.out(0).dim(3)}),
              gates = q.with_dims({q.dim(0), q.dim(2)});
  Exprs steps;  // time first
  for (int i = 0; i < 5; ++i) steps.push_back(move_axis(c.in(i), 1, 0));
  const Expr start = c.has(5) ? c.in(5) : full(c.graph, c.out(1), 0);
  const Exprs out = scan_all(c.graph, {start}, {}, steps, delta_step(c.out(1), lanes, gates), q.dim(1));
  return {move_axis(out[1], 0, 1), out[0]};
}

namespace {

std::vector<OpSample<GatedDeltaNetAttrs>> delta_net_samples(bool carry) {
  const auto sample = [carry](int64_t state_size, const std::string& t, const std::string& b,
                              const std::string& s, const std::string& h, const std::string& n) {
    const std::string lanes = cat(t, "[", b, ",", s, ",", h, ",", n, "]"),
                      gates = cat(t, "[", b, ",", s, ",", h, "]");
    OpSample<GatedDeltaNetAttrs> out{{state_size}, {lanes, lanes, lanes, gates, gates + " unit"}};
    if (carry) out.inputs.push_back(cat(t, "[", b, ",", h, ",", n, ",", n, "]"));
    return out;
  };
  return {sample(2, "f32", "2", "3", "1", "2"),  sample(0, "f64", "1", "4", "2", "3"),
          sample(2, "f32", "1", "0", "2", "2"),  sample(1, "f16", "1", "1", "1", "1"),
          sample(3, "bf16", "1", "2", "1", "3"), sample(2, "f32", "0", "2", "1", "2")};
}

GatedDeltaNetResult pair(const Exprs& results) { return {results[0], results[1]}; }

}  // namespace

// For each number of v a column of S: its decay, S^T k, k d^T and S^T q.
double GatedDeltaNetRules::operations(std::span<const Shape> in, std::span<const Shape>, const Attrs&) {
  return 7.0 * double(in[2].elements()) * double(in[0].dim(-1).value());
}

std::vector<OpSample<GatedDeltaNetAttrs>> GatedDeltaNet::samples() { return delta_net_samples(false); }
std::vector<OpSample<GatedDeltaNetAttrs>> GatedDeltaNetCarry::samples() { return delta_net_samples(true); }

GatedDeltaNetResult gated_delta_net(Expr q, Expr k, Expr v, Expr g, Expr beta, int64_t state_size) {
  return pair(make_all<GatedDeltaNet>(*q.graph, {state_size}, {q, k, v, g, beta}));
}

GatedDeltaNetResult gated_delta_net_carry(Expr q, Expr k, Expr v, Expr g, Expr beta, Expr state,
                                          int64_t state_size) {
  return pair(make_all<GatedDeltaNetCarry>(*q.graph, {state_size}, {q, k, v, g, beta, state}));
}

}  // namespace rlx::ops
