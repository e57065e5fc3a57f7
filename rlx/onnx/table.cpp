#include "rlx/onnx/table.h"

#include <array>
#include <map>

namespace rlx::onnx {
namespace {

using Key = std::pair<std::string_view, std::string_view>;

const std::map<Key, std::vector<const Entry*>>& index() {
  static const auto built = [] {
    std::map<Key, std::vector<const Entry*>> out;
    for (const Theme& theme : themes()) {
      for (const Entry& e : theme.entries) out[{theme.domain, e.name}].push_back(&e);
    }
    return out;
  }();
  return built;
}

}  // namespace

std::span<const Theme> themes() {
  static const std::array kThemes{
      Theme{"elementwise", "", elementwise_entries()},
      Theme{"activation", "", activation_entries()},
      Theme{"reduce", "", reduce_entries()},
      Theme{"shape", "", shape_entries()},
      Theme{"layout", "", layout_entries()},
      Theme{"slice", "", slice_entries()},
      Theme{"conv", "", conv_entries()},
      Theme{"pool", "", pool_entries()},
      Theme{"norm", "", norm_entries()},
      Theme{"linear algebra", "", linear_entries()},
      Theme{"index", "", index_entries()},
      Theme{"scatter", "", scatter_entries()},
      Theme{"control flow", "", control_entries()},
      Theme{"recurrent", "", recurrent_entries()},
      Theme{"quantise", "", quantize_entries()},
      Theme{"convert", "", convert_entries()},
      Theme{"signal", "", signal_entries()},
      Theme{"resize", "", resize_entries()},
      Theme{"vision", "", vision_entries()},
      Theme{"attention", "", attention_entries()},
      Theme{"state", "", state_entries()},
      Theme{"loss", "", loss_entries()},
      Theme{"random", "", random_entries()},
      Theme{"selection", "", selection_entries()},
      Theme{"sequence", "", sequence_entries()},
      Theme{"text", "", text_entries()},
      Theme{"training", "ai.onnx.preview.training", training_entries()},
      Theme{"classical models", "ai.onnx.ml", ml_entries()},
      Theme{"fused", "com.microsoft", contrib_entries()},
      Theme{"fused attention", "com.microsoft", contrib_attention_entries()},
      Theme{"fused codes", "com.microsoft", contrib_quantize_entries()},
      Theme{"fused recurrent", "com.microsoft", contrib_recurrent_entries()},
      Theme{"preview", "ai.onnx.preview", preview_entries()},
  };
  return kThemes;
}

const Entry* find_entry(std::string_view domain, std::string_view op, int64_t version) {
  const auto at = index().find({domain, op});
  if (at == index().end()) return nullptr;
  const Entry* best = nullptr;
  for (const Entry* e : at->second) {
    if (e->since <= version && (best == nullptr || e->since > best->since)) best = e;
  }
  return best;
}

bool is_known(std::string_view domain, std::string_view op) { return index().contains({domain, op}); }

}  // namespace rlx::onnx
