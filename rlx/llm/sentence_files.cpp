#include "rlx/llm/sentence_files.h"

#include <algorithm>
#include <filesystem>

#include "rlx/base/error.h"
#include "rlx/io/literal.h"

namespace rlx::llm {

namespace {

Literal as_f32(const io::TensorView& t) {
  const Literal value = io::to_literal(t);
  return value.dtype() == DType::f32 ? value : value.cast(DType::f32);
}

const io::TensorView* find_tensor(const io::ModelFile& file, std::string_view name) {
  const auto it = std::find_if(file.tensors.begin(), file.tensors.end(),
                               [&](const io::TensorView& t) { return t.name == name; });
  return it == file.tensors.end() ? nullptr : &*it;
}

// PyTorch's name of an activation, as "torch.nn.modules.activation.Tanh".
models::Activation activation_of(JsonView word) {
  const std::string_view whole = word.string();
  std::string name(whole.substr(whole.rfind('.') + 1));
  if (name == "Identity") return nullptr;
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
  if (const models::Activation found = models::find_activation(name)) return found;
  throw word.error("is '", whole, "'; Identity or one of ", models::activation_words(), " expected");
}

VectorStep dense_layer(const std::string& folder) {
  const Json config = Json::read(folder + "/config.json");
  const std::string path = folder + "/model.safetensors";
  if (!std::filesystem::exists(path))
    throw invalid("embed: dense layer '", folder, "': no model.safetensors in this folder");
  const io::ModelFile file = io::ModelFile::open(path);
  const io::TensorView *weight = find_tensor(file, "linear.weight"), *bias = find_tensor(file, "linear.bias");
  const int64_t in = config.at("in_features").integer(), out = config.at("out_features").integer();
  if (!weight || weight->dims != std::vector{out, in} || (bias && bias->dims != std::vector{out}))
    throw invalid("embed: dense layer '", folder, "': linear.weight [", out, ", ", in,
                  "] expected, and where it has a bias, linear.bias [", out, "]");
  VectorStep step{as_f32(*weight)};
  if (bias) step.bias = as_f32(*bias);
  if (const auto word = config.find("activation_function")) step.activation = activation_of(*word);
  return step;
}

// The modules that modules.json lists, in their order.
void read_modules(const std::string& folder, SentenceFiles& out) {
  std::string pooling = "1_Pooling";
  if (const std::string path = folder + "/modules.json"; std::filesystem::exists(path)) {
    pooling.clear();
    const Json modules = Json::read(path);
    for (const JsonView& module : modules.items()) {
      const std::string_view type = module.at("type").string(), kind = type.substr(type.rfind('.') + 1);
      const auto place = [&] { return cat(folder, "/", module.at("path").string()); };
      if (kind == "Pooling") {
        pooling = module.at("path").string();
      } else if (kind == "Dense") {
        out.steps.push_back(dense_layer(place()));
      } else if (kind == "Normalize") {
        out.steps.emplace_back();
      } else if (kind != "Transformer" && kind != "Dropout") {
        throw module.error("is a module '", kind,
                           "'; known: Transformer, Pooling, Dense, Normalize, Dropout");
      }
    }
    while (!out.steps.empty() && !out.steps.back().weight) out.steps.pop_back();
    if (pooling.empty()) return;
  }
  const std::string path = folder + "/" + pooling + "/config.json";
  if (std::filesystem::exists(path)) out.pooling = Json::read(path);
}

}  // namespace

SentenceFiles sentence_files(const std::string& folder) {
  SentenceFiles out;
  read_modules(folder, out);
  if (const std::string path = folder + "/sentence_bert_config.json"; std::filesystem::exists(path)) {
    const Json config = Json::read(path);
    if (const auto v = config.find("max_seq_length")) out.max_tokens = v->integer();
    if (const auto v = config.find("do_lower_case")) out.lowercase = v->boolean();
  }
  if (const std::string path = folder + "/config_sentence_transformers.json"; std::filesystem::exists(path)) {
    const Json config = Json::read(path);
    if (const auto name = config.find("default_prompt_name"))
      out.prompt = config.at("prompts").at(name->string()).string();
  }
  if (const auto v = out.pooling ? out.pooling->find("include_prompt") : std::nullopt;
      v && !v->boolean() && !out.prompt.empty())
    throw v->error("is false, and the model has the prompt '", out.prompt,
                   "'; poolings without it are not supported");
  return out;
}

// Newer files name the poolings, older ones have a flag for each. Several at once are beside each other in the vector.
Pooling pooling_of(const Json& config) {
  std::vector<std::string> on;
  if (const auto v = config.find("pooling_mode")) {
    if (v->is_array())
      for (const JsonView& name : v->items()) on.emplace_back(name.string());
    else
      on.emplace_back(v->string());
  }
  constexpr std::string_view kFlag = "pooling_mode_";
  for (const auto [key, v] : config.members())
    if (key.starts_with(kFlag) && v.boolean()) on.emplace_back(key.substr(kFlag.size()));
  const std::string mode = on.size() == 1 ? on[0] : "";
  if (mode == "cls" || mode == "cls_token") return Pooling::first;
  if (mode == "lasttoken") return Pooling::last;
  if (mode == "mean" || mode == "mean_tokens") return Pooling::mean;
  throw config.error("asks for the pooling '", join(on, " and "),
                     "'; one of cls, lasttoken and mean expected");
}

std::vector<VectorStep> stored_steps(const io::ModelFile& gguf) {
  std::vector<VectorStep> out;
  for (const char* name : {"dense_2.weight", "dense_3.weight"})
    if (const io::TensorView* t = find_tensor(gguf, name); t && t->dims.size() == 2)
      out.push_back({as_f32(*t)});
  return out;
}

}  // namespace rlx::llm
