// Mistral: Llama whose tokens see a window of those before them.
#include "rlx/models/architecture.h"
#include "rlx/models/layers.h"
#include "rlx/models/llama_names.h"

namespace rlx::models {
namespace {

void configure(ConfigSource& s, Config& c) {
  read_decoder(s, c);
  c.rope = read_rope(s, c, c.head_dim);
  c.window = s.find_integer({"sliding_window"}).value_or(0);
  read_layer_types(s, c, c.window > 0 ? Mixer::window : Mixer::attention);
}

constexpr std::string_view kHf[] = {"mistral"};

}  // namespace

constexpr Architecture kMistral{"mistral", kHf, {}, kLlamaNames, kDecoderPrefixes, configure, build_llama};

}  // namespace rlx::models
