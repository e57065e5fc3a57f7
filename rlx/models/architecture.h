// What this library knows about an architecture: one record in the file of its name, listed in architecture.cpp.
#pragma once

#include <span>
#include <string_view>

#include "rlx/models/config_source.h"
#include "rlx/models/net.h"

namespace rlx::models {

struct Architecture {
  std::string_view name;
  std::span<const std::string_view> hf, gguf;  // model_type of config.json, general.architecture of GGUF
  std::span<const WeightName> names;
  /// What may stand before the names of a folder where the table has '@'; the first that fits counts.
  std::span<const std::string_view> prefixes;
  /// Fills what is the architecture's own from the file's words.
  void (*configure)(ConfigSource&, Config&);
  /// Builds the graph, layer by layer.
  void (*build)(Net&);
  /// Parts of names of tensors that a file may hold and no graph reads.
  std::span<const std::string_view> unread = {};
  /// Where several architectures share a word of GGUF: whether a file is of this one.
  bool (*is_of)(const io::GgufFile&) = nullptr;
  /// Keys of weights that GGUF holds in another order or with other factors than folders, beyond Rope::reordered.
  std::span<const std::string_view> changed = {};
  /// The head that guesses the token behind the next; null where there is none, or it is not built.
  void (*build_draft)(Net&) = nullptr;
};

/// All there are, in the order in which files are asked.
std::span<const Architecture* const> architectures();
/// By the file's word for it; an unknown one is a user error with the list.
const Architecture& architecture_of(const ConfigSource&);

/// Words every decoder of the Llama family has: sizes, heads, the norm's epsilon, activation, tied embeddings, ends of text.
void read_decoder(ConfigSource&, Config&);
/// A window over all layers, over those that layer_types names, or none.
void read_layer_types(ConfigSource&, Config&, Mixer rest = Mixer::attention);
/// By the file's word; an unknown one is a user error with the list.
Activation activation_named(const ConfigSource&, std::string_view word);

extern const Architecture kLlama, kMistral, kMixtral, kPhi3, kQwen2, kQwen2Moe, kQwen3, kQwen3Moe, kQwen3Next,
    kQwen35, kGemma2, kGemma3, kGranite, kOlmo2, kDeepseek2, kDeepseek3, kGpt2, kGptNeox, kMamba, kMamba2,
    kFalconH1, kBert, kRoberta, kDistilbert, kModernbert;

}  // namespace rlx::models
