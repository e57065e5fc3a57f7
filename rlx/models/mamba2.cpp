// Mamba 2: state-space layers alone, each head with one decay.
#include <charconv>

#include "rlx/models/architecture.h"
#include "rlx/models/state_space.h"

namespace rlx::models {
namespace {

constexpr WeightName kNames[] = {
    {"embed", "@embeddings.weight|@embedding.weight", "token_embd.weight"},
    {"norm", "@norm_f.weight", "output_norm.weight"},
    {"head", "lm_head.weight", "output.weight"},
    {"mixer_norm", "@layers.{}.norm.weight", "blk.{}.attn_norm.weight"},
    {"ssm_in", "@layers.{}.mixer.in_proj.weight", "blk.{}.ssm_in.weight"},
    {"ssm_conv", "@layers.{}.mixer.conv1d.weight", "blk.{}.ssm_conv1d.weight"},
    {"ssm_dt", "@layers.{}.mixer.dt_bias", "blk.{}.ssm_dt.bias"},
    {"ssm_a", "@layers.{}.mixer.A_log", "blk.{}.ssm_a"},
    {"ssm_d", "@layers.{}.mixer.D", "blk.{}.ssm_d"},
    {"ssm_norm", "@layers.{}.mixer.norm.weight", "blk.{}.ssm_norm.weight"},
    {"ssm_out", "@layers.{}.mixer.out_proj.weight", "blk.{}.ssm_out.weight"},
};

// The norm behind the gate is that of each group by itself, as in the authors' program; transformers before 5.23 took all channels
// together, and a folder of its time means that.
int64_t norm_groups_of_folder(ConfigSource& s, int64_t groups) {
  const std::string version = s.find_text({"transformers_version"}).value_or("");
  int major = 0, minor = 0;
  const char *at = version.data(), *end = at + version.size();
  const auto first = std::from_chars(at, end, major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return groups;
  if (std::from_chars(first.ptr + 1, end, minor).ec != std::errc()) return groups;
  return major < 5 || (major == 5 && minor < 23) ? 1 : groups;
}

void configure(ConfigSource& s, Config& c) {
  read_decoder(s, c);
  StateSpace& m = c.ssm;
  m.heads = s.integer({"num_heads", "ssm.time_step_rank"});
  m.inner = s.is_gguf() ? s.integer({"", "ssm.inner_size"}) : m.heads * s.integer({"head_dim"});
  m.state = s.integer({"state_size", "ssm.state_size"});
  m.conv = s.integer({"conv_kernel", "ssm.conv_kernel"});
  m.groups = s.find_integer({"n_groups", "ssm.group_count"}).value_or(1);
  m.norm_groups = s.is_gguf() ? gguf_norm_groups(s) : norm_groups_of_folder(s, m.groups);
  const auto limit = s.reals({"time_step_limit"});
  if (limit.size() == 2) m.dt_low = limit[0], m.dt_high = limit[1];
  s.ignore("time_step_rank");
  const auto expand = s.find_real({"expand"});
  if (expand && int64_t(*expand * double(c.hidden)) != m.inner)
    throw invalid(s.where(), m.heads, " heads of ", m.inner / m.heads, " are not ", *expand, " times ",
                  c.hidden);
  check_state_space(s, c);
  s.ignore("norm_before_gate|rms_norm");  // an option of kernels; the gate always comes first
  c.mixers.assign(size_t(c.layers), Mixer::recurrent);
}

void build(Net& net) {
  Tensor x = net.embed();
  for (net.layer = 0; net.layer < net.c.layers; ++net.layer) {
    const auto label = net.label_layer();
    x = x + state_space_layer(net, net.rms_norm("mixer_norm", x));
  }
  net.finish_decoder(net.rms_norm("norm", x));
}

constexpr std::string_view kHf[] = {"mamba2"}, kGguf[] = {"mamba2"}, kPrefixes[] = {"backbone.", ""};

}  // namespace

constexpr Architecture kMamba2{"mamba2", kHf, kGguf, kNames, kPrefixes, configure, build};

}  // namespace rlx::models
