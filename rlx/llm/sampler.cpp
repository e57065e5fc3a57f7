#include "rlx/llm/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "rlx/base/error.h"

namespace rlx::llm {

void check_sampling(const Sampling& s, int64_t vocab) {
  const auto require = [](bool holds, const char* name, double value, const char* range) {
    if (!holds) throw invalid("sampling: ", name, " is ", value, "; ", range);
  };
  require(s.temperature >= 0 && std::isfinite(s.temperature), "temperature", s.temperature,
          "0 or above expected");
  require(s.top_k >= 0, "top_k", double(s.top_k), "0 (all) or above expected");
  require(s.top_p > 0 && s.top_p <= 1, "top_p", s.top_p, "above 0 and at most 1 expected");
  require(s.min_p >= 0 && s.min_p <= 1, "min_p", s.min_p, "0 to 1 expected");
  require(s.repetition_penalty > 0 && std::isfinite(s.repetition_penalty), "repetition_penalty",
          s.repetition_penalty, "above 0 expected");
  require(std::isfinite(s.frequency_penalty), "frequency_penalty", s.frequency_penalty,
          "a finite number expected");
  require(std::isfinite(s.presence_penalty), "presence_penalty", s.presence_penalty,
          "a finite number expected");
  for (const auto& [id, bias] : s.logit_bias)
    if (id < 0 || id >= vocab || std::isnan(bias))
      throw invalid("sampling: a logit bias of ", bias, " for token ", id, "; tokens are 0 to ", vocab - 1);
}

struct Sampler::State {
  int64_t vocab;
  CompileOptions options;
  std::map<SamplerParts, CompiledGraph> graphs;
  std::vector<float> bias, generated;
  std::vector<uint8_t> mask, in_text;
  std::vector<Input> inputs;
  CompiledGraph* last = nullptr;
  TensorView ids, probabilities;  // of the last run

  CompiledGraph& graph(const SamplerParts& parts) {
    const auto found = graphs.find(parts);
    if (found != graphs.end()) return found->second;
    return graphs.emplace(parts, compile(sampler_graph(vocab, parts), {}, options)).first->second;
  }
  void fill_tables(const Sampler::Row& row, const SamplerParts& parts);
};

namespace {

SamplerParts parts_of(const Sampler::Row& row, int64_t vocab) {
  const Sampling& s = *row.sampling;
  SamplerParts parts;
  parts.penalties = s.penalised();
  parts.bias = !s.logit_bias.empty();
  parts.mask = !row.mask.empty();
  parts.draw = !s.greedy();
  if (!parts.draw) return parts;
  parts.filters = (s.top_k > 0 && s.top_k < vocab) || s.top_p < 1 || s.min_p > 0;
  if (parts.filters && s.top_k > 0 && s.top_k < vocab)
    parts.shortlist = int64_t(std::bit_ceil(uint64_t(std::max<int64_t>(s.top_k, 64))));
  if (parts.shortlist >= vocab) parts.shortlist = 0;
  return parts;
}

}  // namespace

Sampler::Sampler(int64_t vocab, CompileOptions options)
    : state_(new State{.vocab = vocab, .options = std::move(options)}) {}
Sampler::~Sampler() = default;
Sampler::Sampler(Sampler&&) noexcept = default;

void Sampler::State::fill_tables(const Sampler::Row& row, const SamplerParts& parts) {
  const auto n = size_t(vocab);
  const auto table = [&](const char* name, auto* data) { inputs.push_back({name, view(data, {1, vocab})}); };
  if (parts.bias) {
    bias.assign(n, 0);
    for (const auto& [id, value] : row.sampling->logit_bias) bias[size_t(id)] = float(value);
    table("bias", bias.data());
  }
  if (parts.penalties) {
    in_text.assign(n, 0);
    generated.assign(n, 0);
    for (const TokenId id : row.prompt) in_text[size_t(id)] = 1;
    for (const TokenId id : row.generated) in_text[size_t(id)] = 1, generated[size_t(id)] += 1;
    table("in_text", reinterpret_cast<bool*>(in_text.data()));
    table("generated", generated.data());
  }
  if (parts.mask) {
    mask.assign(n, 0);
    for (size_t id = 0; id < std::min(n, row.mask.size() * 32); ++id)
      mask[id] = row.mask[id / 32] >> (id % 32) & 1;
    table("mask", reinterpret_cast<bool*>(mask.data()));
  }
}

Sampler::Choice Sampler::choose(std::span<const float> logits, const Row& row) {
  State& s = *state_;
  RLX_CHECK(int64_t(logits.size()) == s.vocab, logits.size(), " logits");
  const SamplerParts parts = parts_of(row, s.vocab);
  CompiledGraph& graph = s.graph(parts);
  const Sampling& set = *row.sampling;
  const auto temperature = float(set.temperature), top_p = float(set.top_p), min_p = float(set.min_p),
             repetition = float(set.repetition_penalty), frequency = float(set.frequency_penalty),
             presence = float(set.presence_penalty);
  const auto top_k = int32_t(std::min(set.top_k, s.vocab));
  const auto seed = int64_t(set.seed), step = int64_t(row.generated.size());
  s.inputs.assign(1, {"logits", view(logits.data(), {1, s.vocab})});
  s.fill_tables(row, parts);
  const auto setting = [&](const char* name, const auto& value) {
    s.inputs.push_back({name, view(&value, {1})});
  };
  if (parts.penalties) {
    setting("repetition", repetition);
    setting("frequency", frequency);
    setting("presence", presence);
  }
  if (parts.draw) {
    setting("temperature", temperature);
    setting("seed", seed);
    setting("step", step);
  }
  if (parts.filters) {
    setting("top_k", top_k);
    setting("top_p", top_p);
    setting("min_p", min_p);
  }
  const Outputs out = graph.run(s.inputs);
  s.ids = s.probabilities = {};
  if (parts.draw) s.ids = out.view("ids"), s.probabilities = out.view("probabilities");
  return {out.view("token").as<int32_t>()[0], out.view("log_probability").as<float>()[0]};
}

std::vector<std::pair<TokenId, float>> Sampler::distribution() const {
  std::vector<std::pair<TokenId, float>> kept;
  if (!state_->ids.data) return kept;
  const auto ids = state_->ids.as<int32_t>();
  const auto probabilities = state_->probabilities.as<float>();
  for (size_t i = 0; i < ids.size(); ++i)
    if (probabilities[i] > 0) kept.emplace_back(ids[i], probabilities[i]);
  return kept;
}

}  // namespace rlx::llm
