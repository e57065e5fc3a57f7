// Phi-3: Llama with q, k, v in one weight and gate, up in another; a part of each head turns, by short or long factors.
#include "rlx/models/architecture.h"
#include "rlx/models/layers.h"
#include "rlx/models/llama_names.h"

namespace rlx::models {
namespace {

void configure(ConfigSource& s, Config& c) {
  read_decoder(s, c);
  const auto lanes = int64_t(double(c.head_dim) * partial_rotary_factor(s));
  c.rope = read_rope(s, c, lanes);
  c.window = s.find_integer({"sliding_window"}).value_or(0);
  read_layer_types(s, c, c.window > 0 ? Mixer::window : Mixer::attention);
}

constexpr std::string_view kHf[] = {"phi3"};

}  // namespace

constexpr Architecture kPhi3{"phi3", kHf, {}, kLlamaNames, kDecoderPrefixes, configure, build_llama};

}  // namespace rlx::models
