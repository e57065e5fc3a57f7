// Mamba: a state for each channel, whose step, input and output depend on the token.
//
//   x, z = u W;  x = act(conv(x));  dt, B, C = x Wx;  d = softplus(dt Wd + b)
//   S = e^(d A) S + d B x;  y = C S + D x;  out = (y * silu(z)) Wo
#include "rlx/models/architecture.h"
#include "rlx/models/convolution.h"
#include "rlx/models/layers.h"

namespace rlx::models {
namespace {

constexpr WeightName kNames[] = {
    {"embed", "@embeddings.weight|@embedding.weight", "token_embd.weight"},
    {"norm", "@norm_f.weight", "output_norm.weight"},
    {"head", "lm_head.weight", "output.weight"},
    {"mixer_norm", "@layers.{}.norm.weight", "blk.{}.attn_norm.weight"},
    {"in", "@layers.{}.mixer.in_proj.weight", "blk.{}.ssm_in.weight"},
    {"conv", "@layers.{}.mixer.conv1d.weight", "blk.{}.ssm_conv1d.weight"},
    {"x", "@layers.{}.mixer.x_proj.weight", "blk.{}.ssm_x.weight"},
    {"dt", "@layers.{}.mixer.dt_proj.weight", "blk.{}.ssm_dt.weight"},
    {"a", "@layers.{}.mixer.A_log", "blk.{}.ssm_a"},
    {"d", "@layers.{}.mixer.D", "blk.{}.ssm_d"},
    {"out", "@layers.{}.mixer.out_proj.weight", "blk.{}.ssm_out.weight"},
};

void configure(ConfigSource& s, Config& c) {
  read_decoder(s, c);
  const int64_t expand = s.find_integer({"expand"}).value_or(2);
  c.ssm.inner = s.find_integer({"", "ssm.inner_size"})
                    .value_or(c.intermediate > 0 ? c.intermediate : expand * c.hidden);
  c.ssm.state = s.integer({"state_size", "ssm.state_size"});
  c.ssm.conv = s.integer({"conv_kernel", "ssm.conv_kernel"});
  const auto rank = s.object("time_step_rank");
  c.ssm.dt_rank = rank && rank->is_string() ? (c.hidden + 15) / 16  // "auto"
                                            : s.integer({"time_step_rank", "ssm.time_step_rank"});
  s.require_flag({"", "ssm.dt_b_c_rms"}, false);
  s.ignore("d_inner|d_model|n_layer|rms_norm|ssm_cfg");  // other words for the same
  c.mixers.assign(size_t(c.layers), Mixer::recurrent);
}

// y[t] = C[t] . S[t] from the state of the layer, which is kept. x, d [batch, seq, inner]; B, C [batch, seq, n].
Tensor scan_with_state(Net& net, const Tensor& x, const Tensor& d, const Tensor& a, const Tensor& b,
                       const Tensor& c) {
  const int64_t inner = net.c.ssm.inner, n = net.c.ssm.state;
  const std::string name = cat("layer.", net.layer, ".ssm");
  const Tensor before = net.state(name, Shape(DType::f32, {net.batch, inner, n})).unsqueeze(1);
  const Tensor decay = (d.unsqueeze(3) * a).exp();
  const Tensor input = (d * x).unsqueeze(3) * b.unsqueeze(2);
  const Tensor states = linear_recurrence(concat({before.zeros_like(), decay}, {.axis = 1}),
                                          concat({before, input}, {.axis = 1}), {.axis = 1});
  net.set_state(name, states.narrow(1, net.seq, 1).reshape({net.batch, inner, n}));
  return (states.narrow(1, 1, net.seq) * c.unsqueeze(2)).sum({3});
}

Tensor mixer(Net& net, const Tensor& input) {
  const StateSpace& m = net.c.ssm;
  const Tensor real = net.real_tokens();
  const auto masked = [&](const Tensor& x) { return real.is_empty() ? x : x * real; };
  const Tensor both = net.linear("in", masked(input), 2 * m.inner);
  const Tensor x = causal_convolution(net, "conv", both.narrow(2, 0, m.inner), m.conv);
  const Tensor parts = net.linear("x", x, m.dt_rank + 2 * m.state);
  // A step of 0 leaves the state as it is: what padding is to do.
  const Tensor d = masked(net.linear("dt", parts.narrow(2, 0, m.dt_rank), m.inner).softplus());
  const Tensor b = parts.narrow(2, m.dt_rank, m.state), c = parts.narrow(2, m.dt_rank + m.state, m.state);
  const Tensor a = net.decay("a", {m.inner, m.state});
  const Tensor y = net.cached() ? scan_with_state(net, x, d, a, b, c) : selective_scan(x, d, a, b, c);
  return net.linear("out", (y + x * net.weight("d", {m.inner})) * both.narrow(2, m.inner, m.inner).silu(),
                    net.c.hidden);
}

void build(Net& net) {
  Tensor x = net.embed();
  for (net.layer = 0; net.layer < net.c.layers; ++net.layer) {
    const auto label = net.label_layer();
    x = x + mixer(net, net.rms_norm("mixer_norm", x));
  }
  net.finish_decoder(net.rms_norm("norm", x));
}

constexpr std::string_view kHf[] = {"mamba"}, kGguf[] = {"mamba"}, kPrefixes[] = {"backbone.", ""};

}  // namespace

constexpr Architecture kMamba{"mamba", kHf, kGguf, kNames, kPrefixes, configure, build};

}  // namespace rlx::models
