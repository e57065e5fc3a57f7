// Arguments that the commands over models share: which model, how it is run, how tokens are chosen.
#pragma once

#include <string>
#include <vector>

#include "apps/rlx/arguments.h"
#include "rlx/llm/language_model.h"

namespace rlx::cli {

/// The folder of models that have a name: $RLX_MODELS, $XDG_CACHE_HOME/rlx/models or ~/.cache/rlx/models.
std::string model_cache();
struct CachedModel {
  std::string name, path;
  int64_t bytes = 0;
};
/// In the order of names.
std::vector<CachedModel> cached_models();
/// The path of a name in the cache; anything else as it is, and opening it says what is wrong.
std::string cached_path(const std::string& given);
/// A path as it is, or a name in the cache; neither is a user error that says what there is.
std::string model_path(const std::string& given);

/// --activations auto|f32.
void add_activations(Command command, std::string& activations);

struct RunArguments {
  std::string model, cache_type = "f32", activations = "auto", device = "cpu", precision = "f32";
  int64_t context = 4096;
  int threads = 0;

  void add(Command command);
  llm::ModelOptions options() const;
};

struct SamplingArguments {
  llm::Sampling sampling;
  std::vector<std::string> biases;

  explicit SamplingArguments(double temperature) { sampling.temperature = temperature; }
  void add(Command command);
  llm::Sampling read() const;
};

struct GrammarArguments {
  std::string gbnf, schema, regex;

  void add(Command command);
  std::shared_ptr<const llm::Grammar> read() const;
};

/// "first token 0.12 s, 31 tokens at 105.2 a second"
std::string speed_line(const llm::Generation&);

}  // namespace rlx::cli
