// Mixtral: Mistral whose feed-forward nets are experts, two for each token, weighted by a softmax over the chosen.
#include "rlx/models/architecture.h"
#include "rlx/models/layers.h"
#include "rlx/models/llama_names.h"

namespace rlx::models {
namespace {

void configure(ConfigSource& s, Config& c) {
  read_decoder(s, c);
  c.rope = read_rope(s, c, c.head_dim);
  c.rope.interleaved = c.rope.reordered = s.is_gguf();
  c.window = s.find_integer({"sliding_window", "attention.sliding_window"}).value_or(0);
  read_layer_types(s, c, c.window > 0 ? Mixer::window : Mixer::attention);
  c.moe = {.experts = s.integer({"num_local_experts", "expert_count"}),
           .chosen = s.integer({"num_experts_per_tok", "expert_used_count"}),
           .width = c.intermediate,
           .normalised = true,  // a softmax over the chosen is that over all, normalised
           .layers = std::vector<bool>(size_t(c.layers), true)};
}

bool has_experts(const io::GgufFile& file) {
  const io::GgufValue* count = file.find("llama.expert_count");
  return count != nullptr && count->integer() > 0;
}

constexpr std::string_view kHf[] = {"mixtral"}, kGguf[] = {"llama"};

}  // namespace

constexpr Architecture kMixtral{"mixtral", kHf,         kGguf, kLlamaNames, kDecoderPrefixes,
                                configure, build_llama, {},    has_experts};

}  // namespace rlx::models
