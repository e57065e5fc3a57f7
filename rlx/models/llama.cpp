// Llama 2 and 3, SmolLM2: pre-norm decoder with rotary positions, grouped queries and a gated feed-forward net.
#include "rlx/models/architecture.h"
#include "rlx/models/layers.h"
#include "rlx/models/llama_names.h"

namespace rlx::models {
namespace {

void configure(ConfigSource& s, Config& c) {
  read_decoder(s, c);
  c.rope = read_rope(s, c, c.head_dim);
  c.rope.interleaved = c.rope.reordered = s.is_gguf();  // whose rows of q and k are in another order
  c.window = s.find_integer({"", "attention.sliding_window"}).value_or(0);  // Mistral's files are Llama's
  if (c.window > 0) c.mixers.assign(size_t(c.layers), Mixer::window);
  s.require_flag({"rope_interleaved"}, false);
  s.require_none({"", "expert_count"});
  s.require_none({"", "expert_used_count"});
}

bool has_no_experts(const io::GgufFile& file) {
  const io::GgufValue* count = file.find("llama.expert_count");
  return count == nullptr || count->integer() == 0;
}

constexpr std::string_view kHf[] = {"llama"}, kGguf[] = {"llama"};

}  // namespace

void build_llama(Net& net) {
  Tensor x = net.embed();
  for (net.layer = 0; net.layer < net.c.layers; ++net.layer) {
    const auto label = net.label_layer();
    x = x + self_attention(net, net.rms_norm("attn_norm", x));
    x = x + feed_forward(net, net.rms_norm("ffn_norm", x));
  }
  net.finish_decoder(net.rms_norm("norm", x));
}

constexpr Architecture kLlama{"llama",   kHf,         kGguf, kLlamaNames,   kDecoderPrefixes,
                              configure, build_llama, {},    has_no_experts};

}  // namespace rlx::models
