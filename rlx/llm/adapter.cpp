#include "rlx/llm/adapter.h"

#include <cmath>
#include <filesystem>
#include <set>

#include "rlx/base/error.h"
#include "rlx/base/json.h"
#include "rlx/io/literal.h"
#include "rlx/io/model_file.h"
#include "rlx/lang/operators.h"
#include "rlx/llm/adapter_experts.h"
#include "rlx/llm/adapter_settings.h"

namespace rlx::llm {

namespace {

Literal as_f32(const io::TensorView& t) {
  Literal value = io::to_literal(t);
  return value.dtype() == DType::f32 ? value : value.cast(DType::f32);
}

// The two halves of each part, by the name of what it changes, and the weight itself where it is stored with them.
struct Halves {
  const io::TensorView *a = nullptr, *b = nullptr, *original = nullptr;
  bool table = false;
};

// How names of tensors end, and which half they are.
struct End {
  std::string_view end;
  const io::TensorView* Halves::* half;
  bool table = false;
};
constexpr End kPeftEnds[] = {{".lora_A.weight", &Halves::a},
                             {".lora_B.weight", &Halves::b},
                             {".lora_embedding_A", &Halves::a, true},
                             {".lora_embedding_B", &Halves::b, true},
                             {".base_layer.weight", &Halves::original}},
              kGgufEnds[] = {{".lora_a", &Halves::a}, {".lora_b", &Halves::b}};

using Saved = std::map<std::string, const io::TensorView*>;

// `saved` takes the weights of modules that end in one of `whole`, which are stored in place of pairs.
std::map<std::string, Halves> halves_of(const io::ModelFile& file, std::string_view path,
                                        std::string_view front, std::span<const End> ends,
                                        const std::vector<std::string>& whole, Saved& saved) {
  const auto is_whole = [&](std::string_view name) {
    return std::any_of(whole.begin(), whole.end(), [&](const std::string& module) {
      const std::string end = module + ".weight";
      return name == end || name.ends_with("." + end);
    });
  };
  std::map<std::string, Halves> found;
  for (const io::TensorView& t : file.tensors) {
    const bool named = t.name.starts_with(front);
    const std::string_view rest = named ? std::string_view(t.name).substr(front.size()) : t.name;
    const auto kind =
        std::find_if(ends.begin(), ends.end(), [&](const End& e) { return rest.ends_with(e.end); });
    if (kind == ends.end() && named && is_whole(rest)) {
      saved.emplace(rest, &t);
      continue;
    }
    if (kind == ends.end() || !named)
      throw invalid("adapter '", path, "': tensor '", t.name, "' is no part of a LoRA adapter");
    Halves& h = found[std::string(rest.substr(0, rest.size() - kind->end.size()))];
    h.*kind->half = &t;
    h.table |= kind->table;
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
  if (adapter.parts_.empty() && adapter.saved_.empty())
    throw invalid("adapter '", path, "': no tensors in it");
  return adapter;
}

void Adapter::read_gguf(const io::ModelFile& file) {
  const io::GgufValue* type = file.gguf->find("general.type");
  const io::GgufValue* kind = file.gguf->find("adapter.type");
  if (!type || type->string() != "adapter" || !kind || kind->string() != "lora")
    throw invalid("adapter '", path_, "': general.type adapter and adapter.type lora expected");
  const double alpha = file.gguf->at("adapter.lora.alpha").real();
  Saved none;
  for (const auto& [name, h] : halves_of(file, path_, "", kGgufEnds, {}, none)) {
    check_halves(h, name, path_);
    parts_[name] = {as_f32(*h.a), as_f32(*h.b), alpha / double(h.b->dims.back())};
  }
}

void Adapter::read_peft(const io::ModelFile& file, const Json& config) {
  check_peft(config);
  const double alpha = config.at("lora_alpha").real();
  bool root = false;  // scale by the square root of the rank
  if (const auto rs = config.find("use_rslora")) root = rs->boolean();
  const std::vector<std::string> parameters = words_of(config, "target_parameters");
  std::vector<std::string> whole = words_of(config, "modules_to_save");
  // The head that shares a table which is stored follows it, and is stored, too.
  if (const auto tied = config.find("ensure_weight_tying"); tied && tied->boolean() && !whole.empty())
    whole.emplace_back("lm_head");
  Saved saved;
  const auto halves = halves_of(file, path_, "base_model.model.", kPeftEnds, whole, saved);
  for (const auto& [name, tensor] : saved) saved_.emplace(name, as_f32(*tensor));
  for (const auto& [module, h] : halves) {
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
      parts_[module + ".weight"] = {as_f32(*h.a), as_f32(*h.b), scale(h.b->dims.back()), h.table};
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
  const auto of_kind = [&](Parts::const_iterator it) {
    return it != parts_.end() && it->second.table != site.lookup ? parts_.end() : it;
  };
  auto found = of_kind(parts_.find(for_gguf_ ? site.gguf : site.hf));
  if (for_gguf_) return found;
  for (auto it = site.other_hf.begin(); found == parts_.end() && it != site.other_hf.end(); ++it)
    found = of_kind(parts_.find(*it));
  return found;
}

// The table that serves as a head, too, is stored for its rows alone; a head is stored under its own name.
std::map<std::string, Literal>::const_iterator Adapter::find_saved(const models::LinearSite& site) const {
  if (site.experts > 0) return saved_.end();
  if (site.other_hf.empty()) return saved_.find(site.hf);
  return saved_.find(site.other_hf.front());
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
  return [this](const models::LinearSite& site, const Tensor& x, const Tensor& product) {
    ir::Graph& g = x.graph();
    Tensor y = product;
    if (const auto own = find_saved(site); own != saved_.end()) {
      const Tensor w = ir::Expr{&g, g.param("adapter." + own->first, own->second.shape())};
      y = site.lookup ? w.gather(x) : x.matmul(w.t());
    }
    const auto found = find(site);
    if (found == parts_.end()) return y;
    const Part& p = found->second;
    Tensor a = ir::Expr{&g, g.param("adapter." + found->first + ".a", p.a.shape())};
    Tensor b = ir::Expr{&g, g.param("adapter." + found->first + ".b", p.b.shape())};
    if (p.of_experts()) {
      if (const int64_t rest = site.experts - p.experts(); rest > 0) {
        a = a.pad({0, 0, 0}, {rest, 0, 0});
        b = b.pad({0, 0, 0}, {rest, 0, 0});
      }
      return y + grouped_matmul(grouped_matmul(x, a.t(), site.expert), b.t(), site.expert) * p.scale;
    }
    if (p.table) return y + a.t().gather(x).matmul(b.t()) * p.scale;
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
  for (const auto& [name, value] : saved_) out.insert_or_assign("adapter." + name, value);
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
  const auto refuse_changed = [&](const std::string& name) {
    throw invalid("adapter '", path_, "': '", name, "' is stored otherwise in '", model.file().path,
                  "'; use the adapter with the folder of the model");
  };
  model.graph({.linear = [&](const models::LinearSite& site, const Tensor&, const Tensor& y) {
    if (const auto own = find_saved(site); own != saved_.end()) {
      const auto& [name, value] = *own;
      const Dims wanted = site.lookup ? Dims{site.in, site.out} : Dims{site.out, site.in};
      if (site.changed || site.paired_lanes > 0) refuse_changed(name);
      if (value.shape().dims() != wanted)
        throw invalid("adapter '", path_, "': its '", name, "' is ", value.shape().dims(),
                      "; the model's is ", wanted);
      used.insert(name);
    }
    const auto found = find(site);
    if (found == parts_.end()) return y;
    const auto& [name, p] = *found;
    if (!for_gguf_ && site.changed) refuse_changed(name);
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
  const auto require = [&](const std::string& name) {
    if (!used.contains(name)) throw invalid("adapter '", path_, "': the model has no weight '", name, "'");
  };
  for (const auto& [name, part] : parts_) require(name);
  for (const auto& [name, value] : saved_) require(name);
}

}  // namespace rlx::llm
