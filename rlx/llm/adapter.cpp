#include "rlx/llm/adapter.h"

#include <cmath>
#include <filesystem>
#include <regex>
#include <set>

#include "rlx/base/error.h"
#include "rlx/base/json.h"
#include "rlx/io/literal.h"
#include "rlx/io/model_file.h"
#include "rlx/lang/operators.h"
#include "rlx/llm/adapter_experts.h"

namespace rlx::llm {

namespace {

Literal as_f32(const io::TensorView& t) {
  Literal value = io::to_literal(t);
  return value.dtype() == DType::f32 ? value : value.cast(DType::f32);
}

// Settings of PEFT that change nothing when they have these values, or that only say how the adapter was trained.
constexpr std::string_view kTrainingOnly[] = {"auto_mapping",
                                              "base_model_name_or_path",
                                              "inference_mode",
                                              "lora_dropout",
                                              "peft_type",
                                              "peft_version",
                                              "revision",
                                              "task_type",
                                              "target_modules",
                                              "target_parameters",
                                              "exclude_modules",
                                              "layers_pattern",
                                              "layers_to_transform",
                                              "megatron_core",
                                              "megatron_config",
                                              "loftq_config",
                                              "eva_config",
                                              "corda_config",
                                              "lora_ga_config",
                                              "qalora_group_size",
                                              "ensure_weight_tying",
                                              "runtime_config",
                                              "r",
                                              "lora_alpha",
                                              "use_rslora",
                                              "alpha_pattern",
                                              "rank_pattern",
                                              "fan_in_fan_out"};
// These must be off.
constexpr std::string_view kMustBeOff[] = {"lora_bias",
                                           "use_dora",
                                           "use_qalora",
                                           "use_bdlora",
                                           "modules_to_save",
                                           "layer_replication",
                                           "trainable_token_indices",
                                           "arrow_config",
                                           "alora_invocation_tokens",
                                           "kasa_config",
                                           "monteclora_config",
                                           "velora_config"};

template <size_t N>
bool listed(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Ways to start that change the weights beside the adapter too (pissa, olora, corda, loftq, lora_ga): PEFT does it again when it
// loads the adapter, and without that the adapter is for other weights.
constexpr std::string_view kStartsAlone[] = {"gaussian", "orthogonal", "eva"};

bool starts_alone(JsonView v) {
  return v.is_null() || v.kind() == JsonKind::boolean ||
         (v.kind() == JsonKind::string && listed(kStartsAlone, v.string()));
}

bool is_off(JsonView v) {
  return v.is_null() || (v.kind() == JsonKind::boolean && !v.boolean()) ||
         ((v.is_array() || v.is_object()) && v.size() == 0);
}

void check_peft(const Json& config) {
  if (const auto type = config.find("peft_type"); !type || type->string() != "LORA")
    throw config.error("is no LoRA adapter; peft_type LORA expected");
  for (const auto [key, v] : config.members()) {
    if (listed(kTrainingOnly, key)) continue;
    if (key == "bias" && v.string() == "none") continue;
    if (listed(kMustBeOff, key) && is_off(v)) continue;
    if (key == "init_lora_weights") {
      if (starts_alone(v)) continue;
      throw v.error("is ", v.text(),
                    ", which changes weights of the model too; an adapter that PEFT saved with ",
                    "path_initial_model_for_weight_conversion stands alone");
    }
    throw v.error("is ", v.text(), ", which is not supported");
  }
}

// alpha of a module: that of the first pattern that is its name or ends it, else that of the adapter.
double pattern_value(const Json& config, const char* patterns, std::string_view module, double otherwise) {
  if (const auto table = config.find(patterns))
    for (const auto [pattern, v] : table->members())
      if (std::regex_match(std::string(module), std::regex("(.*\\.)?(" + std::string(pattern) + ")")))
        return v.real();
  return otherwise;
}

}  // namespace

namespace {

// The two halves of each part, by the name of what it changes, and the weight itself where it is stored with them.
struct Halves {
  const io::TensorView *a = nullptr, *b = nullptr, *original = nullptr;
};

// How names of tensors end.
struct Ends {
  std::string_view a, b, original = {};
};
constexpr Ends kPeftEnds{".lora_A.weight", ".lora_B.weight", ".base_layer.weight"},
    kGgufEnds{".lora_a", ".lora_b"};

std::map<std::string, Halves> halves_of(const io::ModelFile& file, std::string_view path,
                                        std::string_view front, const Ends& ends) {
  std::map<std::string, Halves> found;
  for (const io::TensorView& t : file.tensors) {
    const std::pair<std::string_view, const io::TensorView * Halves::*> kinds[] = {
        {ends.a, &Halves::a}, {ends.b, &Halves::b}, {ends.original, &Halves::original}};
    const auto kind = std::find_if(std::begin(kinds), std::end(kinds), [&](const auto& k) {
      return !k.first.empty() && t.name.ends_with(k.first);
    });
    if (t.name.find(".lora_embedding_") != t.name.npos)
      throw invalid("adapter '", path, "': tensor '", t.name,
                    "' changes an embedding; only products are supported");
    if (kind == std::end(kinds) || !t.name.starts_with(front))
      throw invalid("adapter '", path, "': tensor '", t.name, "' is no part of a LoRA adapter");
    const std::string name = t.name.substr(front.size(), t.name.size() - front.size() - kind->first.size());
    found[name].*kind->second = &t;
  }
  for (const auto& [name, h] : found)
    if (!h.a || !h.b) throw invalid("adapter '", path, "': '", name, "' has one half of a pair only");
  return found;
}

// [rank, in] with [out, rank], or both with as many experts in front.
void check_halves(const Halves& h, std::string_view name, std::string_view path) {
  const auto &a = h.a->dims, &b = h.b->dims;
  const bool plain = a.size() == 2 && b.size() == 2, experts = a.size() == 3 && b.size() == 3 && a[0] == b[0];
  if ((!plain && !experts) || a[a.size() - 2] != b.back() || b.back() < 1)
    throw invalid("adapter '", path, "': '", name, "' has halves that do not fit together");
}

}  // namespace

Adapter Adapter::open(const std::string& path) {
  Adapter adapter;
  adapter.path_ = path;
  const bool folder = std::filesystem::is_directory(path);
  const std::string config_path = path + "/adapter_config.json";
  if (folder && !std::filesystem::exists(config_path))
    throw invalid("adapter '", path, "': no adapter_config.json in this folder");
  const io::ModelFile file = io::ModelFile::open(folder ? path + "/adapter_model.safetensors" : path);
  adapter.for_gguf_ = file.gguf.has_value();
  if (!folder && !adapter.for_gguf_)
    throw invalid("adapter '", path, "': a PEFT folder or a GGUF adapter expected");
  if (folder) {
    adapter.read_peft(file, Json::read(config_path));
  } else {
    adapter.read_gguf(file);
  }
  if (adapter.parts_.empty()) throw invalid("adapter '", path, "': no tensors in it");
  return adapter;
}

void Adapter::read_gguf(const io::ModelFile& file) {
  const io::GgufValue* type = file.gguf->find("general.type");
  const io::GgufValue* kind = file.gguf->find("adapter.type");
  if (!type || type->string() != "adapter" || !kind || kind->string() != "lora")
    throw invalid("adapter '", path_, "': general.type adapter and adapter.type lora expected");
  const double alpha = file.gguf->at("adapter.lora.alpha").real();
  for (const auto& [name, h] : halves_of(file, path_, "", kGgufEnds)) {
    check_halves(h, name, path_);
    parts_[name] = {as_f32(*h.a), as_f32(*h.b), alpha / double(h.b->dims.back())};
  }
}

void Adapter::read_peft(const io::ModelFile& file, const Json& config) {
  check_peft(config);
  const double alpha = config.at("lora_alpha").real();
  bool root = false;  // scale by the square root of the rank
  if (const auto rs = config.find("use_rslora")) root = rs->boolean();
  std::vector<std::string> parameters;
  if (const auto list = config.find("target_parameters"); list && list->is_array())
    for (const JsonView item : list->items()) parameters.emplace_back(item.string());
  for (const auto& [module, h] : halves_of(file, path_, "base_model.model.", kPeftEnds)) {
    check_halves(h, module, path_);
    if (h.original) originals_.emplace(module + ".weight", *h.original);
    const std::string target =
        is_joined_module(module) ? joined_parameter(module, parameters, path_) : module;
    const double own = pattern_value(config, "alpha_pattern", target, alpha);
    const auto scale = [&](int64_t rank) { return own / (root ? std::sqrt(double(rank)) : double(rank)); };
    if (is_joined_module(module)) {
      const auto rank = int64_t(pattern_value(config, "rank_pattern", target, config.at("r").real()));
      parts_.merge(parts_of_joined(target, as_f32(*h.a), as_f32(*h.b), rank, scale(rank), path_));
    } else {
      parts_[module + ".weight"] = {as_f32(*h.a), as_f32(*h.b), scale(h.b->dims.back())};
    }
  }
  join_experts(parts_, path_);
}

namespace {

// Rows (half, pair) of each head, as a folder has them, in the order (pair, half) of GGUF.
Tensor in_pairs(const Tensor& b, int64_t lanes) {
  const int64_t rows = b.dim(0).value(), rank = b.dim(1).value();
  return b.reshape({rows / lanes, 2, lanes / 2, rank}).transpose({0, 2, 1, 3}).reshape({rows, rank});
}

}  // namespace

Adapter::Parts::const_iterator Adapter::find(const models::LinearSite& site) const {
  auto found = parts_.find(for_gguf_ ? site.gguf : site.hf);
  if (for_gguf_) return found;
  for (auto it = site.other_hf.begin(); found == parts_.end() && it != site.other_hf.end(); ++it)
    found = parts_.find(*it);
  return found;
}

void Adapter::check_original(const std::string& name, const models::LinearSite& site,
                             const io::ModelFile& model) const {
  const auto stored = originals_.find(name);
  if (stored == originals_.end()) return;
  const auto weight = std::find_if(model.tensors.begin(), model.tensors.end(),
                                   [&](const io::TensorView& t) { return t.name == site.hf; });
  if (weight == model.tensors.end() || io::to_f32(*weight) != io::to_f32(stored->second))
    throw invalid("adapter '", path_, "': its copy of '", name, "' is not the weight of the model '",
                  model.path, "'; the folder that the adapter was made for is expected");
}

models::LinearHook Adapter::hook() const {
  return [this](const models::LinearSite& site, const Tensor& x, const Tensor& y) {
    const auto found = find(site);
    if (found == parts_.end()) return y;
    const Part& p = found->second;
    ir::Graph& g = x.graph();
    Tensor a = ir::Expr{&g, g.param("adapter." + found->first + ".a", p.a.shape())};
    Tensor b = ir::Expr{&g, g.param("adapter." + found->first + ".b", p.b.shape())};
    if (p.of_experts()) {
      if (const int64_t rest = site.experts - p.experts(); rest > 0) {
        a = a.pad({0, 0, 0}, {rest, 0, 0});
        b = b.pad({0, 0, 0}, {rest, 0, 0});
      }
      return y + grouped_matmul(grouped_matmul(x, a.t(), site.expert), b.t(), site.expert) * p.scale;
    }
    if (!for_gguf_ && site.paired_lanes > 0) b = in_pairs(b, site.paired_lanes);
    return y + x.matmul(a.t()).matmul(b.t()) * p.scale;
  };
}

ir::NamedLiterals Adapter::weights() const {
  ir::NamedLiterals out;
  for (const auto& [name, part] : parts_) {
    out.insert_or_assign("adapter." + name + ".a", part.a);
    out.insert_or_assign("adapter." + name + ".b", part.b);
  }
  return out;
}

void Adapter::set_weights(const ir::NamedLiterals& values) {
  for (auto& [name, part] : parts_) {
    part.a = values.at("adapter." + name + ".a");
    part.b = values.at("adapter." + name + ".b");
  }
}

void Adapter::check_fits(const models::Model& model) const {
  if (for_gguf_ && !model.file().gguf)
    throw invalid("adapter '", path_, "' is in GGUF form, and the model '", model.file().path,
                  "' is a folder; take the adapter in PEFT form");
  std::set<std::string> used;
  model.graph({.linear = [&](const models::LinearSite& site, const Tensor&, const Tensor& y) {
    const auto found = find(site);
    if (found == parts_.end()) return y;
    const auto& [name, p] = *found;
    if (!for_gguf_ && site.changed)
      throw invalid("adapter '", path_, "': '", name, "' is stored otherwise in '", model.file().path,
                    "'; use the adapter with the folder of the model");
    if (p.of_experts() != (site.experts > 0) || p.experts() > site.experts)
      throw invalid("adapter '", path_, "': '", name, "' is for ", p.experts(),
                    " experts (0: one weight for all tokens); the model's is for ", site.experts);
    if (p.in() != site.in || p.out() != site.out)
      throw invalid("adapter '", path_, "': '", name, "' is for a weight of [", p.out(), ", ", p.in(),
                    "]; the model's is [", site.out, ", ", site.in, "]");
    check_original(name, site, model.file());
    used.insert(name);
    return y;
  }});
  for (const auto& [name, part] : parts_)
    if (!used.contains(name)) throw invalid("adapter '", path_, "': the model has no weight '", name, "'");
}

}  // namespace rlx::llm
