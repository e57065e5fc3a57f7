#include "rlx/models/state_space.h"

#include <cmath>
#include <utility>

#include "rlx/models/convolution.h"

namespace rlx::models {
namespace {

// Tokens that are computed as one product; between such chunks there is a recurrence, so that a text costs time in proportion to
// its length.
constexpr int64_t kChunk = 64;

struct Recurrence {
  Tensor x;      // [batch, tokens, heads, lanes], times the step
  Tensor decay;  // [batch, tokens, heads]: logarithms
  Tensor b, c;   // [batch, tokens, groups, state]
};

// A running sum in two numbers, high + low: differences of far larger sums stay as exact as their terms.
struct RunningSum {
  Tensor high, low;

  static RunningSum over(const Tensor& terms, int axis) {
    const Tensor sum = terms.cast(DType::f64).cumsum(axis);
    const Tensor high = sum.cast(DType::f32);
    return {high, (sum - high.cast(DType::f64)).cast(DType::f32)};
  }

  Tensor value() const { return high + low; }
  Tensor less(const RunningSum& other) const { return (high - other.high) + (low - other.low); }
  template <class Change>
  RunningSum with(Change change) const {
    return {change(high), change(low)};
  }
  RunningSum unsqueeze(int axis) const {
    return with([&](const Tensor& t) { return t.unsqueeze(axis); });
  }
  RunningSum narrow(int axis, const Dim& start, const Dim& length) const {
    return with([&](const Tensor& t) { return t.narrow(axis, start, length); });
  }
};

// The state space dual form. With s[t] = sum of the logarithms up to t, token i sees token j <= i with the factor e^(s[i] - s[j]), and
// the state S from before with e^s[i]:
//   y[i] = sum over j <= i of e^(s[i] - s[j]) (C[i] . B[j]) x[j] + e^s[i] C[i] S
// Tokens of one chunk are summed as written. What a chunk leaves behind is a state, states of chunks follow each other by a
// linear recurrence, and tokens read the one their chunk begins with.
class Chunks {
 public:
  Chunks(Net& net, const Recurrence& all)
      : net_(net),
        m_(net.c.ssm),
        share_(m_.heads / m_.groups),
        lanes_(m_.inner / m_.heads),
        size_(min(net.seq, kChunk)),
        count_(ceildiv(net.seq, kChunk)) {
    const Dim more = count_ * size_ - net.seq;
    const auto padded = [&](const Tensor& t) {
      Dims low(size_t(t.rank()), Dim(0)), high = low;
      high[1] = more;
      return t.pad(low, high);
    };
    r_ = {padded(all.x), padded(all.decay), padded(all.b), padded(all.c)};
    s_ = RunningSum::over(r_.decay, 1);
  }

  // [batch, seq, heads, lanes]
  Tensor run() {
    Tensor y = inside() + from_chunks_before();
    y = y.reshape({net_.batch, count_ * size_, m_.heads, lanes_});
    if (net_.cached()) y = y + from_state_before();
    return y.narrow(1, 0, net_.seq);
  }

 private:
  // [batch, tokens, ..] as [batch, chunks, tokens, ..]
  Tensor cut(const Tensor& t) const {
    Dims dims = t.shape().dims();
    dims[1] = size_;
    dims.insert(dims.begin() + 1, count_);
    return t.reshape(dims);
  }
  RunningSum cut_sums() const {
    return s_.with([&](const Tensor& t) { return cut(t); });
  }
  // The axis of a group of heads in front of that of tokens, its heads beside each other: [.., tokens, heads, lanes] as
  // [.., groups, tokens, share * lanes].
  Tensor by_group(const Tensor& t) const {
    Dims dims = t.shape().dims();
    const int rank = int(dims.size());
    dims[size_t(rank - 2)] = m_.groups;
    dims[size_t(rank - 1)] = exact_div(t.dim(-2) * t.dim(-1), m_.groups).value();
    return t.reshape(dims).transpose(groups_first(rank));
  }
  // And back: [.., groups, tokens, share * lanes] as [.., tokens, heads, lanes].
  Tensor by_token(const Tensor& t) const {
    const Tensor turned = t.transpose(groups_first(t.rank()));
    Dims dims = turned.shape().dims();
    dims[dims.size() - 2] = m_.heads;
    dims.back() = lanes_;
    return turned.reshape(dims);
  }
  static std::vector<int> groups_first(int rank) {
    std::vector<int> order;
    for (int i = 0; i < rank; ++i) order.push_back(i);
    std::swap(order[size_t(rank - 3)], order[size_t(rank - 2)]);
    return order;
  }

