#include "rlx/models/state_space.h"

#include <cmath>
#include <utility>

#include "rlx/models/convolution.h"

namespace rlx::models {
namespace {

struct Recurrence {
  Tensor x;      // [batch, heads, seq, lanes], times the step
  Tensor decay;  // [batch, heads, seq]: logarithms
  Tensor b, c;   // [batch, heads, seq, state]
};

// A running sum in two numbers, high + low: differences of far larger sums stay as exact as their terms.
struct RunningSum {
  Tensor high, low;  // [batch, heads, seq]

  explicit RunningSum(const Tensor& terms) {
    const Tensor sum = terms.cast(DType::f64).cumsum(2);
    high = sum.cast(DType::f32);
    low = (sum - high.cast(DType::f64)).cast(DType::f32);
  }
  RunningSum(Tensor h, Tensor l) : high(std::move(h)), low(std::move(l)) {}

  Tensor value() const { return high + low; }
  RunningSum last(Dim seq) const { return {high.narrow(2, seq - 1, 1), low.narrow(2, seq - 1, 1)}; }
  RunningSum unsqueeze(int axis) const { return {high.unsqueeze(axis), low.unsqueeze(axis)}; }
  Tensor less(const RunningSum& other) const { return (high - other.high) + (low - other.low); }
};

// All tokens of the call at once. With s[t] = sum of the logarithms up to t, token i sees token j <= i with the factor
// e^(s[i] - s[j]), and the state from before with e^s[i]:
//   y[i] = sum over j <= i of e^(s[i] - s[j]) (C[i] . B[j]) x[j] + e^s[i] C[i] S
Tensor run(Net& net, const Recurrence& r) {
  const StateSpace& m = net.c.ssm;
  const RunningSum s(r.decay);
  const Tensor places = net.t.arange(net.seq);
  const Tensor past = places.unsqueeze(1) >= places.unsqueeze(0);
  const Tensor between = where(past, s.unsqueeze(3).less(s.unsqueeze(2)), -INFINITY).exp();
  Tensor y = (r.c.matmul(r.b.t()) * between).matmul(r.x);
  if (!net.cached()) return y;
  const std::string name = cat("layer.", net.layer, ".ssm");
  const Dims dims{net.batch, m.heads, m.state, m.inner / m.heads};
  const Tensor before = net.state(name, Shape(DType::f32, dims));
  y = y + r.c.matmul(before) * s.value().exp().unsqueeze(3);
  const RunningSum last = s.last(net.seq);
  const Tensor kept = last.less(s).exp().unsqueeze(3);
  net.set_state(name, before * last.value().exp().unsqueeze(3) + (r.b * kept).t().matmul(r.x));
  return y;
}

Tensor norm_weight(Net& net) {
  const StateSpace& m = net.c.ssm;
  if (!net.gguf()) return net.weight("ssm_norm", {m.inner});
  return net.weight("ssm_norm", {m.norm_groups, m.inner / m.norm_groups}).reshape({m.inner});
}

// RMS norm by groups, with the gate before or behind it.
Tensor gated(Net& net, const Tensor& y, const Tensor& z) {
  const StateSpace& m = net.c.ssm;
  if (!m.gated_norm) return y * z.silu();
  const Tensor x = m.norm_before_gate ? y : y * z.silu();
  const int64_t groups = m.norm_groups;
  const Tensor hat = x.reshape({net.batch, net.seq, groups, m.inner / groups})
                         .rms_norm(net.t.ones({m.inner / groups}), net.c.norm_eps)
                         .reshape({net.batch, net.seq, m.inner}) *
                     norm_weight(net);
  return m.norm_before_gate ? hat * z.silu() : hat;
}

// The factors of z, x, B, C, dt on the channels of the projection; empty when all are 1.
Tensor channel_scales(Net& net) {
  const StateSpace& m = net.c.ssm;
  const std::vector<double>& f = net.c.ssm_scales;
  if (f.empty()) return {};
  const int64_t sizes[] = {m.inner, m.inner, m.groups * m.state, m.groups * m.state, m.heads};
  std::vector<double> v;
  for (size_t i = 0; i < 5; ++i) v.insert(v.end(), size_t(sizes[i]), f[i]);
  return net.t.constant(Literal::reals(Shape(DType::f32, {int64_t(v.size())}), v));
}

}  // namespace

int64_t gguf_norm_groups(const ConfigSource& s) {
  const io::TensorView* t = s.is_gguf() ? s.find_tensor("blk.0.ssm_norm.weight") : nullptr;
  return t != nullptr && t->dims.size() == 2 ? t->dims[0] : 1;
}

void check_state_space(const ConfigSource& s, const Config& c) {
  const StateSpace& m = c.ssm;
  if (m.heads < 1 || m.inner < 1 || m.inner % m.heads != 0)
    throw invalid(s.where(), m.heads, " state-space heads do not divide ", m.inner, " channels");
  if (m.groups < 1 || m.heads % m.groups != 0)
    throw invalid(s.where(), m.groups, " groups do not divide ", m.heads, " heads");
  if (m.norm_groups < 1 || m.inner % m.norm_groups != 0)
    throw invalid(s.where(), m.norm_groups, " groups of the norm do not divide ", m.inner, " channels");
}

Tensor state_space_layer(Net& net, const Tensor& input) {
  const StateSpace& m = net.c.ssm;
  const int64_t shared = m.groups * m.state, mixed = m.inner + 2 * shared, lanes = m.inner / m.heads;
  const Tensor real = net.real_tokens();
  const auto masked = [&](const Tensor& x) { return real.is_empty() ? x : x * real; };
  Tensor all = net.linear("ssm_in", masked(input), m.inner + mixed + m.heads);
  if (const Tensor f = channel_scales(net); !f.is_empty()) all = all * f;
  const Tensor z = all.narrow(2, 0, m.inner);
  const Tensor xbc = causal_convolution(net, "ssm_conv", all.narrow(2, m.inner, mixed), m.conv).silu();
  Tensor d = (all.narrow(2, m.inner + mixed, m.heads) + net.weight("ssm_dt", {m.heads})).softplus();
  if (m.dt_low > 0 || std::isfinite(m.dt_high)) d = d.clamp(m.dt_low, m.dt_high);
  d = masked(d);  // a step of 0 leaves the state as it is
  const Tensor x =
      xbc.narrow(2, 0, m.inner).reshape({net.batch, net.seq, m.heads, lanes}).transpose({0, 2, 1, 3});
  // B and C serve the heads of their group.
  const auto by_head = [&](int64_t start) {
    const int64_t share = m.heads / m.groups;
    return xbc.narrow(2, start, shared)
        .reshape({net.batch, net.seq, m.groups, 1, m.state})
        .expand({net.batch, net.seq, m.groups, share, m.state})
        .reshape({net.batch, net.seq, m.heads, m.state})
        .transpose({0, 2, 1, 3});
  };
  const Tensor step = d.transpose({0, 2, 1});  // [batch, heads, seq]
  const Tensor a = net.decay("ssm_a", {m.heads}).reshape({1, m.heads, 1});
  Tensor y = run(net, {x * step.unsqueeze(3), step * a, by_head(m.inner), by_head(m.inner + shared)});
  y = y + x * net.weight("ssm_d", {m.heads}).reshape({1, m.heads, 1, 1});
  y = y.transpose({0, 2, 1, 3}).reshape({net.batch, net.seq, m.inner});
  return net.linear("ssm_out", gated(net, y, z), net.c.hidden);
}

}  // namespace rlx::models
