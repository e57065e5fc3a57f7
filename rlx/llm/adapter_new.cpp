// Adapters made here: their starting values, and the files of PEFT.
#include <algorithm>
#include <cmath>
#include <set>

#include "rlx/base/error.h"
#include "rlx/base/file.h"
#include "rlx/base/json_write.h"
#include "rlx/io/literal.h"
#include "rlx/io/safetensors.h"
#include "rlx/llm/adapter_experts.h"
#include "rlx/train/init.h"

namespace rlx::llm {
namespace {

constexpr std::string_view kWeight = ".weight";

std::string module_of(std::string_view weight) {
  return std::string(weight.ends_with(kWeight) ? weight.substr(0, weight.size() - kWeight.size()) : weight);
}

std::string last_word(std::string_view module) { return std::string(module.substr(module.rfind('.') + 1)); }

bool ends_with_module(std::string_view module, std::string_view target) {
  return module == target || (module.ends_with(target) && module[module.size() - target.size() - 1] == '.');
}

// A number between dots says that it is one of a layer.
bool is_of_layer(std::string_view module) {
  for (size_t at = module.find('.'); at != module.npos; at = module.find('.', at + 1)) {
    if (at + 1 < module.size() && module[at + 1] >= '0' && module[at + 1] <= '9') return true;
  }
  return false;
}

Literal drawn(const std::string& name, const Dims& dims, uint64_t seed) {
  const train::Draws draws(seed, name);
  const double width = 1 / std::sqrt(double(dims.back().value()));
  std::vector<float> v(size_t(product(dims).value()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = float((2 * draws.uniform(int64_t(i)) - 1) * width);
  return Literal::of<float>(dims, v);
}

Adapter::Part new_part(const models::LinearSite& site, const NewAdapter& o) {
  Dims a{o.rank, site.in}, b{site.out, o.rank};
  if (site.experts > 0)
    for (Dims* dims : {&a, &b}) dims->insert(dims->begin(), site.experts);
  return {drawn(site.hf, a, o.seed), Literal::full(Shape(DType::f32, b), 0), o.alpha / double(o.rank)};
}

// Files of PEFT have a pair for each expert.
Adapter::Parts by_expert(const Adapter::Parts& parts) {
  constexpr std::string_view kNumber = "{e}";
  Adapter::Parts out;
  for (const auto& [name, part] : parts) {
    if (!part.of_experts()) out.emplace(name, part);
    for (int64_t e = 0; e < part.experts(); ++e) {
      std::string own = name;
      own.replace(own.find(kNumber), kNumber.size(), cat(e));
      out.emplace(own, part_of_expert(part, e));
    }
  }
  return out;
}

}  // namespace

Adapter Adapter::create(const models::Model& model, const NewAdapter& options) {
  if (options.rank < 1 || !(options.alpha > 0))
    throw invalid("adapter: rank ", options.rank, " and alpha ", options.alpha, "; both must be positive");
  Adapter out;
  out.path_ = "a new adapter";
  std::set<std::string> met, there;
  model.graph({.linear = [&](const models::LinearSite& site, const Tensor&, const Tensor& y) {
    const std::string module = module_of(site.hf);
    if (site.hf.empty() || site.changed || site.lookup || out.parts_.contains(site.hf)) return y;
    there.insert(last_word(module));
    bool wanted = options.targets.empty() && is_of_layer(module) && site.experts == 0 &&
                  site.gguf.find("ffn_gate_inp") == site.gguf.npos;
    for (const std::string& target : options.targets) {
      if (!ends_with_module(module, target)) continue;
      wanted = true;
      met.insert(target);
    }
    if (wanted) out.parts_[site.hf] = new_part(site, options);
    return y;
  }});
  for (const std::string& target : options.targets)
    if (!met.contains(target))
      throw invalid("adapter: the model '", model.file().path, "' has no products '", target, "'; it has ",
                    join(std::vector<std::string>(there.begin(), there.end())));
  if (out.parts_.empty())
    throw invalid("adapter: the model '", model.file().path,
                  "' has no products that an adapter could change");
  return out;
}

void Adapter::write(const std::string& folder, const std::string& base) const {
  if (for_gguf_) throw invalid("adapter '", path_, "' has the names of GGUF; PEFT needs those of a folder");
  if (!saved_.empty() ||
      std::any_of(parts_.begin(), parts_.end(), [](const auto& p) { return p.second.table; }))
    throw invalid("adapter '", path_,
                  "' changes an embedding or whole weights; only pairs of products are written");
  make_folders(folder);
  const Parts parts = by_expert(parts_);
  const Part& first = parts.begin()->second;
  const int64_t rank = first.rank();
  const double alpha = first.scale * double(rank);
  std::set<std::string> modules;
  std::map<std::string, int64_t> ranks;
  std::map<std::string, double> alphas;
  std::vector<io::TensorView> tensors;
  for (const auto& [name, part] : parts) {
    const std::string module = module_of(name);
    modules.insert(last_word(module));
    const double own = part.scale * double(part.rank());
    if (part.rank() != rank) ranks[module] = part.rank();
    if (own != alpha) alphas[module] = own;
    tensors.push_back(io::to_view("base_model.model." + module + ".lora_A.weight", part.a));
    tensors.push_back(io::to_view("base_model.model." + module + ".lora_B.weight", part.b));
  }
  JsonWriter out({.indent = 2});
  out.begin_object();
  out.member("peft_type", "LORA");
  out.member("task_type", "CAUSAL_LM");
  out.member("base_model_name_or_path", base);
  out.member("r", rank);
  out.member("lora_alpha", alpha);
  out.member("lora_dropout", 0.0);
  out.member("bias", "none");
  out.member("target_modules", std::vector<std::string>(modules.begin(), modules.end()));
  const auto table = [&](const char* key, const auto& patterns) {
    out.key(key), out.begin_object();
    for (const auto& [module, value] : patterns) out.member(module, value);
    out.end_object();
  };
  table("rank_pattern", ranks);
  table("alpha_pattern", alphas);
  for (const char* off : {"fan_in_fan_out", "use_rslora", "use_dora"}) out.member(off, false);
  out.member("inference_mode", true);
  out.end_object();
  io::write_safetensors(folder + "/adapter_model.safetensors", tensors);
  write_file(folder + "/adapter_config.json", out.take() + "\n");
}

}  // namespace rlx::llm
