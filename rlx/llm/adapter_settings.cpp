#include "rlx/llm/adapter_settings.h"

#include <algorithm>
#include <regex>

namespace rlx::llm {

namespace {

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
                                              "fan_in_fan_out",
                                              "modules_to_save"};
// These must be off.
constexpr std::string_view kMustBeOff[] = {"lora_bias",         "use_dora",
                                           "use_qalora",        "use_bdlora",
                                           "layer_replication", "trainable_token_indices",
                                           "arrow_config",      "alora_invocation_tokens",
                                           "kasa_config",       "monteclora_config",
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

}  // namespace

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

double pattern_value(const Json& config, const char* patterns, std::string_view module, double otherwise) {
  if (const auto table = config.find(patterns))
    for (const auto [pattern, v] : table->members())
      if (std::regex_match(std::string(module), std::regex("(.*\\.)?(" + std::string(pattern) + ")")))
        return v.real();
  return otherwise;
}

std::vector<std::string> words_of(const Json& config, const char* key) {
  std::vector<std::string> out;
  if (const auto list = config.find(key); list && list->is_array())
    for (const JsonView item : list->items()) out.emplace_back(item.string());
  return out;
}

}  // namespace rlx::llm
