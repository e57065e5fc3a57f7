// Mamba 2: state-space layers alone, each head with one decay.
#include "rlx/models/architecture.h"
#include "rlx/models/state_space.h"

namespace rlx::models {
namespace {

constexpr WeightName kNames[] = {
    {"embed", "@embeddings.weight|@embedding.weight"},
    {"norm", "@norm_f.weight"},
    {"head", "lm_head.weight"},
    {"mixer_norm", "@layers.{}.norm.weight"},
    {"ssm_in", "@layers.{}.mixer.in_proj.weight"},
    {"ssm_conv", "@layers.{}.mixer.conv1d.weight"},
    {"ssm_dt", "@layers.{}.mixer.dt_bias"},
    {"ssm_a", "@layers.{}.mixer.A_log"},
    {"ssm_d", "@layers.{}.mixer.D"},
    {"ssm_norm", "@layers.{}.mixer.norm.weight"},
    {"ssm_out", "@layers.{}.mixer.out_proj.weight"},
};

void configure(ConfigSource& s, Config& c) {
  read_decoder(s, c);
  StateSpace& m = c.ssm;
  m.heads = s.integer({"num_heads"});
  m.inner = m.heads * s.integer({"head_dim"});
  m.state = s.integer({"state_size"});
  m.conv = s.integer({"conv_kernel"});
  m.groups = s.find_integer({"n_groups"}).value_or(1);
  const auto limit = s.reals({"time_step_limit"});
  if (limit.size() == 2) m.dt_low = limit[0], m.dt_high = limit[1];
  s.ignore("time_step_rank");
  const auto expand = s.find_real({"expand"});
  if (expand && int64_t(*expand * double(c.hidden)) != m.inner)
    throw invalid(s.where(), m.heads, " heads of ", m.inner / m.heads, " are not ", *expand, " times ",
                  c.hidden);
  if (m.groups < 1 || m.heads % m.groups != 0)
    throw invalid(s.where(), m.groups, " groups do not divide ", m.heads, " heads");
  s.ignore("norm_before_gate|rms_norm");  // an option of kernels; the gate always comes first
  c.mixers.assign(size_t(c.layers), Mixer::recurrent);
}

void build(Net& net) {
  Tensor x = net.embed();
  for (net.layer = 0; net.layer < net.c.layers; ++net.layer)
    x = x + state_space_layer(net, net.rms_norm("mixer_norm", x));
  net.finish_decoder(net.rms_norm("norm", x));
}

constexpr std::string_view kHf[] = {"mamba2"}, kPrefixes[] = {"backbone.", ""};

}  // namespace

constexpr Architecture kMamba2{"mamba2", kHf, {}, kNames, kPrefixes, configure, build};

}  // namespace rlx::models