  // Tokens of a chunk among themselves: [batch, chunks, tokens, heads, lanes].
  Tensor inside() const {
    const RunningSum s = cut_sums().with([](const Tensor& t) { return t.transpose({0, 1, 3, 2}); });
    const Tensor places = net_.t.arange(size_);
    const Tensor past = places.unsqueeze(1) >= places.unsqueeze(0);
    const Tensor between = where(past, s.unsqueeze(4).less(s.unsqueeze(3)), -INFINITY).exp();
    const Tensor products =
        by_group(cut(r_.c)).matmul(by_group(cut(r_.b)).t());  // one for the heads of a group
    const Dims wide{net_.batch, count_, m_.groups, share_, size_, size_};
    const Tensor weights =
        (between.reshape(wide) * products.unsqueeze(3)).reshape({net_.batch, count_, m_.heads, size_, size_});
    return weights.matmul(cut(r_.x).transpose({0, 1, 3, 2, 4})).transpose({0, 1, 3, 2, 4});
  }

  // What all chunks but the last leave behind goes to those after them.
  Tensor from_chunks_before() const {
    const Dim rest = count_ - 1;
    const RunningSum s = cut_sums(), ends = s.narrow(2, size_ - 1, 1);
    const auto but_last = [&](const Tensor& t) { return t.narrow(1, 0, rest); };
    const Tensor kept = but_last(ends.less(s).exp().unsqueeze(4) * cut(r_.x));
    const Tensor left =
        by_group(but_last(cut(r_.b))).t().matmul(by_group(kept));  // [.., groups, state, lanes]
    const Tensor decay = but_last(cut(r_.decay).sum({2}).exp());   // of a whole chunk
    const Dims parts{net_.batch, rest, m_.groups, m_.state, share_, lanes_};
    const Tensor factor = decay.reshape({net_.batch, rest, m_.groups, 1, share_, 1}).expand(parts);
    const Tensor states =
        linear_recurrence(factor, left.reshape(parts), {.axis = 1}).reshape(left.shape().dims());
    const Tensor read = by_token(by_group(cut(r_.c).narrow(1, 1, rest)).matmul(states));
    const Tensor since = s.narrow(1, 1, rest).less(ends.narrow(1, 0, rest)).exp().unsqueeze(4);
    const Tensor none = net_.t.zeros({net_.batch, 1, size_, m_.heads, lanes_});
    return concat({none, read * since}, {.axis = 1});
  }

  // The state of the layer is [batch, groups, state, share * lanes].
  Tensor from_state_before() {
    const std::string name = cat("layer.", net_.layer, ".ssm");
    const Tensor before =
        net_.state(name, Shape(DType::f32, {net_.batch, m_.groups, m_.state, share_ * lanes_}));
    const RunningSum last = s_.narrow(1, count_ * size_ - 1, 1);
    const Tensor kept = last.less(s_).exp().unsqueeze(3) * r_.x;
    // Written out for all lanes, so that rows of the state are as long as they can be.
    const Tensor factor = last.value()
                              .unsqueeze(3)
                              .expand({net_.batch, 1, m_.heads, lanes_})
                              .reshape({net_.batch, m_.groups, 1, share_ * lanes_})
                              .exp();
    net_.set_state(name, before * factor + by_group(r_.b).t().matmul(by_group(kept)));
    return by_token(by_group(r_.c).matmul(before)) * s_.value().exp().unsqueeze(3);
  }

  Net& net_;
  const StateSpace& m_;
  int64_t share_, lanes_;
  Dim size_, count_;
  Recurrence r_;
  RunningSum s_;
};

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
  const Tensor xbc = causal_convolution(net, "ssm_conv", all.narrow(2, m.inner, mixed), m.conv);
  Tensor d = (all.narrow(2, m.inner + mixed, m.heads) + net.weight("ssm_dt", {m.heads})).softplus();
  if (m.dt_low > 0 || std::isfinite(m.dt_high)) d = d.clamp(m.dt_low, m.dt_high);
  d = masked(d);  // a step of 0 leaves the state as it is
  const Tensor x = xbc.narrow(2, 0, m.inner).reshape({net.batch, net.seq, m.heads, lanes});
  // B and C serve the heads of their group.
  const auto of_groups = [&](int64_t start) {
    return xbc.narrow(2, start, shared).reshape({net.batch, net.seq, m.groups, m.state});
  };
  const Tensor decay = d * net.decay("ssm_a", {m.heads}).reshape({1, 1, m.heads});
  Tensor y = Chunks(net, {x * d.unsqueeze(3), decay, of_groups(m.inner), of_groups(m.inner + shared)}).run();
  y = y + x * net.weight("ssm_d", {m.heads}).reshape({1, 1, m.heads, 1});
  y = y.reshape({net.batch, net.seq, m.inner});
  return net.linear("ssm_out", gated(net, y, z), net.c.hidden);
}

}  // namespace rlx::models
