#include "rlx/models/model.h"

#include <algorithm>

#include "rlx/models/architecture.h"
#include "rlx/quant/scheme.h"

namespace rlx::models {

Model::Model(io::ModelFile file) : file_(std::move(file)) {
  ConfigSource source(file_);
  architecture_ = &architecture_of(source);
  config_.architecture = architecture_->name;
  config_.text_part = source.is_text_part();
  architecture_->configure(source, config_);
  source.require_flag({"", "attention.causal"}, !config_.encoder);
  source.finish();
}

bool Model::has_draft() const {
  if (architecture_->build_draft == nullptr || config_.layers < 1) return false;
  const auto& names = architecture_->names;
  const auto line =
      std::find_if(names.begin(), names.end(), [](const WeightName& n) { return n.key == "draft_in"; });
  RLX_CHECK(line != names.end(), "architecture ", architecture_->name, " has no name for its draft head");
  for (const std::string_view prefix : architecture_->prefixes) {
    const std::string wanted = expanded(file_.gguf ? line->gguf : line->hf, prefix, config_.layers);
    for (const io::TensorView& t : file_.tensors) {
      if (t.name == wanted) return true;
    }
  }
  return false;
}

ModelGraph Model::graph(const GraphOptions& options) const {
  const auto refuse = [&](const auto&... what) { throw invalid("model '", file_.path, "': ", what...); };
  if (options.capacity < 0 || options.batch < 1)
    refuse("a graph with capacity ", options.capacity, " and batch ", options.batch,
           "; capacity must be 0 or more, batch 1 or more");
  if (options.capacity > 0 && config_.encoder)
    refuse("capacity is ", options.capacity, ", and the encoder '", config_.architecture, "' has no states");
  if (options.capacity > 0 && options.mask)
    refuse("the form with states has no mask; positions of -1 tell padding");
  const PageStore& pages = options.pages;
  if (pages.count != 0) {
    if (options.capacity > 0 || options.mask || options.attention || config_.encoder)
      refuse("pages go with no capacity, no mask, no attention of one's own, and a model that has states");
    if (pages.page < 1 || pages.count < 2 || pages.window_count < 0 || pages.window_count == 1 ||
        pages.rows < 1)
      refuse("a store of ", pages.count, " and ", pages.window_count, " pages of ", pages.page,
             " tokens for ", pages.rows,
             " rows; pages of 1 or more tokens, 2 or more pages and 1 or more rows expected");
  }
  const CacheType& type = options.cache_type;
  const bool plain = type.dtype == DType::f32 || type.dtype == DType::f16 || type.dtype == DType::bf16;
  if (!plain && type.scheme != CacheType::q8_0().scheme)
    refuse("keys and values cannot be kept in ", type.dtype, "; ", join(CacheType::names()), " expected");
  if ((options.draft || options.draft_hidden) && !has_draft())
    refuse("architecture '", config_.architecture, "' or this file has no draft head");
  Net net(file_, *architecture_, config_, options);
  (options.draft ? architecture_->build_draft : architecture_->build)(net);
  return net.take();
}

// ---- keys and values ----

namespace {
constexpr std::string_view kCacheTypes[] = {"f32", "f16", "bf16", "q8_0"};
}

std::span<const std::string_view> CacheType::names() { return kCacheTypes; }

CacheType CacheType::q8_0() {
  CacheType t(DType::u8);
  t.scheme = "gguf_q8_0";
  return t;
}

CacheType CacheType::named(std::string_view name) {
  if (name == "q8_0") return q8_0();
  if (name == "f32") return DType::f32;
  if (name == "f16") return DType::f16;
  if (name == "bf16") return DType::bf16;
  throw invalid("keys and values in '", name, "'; ", join(names()), " expected");
}

int64_t CacheType::width(int64_t numbers) const {
  if (!is_blocks()) return numbers;
  const quant::BlockFormat& format = *quant::scheme_from_text(scheme)->format;
  if (numbers % format.elements != 0)
    throw invalid("keys or values of ", numbers, " numbers are no whole blocks of ", format.elements,
                  "; keep them in f32, f16 or bf16");
  return quant::encoded_bytes(format, numbers);
}

Model open_model(const std::string& path) { return Model(io::ModelFile::open(path)); }

std::vector<std::string> architecture_names() {
  std::vector<std::string> out;
  for (const Architecture* a : architectures()) out.emplace_back(a->name);
  return out;
}

}  // namespace rlx::models
