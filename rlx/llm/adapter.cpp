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

namespace rlx::llm {

namespace {

Literal as_f32(const io::TensorView& t) {
  Literal value = io::to_literal(t);
  return value.dtype() == DType::f32 ? value : value.cast(DType::f32);
}

// Settings of PEFT that change nothing when they have these values, or that only say how the adapter was trained.
constexpr std::string_view kTrainingOnly[] = {"auto_mapping",      "base_model_name_or_path",
                                              "inference_mode",    "init_lora_weights",
                                              "lora_dropout",      "peft_type",
                                              "peft_version",      "revision",
                                              "task_type",         "target_modules",
                                              "target_parameters", "exclude_modules",
                                              "layers_pattern",    "layers_to_transform",
                                              "megatron_core",     "megatron_config",
                                              "loftq_config",      "eva_config",
                                              "corda_config",      "lora_ga_config",
                                              "qalora_group_size", "ensure_weight_tying",
                                              "runtime_config",    "r",
                                              "lora_alpha",        "use_rslora",
                                              "alpha_pattern",     "rank_pattern",
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

bool is_off(JsonView v) {
  return v.is_null() || (v.kind() == JsonKind::boolean && !v.boolean()) ||
         ((v.is_array() || v.is_object()) && v.size() == 0);
}

template <size_t N>
bool listed(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

void check_peft(const Json& config) {
  if (const auto type = config.find("peft_type"); !type || type->string() != "LORA")
    throw config.error("is no LoRA adapter; peft_type LORA expected");
  for (const auto [key, v] : config.members()) {
    if (listed(kTrainingOnly, key)) continue;
    if (key == "bias" && v.string() == "none") continue;
    if (listed(kMustBeOff, key) && is_off(v)) continue;
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

  Json config;
  double alpha = 0;
  bool root = false;  // scale by the square root of the rank
  if (folder) {
    config = Json::read(config_path);
    check_peft(config);
    alpha = config.at("lora_alpha").real();
    if (const auto rs = config.find("use_rslora")) root = rs->boolean();
  } else {
    const io::GgufValue* type = file.gguf->find("general.type");
    const io::GgufValue* kind = file.gguf->find("adapter.type");
    if (!type || type->string() != "adapter" || !kind || kind->string() != "lora")
      throw invalid("adapter '", path, "': general.type adapter and adapter.type lora expected");
    alpha = file.gguf->at("adapter.lora.alpha").real();
  }

  struct Halves {
    const io::TensorView *a = nullptr, *b = nullptr;
  };
  std::map<std::string, Halves> found;
  const std::string_view a_end = folder ? ".lora_A.weight" : ".lora_a",
                         b_end = folder ? ".lora_B.weight" : ".lora_b";
  const std::string_view front = folder ? "base_model.model." : "";
  for (const io::TensorView& t : file.tensors) {
    const bool is_a = t.name.ends_with(a_end), is_b = t.name.ends_with(b_end);
    if ((!is_a && !is_b) || !t.name.starts_with(front))
      throw invalid("adapter '", path, "': tensor '", t.name, "' is no part of a LoRA adapter");
    std::string name =
        t.name.substr(front.size(), t.name.size() - front.size() - (is_a ? a_end : b_end).size());
    if (folder) name += ".weight";
    (is_a ? found[name].a : found[name].b) = &t;
  }
  for (const auto& [name, h] : found) {
    if (!h.a || !h.b) throw invalid("adapter '", path, "': '", name, "' has one half of a pair only");
    const int64_t rank = h.a->dims.at(0);
    if (h.a->dims.size() != 2 || h.b->dims.size() != 2 || h.b->dims[1] != rank || rank < 1)
      throw invalid("adapter '", path, "': '", name, "' has halves that do not fit together");
    const double own = folder ? pattern_value(config, "alpha_pattern",
                                              std::string_view(name).substr(0, name.size() - 7), alpha)
                              : alpha;
    adapter.parts_[name] = {as_f32(*h.a), as_f32(*h.b),
                            own / (root ? std::sqrt(double(rank)) : double(rank))};
  }
  if (adapter.parts_.empty()) throw invalid("adapter '", path, "': no tensors in it");
  return adapter;
}

namespace {

// Rows (half, pair) of each head, as a folder has them, in the order (pair, half) of GGUF.
Tensor in_pairs(const Tensor& b, int64_t lanes) {
  const int64_t rows = b.dim(0).value(), rank = b.dim(1).value();
  return b.reshape({rows / lanes, 2, lanes / 2, rank}).transpose({0, 2, 1, 3}).reshape({rows, rank});
}

}  // namespace

models::LinearHook Adapter::hook() const {
  return [this](const models::LinearSite& site, const Tensor& x, const Tensor& y) {
    const auto found = parts_.find(name_in(site));
    if (found == parts_.end()) return y;
    const Part& p = found->second;
    ir::Graph& g = x.graph();
    const Tensor a = ir::Expr{&g, g.param("adapter." + found->first + ".a", p.a.shape())};
    Tensor b = ir::Expr{&g, g.param("adapter." + found->first + ".b", p.b.shape())};
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
    const std::string name = name_in(site);
    const auto found = parts_.find(name);
    if (found == parts_.end()) return y;
    if (!for_gguf_ && site.changed)
      throw invalid("adapter '", path_, "': '", name, "' is stored otherwise in '", model.file().path,
                    "'; use the adapter with the folder of the model");
    const Part& p = found->second;
    if (p.a.shape().dim(1).value() != site.in || p.b.shape().dim(0).value() != site.out)
      throw invalid("adapter '", path_, "': '", name, "' is for a weight of [", p.b.shape().dim(0).value(),
                    ", ", p.a.shape().dim(1).value(), "]; the model's is [", site.out, ", ", site.in, "]");
    used.insert(name);
    return y;
  }});
  for (const auto& [name, part] : parts_)
    if (!used.contains(name)) throw invalid("adapter '", path_, "': the model has no weight '", name, "'");
}

}  // namespace rlx::llm
