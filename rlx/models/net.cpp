#include "rlx/models/net.h"

#include <algorithm>

#include "rlx/io/literal.h"
#include "rlx/ir/clone.h"
#include "rlx/models/architecture.h"
#include "rlx/models/trainable.h"
#include "rlx/ops/index/indices.h"

namespace rlx::models {
namespace {

bool is_blocks(const io::TensorView& t) { return t.type.format != nullptr && !t.type.format->is_plain(); }

std::string scheme_of(const io::TensorView& t) { return cat("gguf_", t.type.name); }

Dims dims_of(const std::vector<int64_t>& dims) { return Dims(dims.begin(), dims.end()); }

// Rows of blocks as bytes: [.., bytes of a row].
Literal packed_literal(const io::TensorView& tensor) {
  const io::TensorView t = io::unpacked(tensor);
  Dims dims = dims_of(t.dims);
  dims.back() = quant::encoded_bytes(*t.type.format, t.dims.back());
  return Literal::borrow(Shape(DType::u8, dims), t.bytes, t.owner);
}

void replace(std::string& text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  if (at != std::string::npos) text.replace(at, from.size(), to);
}

// Names have alternatives, separated by '|'.
std::vector<std::string_view> alternatives(std::string_view patterns) {
  std::vector<std::string_view> out;
  for (size_t at = 0; at <= patterns.size();) {
    const size_t end = std::min(patterns.find('|', at), patterns.size());
    out.push_back(patterns.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

// Early checkpoints of BERT have the words of TensorFlow for norms.
constexpr std::string_view kNewNorm = "LayerNorm.weight", kOldNorm = "LayerNorm.gamma";

std::string bias_name(std::string name) {
  if (name.ends_with(kOldNorm)) return name.replace(name.size() - 5, 5, "beta");
  if (!name.ends_with("weight")) return {};
  name.replace(name.size() - 6, 6, "bias");
  return name;
}

}  // namespace

std::string expanded(std::string_view pattern, std::string_view prefix, int64_t layer, int64_t expert) {
  std::string name(pattern);
  replace(name, "@", prefix);
  replace(name, "{}", cat(layer));
  if (expert >= 0) replace(name, "{e}", cat(expert));
  return name;
}

Net::Net(const io::ModelFile& file, const Architecture& architecture, const Config& config,
         const GraphOptions& options)
    : c(config),
      options(options),
      graph(config.architecture),
      t(graph),
      batch(options.capacity > 0 ? Dim(options.batch) : Dim::batch()),
      seq(Dim::seq()),
      keys(options.capacity > 0 ? Dim::symbol("keys") : Dim::seq()),
      file_(file),
      architecture_(architecture) {
  for (const io::TensorView& tensor : file.tensors) tensors_.emplace(tensor.name, &tensor);
  choose_prefix();
  if (options.draft) {
    layer = c.layers - 1;  // it is built as the last layer is
    draft_number_ = c.layers;
  }
  ids = t.input("input_ids", {batch, seq}, DType::i32);
  if (options.draft) draft_hidden_ = t.input("draft_hidden", {batch, seq, c.hidden}, DType::f32);
  if (paged()) {
    token_positions_ = t.input("positions", {batch, seq}, DType::i32);
    if (depends_on_length(c.rope))
      length_ = t.input("context_length", {batch}, DType::i32)
                    .unsqueeze(1)
                    .expand({batch, seq})
                    .reshape({batch * seq});
  } else if (cached()) {
    token_positions_ = t.input("positions", {batch, seq}, DType::i32);
    start_ = t.input("start", {1}, DType::i32);
    key_positions_ = t.input("key_positions", {batch, keys}, DType::i32);
    if (depends_on_length(c.rope)) length_ = t.input("context_length", {1}, DType::i32).reshape({});
  } else {
    if (options.mask) mask_ = t.input("mask", {batch, seq}, DType::i32).cast(DType::f32);
    if (depends_on_length(c.rope)) length_ = ops::dim_value(graph, seq);
  }
}

// ---- weights ----

void Net::choose_prefix() {
  if (gguf() && !architecture_.prefixes.empty())
    prefix_ = architecture_.prefixes.front();  // names of a folder
  if (gguf()) return;
  for (const std::string_view candidate : architecture_.prefixes) {
    prefix_ = candidate;
    if (has("embed")) return;
  }
}

std::string Net::expand(std::string_view pattern, bool gguf, int64_t expert) const {
  const int64_t number = !options.draft ? layer : gguf ? c.layers : draft_number_;
  return expanded(pattern, prefix_, number, expert);
}

void Net::enter_draft(std::string_view prefix, int64_t number) {
  main_prefix_ = std::exchange(prefix_, std::string(prefix));
  draft_number_ = number;
}

void Net::leave_draft() {
  prefix_ = main_prefix_;
  draft_number_ = c.layers;
}

const WeightName& Net::line_of(std::string_view key) const {
  const auto line = std::find_if(architecture_.names.begin(), architecture_.names.end(),
                                 [&](const WeightName& n) { return n.key == key; });
  RLX_CHECK(line != architecture_.names.end(), "architecture ", architecture_.name, " has no name for ", key);
  return *line;
}

Net::Found Net::find(std::string_view key, int64_t expert) const {
  const WeightName& line = line_of(key);
  Found out{nullptr, expand(alternatives(line.hf).front(), false, expert),
            expand(alternatives(line.gguf).front(), true, expert)};
  for (const std::string_view pattern : alternatives(gguf() ? line.gguf : line.hf)) {
    std::string name = expand(pattern, gguf(), expert);
    auto it = tensors_.find(name);
    if (it == tensors_.end() && name.ends_with(kNewNorm)) {
      name.replace(name.size() - kNewNorm.size(), kNewNorm.size(), kOldNorm);
      it = tensors_.find(name);
    }
    if (it == tensors_.end()) continue;
    out.tensor = it->second;
    (gguf() ? out.gguf : out.hf) = name;
    break;
  }
  return out;
}

bool Net::has(std::string_view key) const { return find(key).tensor != nullptr; }

Net::Found Net::require(std::string_view key, int64_t expert) const {
  const Found found = find(key, expert);
  if (found.tensor == nullptr) {
    const std::string& name = gguf() ? found.gguf : found.hf;
    if (name.empty())
      throw invalid("model '", file_.path, "': ", architecture_.name, " has no name for '", key, "' in ",
                    gguf() ? "GGUF" : "folders");
    throw io::missing_tensor(cat("model '", file_.path, "'"), name, file_.tensors);
  }
  return found;
}

Tensor Net::param(const io::TensorView& tensor, bool packed) {
  const std::string name = is_blocks(tensor) && !packed ? tensor.name + ":f32" : tensor.name;
  if (const auto it = params_.find(name); it != params_.end()) return it->second;
  const Literal value = packed ? packed_literal(tensor) : io::to_literal(tensor);
  const Tensor p = t.param(name, value.shape().dims(), value.dtype());
  weights_.emplace(name, value);
  return params_.emplace(name, p).first->second;
}

Tensor Net::plain(const io::TensorView& tensor) {
  const Tensor p = param(tensor, false);
  return p.dtype() == DType::f32 ? p : p.cast(DType::f32);
}

void Net::check_dims(const io::TensorView& tensor, const Dims& dims) const {
  const Dims have = dims_of(tensor.dims);
  if (have == dims) return;
  throw invalid("model '", file_.path, "': tensor '", tensor.name, "' is ", have,
                "; the configuration asks for ", dims);
}

Tensor Net::weight(std::string_view key, const Dims& dims) {
  const Found found = require(key);
  // Sizes of 1 may be missing, as those of convolutions are in GGUF.
  Dims have = dims_of(found.tensor->dims), bare = dims;
  std::erase(have, Dim(1));
  std::erase(bare, Dim(1));
  if (have != bare) check_dims(*found.tensor, dims);
  return plain(*found.tensor).reshape(dims);
}

Tensor Net::decay(std::string_view key, const Dims& dims) {
  const Tensor a = weight(key, dims);
  return gguf() ? a : -a.exp();
}

Tensor Net::bias(std::string_view key, int64_t size) {
  const Found found = require(key);
  const auto it = tensors_.find(bias_name(found.tensor->name));
  if (it == tensors_.end()) return {};
  check_dims(*it->second, {size});
  return plain(*it->second);
}

LinearSite Net::site_of(std::string_view key, const Found& found, int64_t in, int64_t out) const {
  LinearSite site{found.hf, found.gguf, in, out};
  if (!gguf()) return site;
  if (c.rope.reordered && (key == "q" || key == "k")) site.paired_lanes = c.head_dim;
  const auto& changed = architecture_.changed;
  site.changed = std::find(changed.begin(), changed.end(), key) != changed.end();
  return site;
}

Tensor Net::hook(const LinearSite& site, const Tensor& x, const Tensor& y) const {
  if (options.observe) options.observe(site, x, {});
  return options.linear ? options.linear(site, x, y) : y;
}

Tensor Net::with_bias(std::string_view key, const Tensor& y, int64_t out) {
  const Tensor b = bias(key, out);
  return b.is_empty() ? y : y + b;
}

Tensor Net::packed_product(const io::TensorView& tensor, const Tensor& x) {
  const ops::DequantMatmul::Attrs how{.scheme = scheme_of(tensor), .activations = activations()};
  if (options.trainable) return trainable_product(x, param(tensor, true), how);
  return dequant_matmul(x, param(tensor, true), {}, {}, how);
}

// Formats with a narrow range of scales, as NVFP4 is, leave the size of the whole to a number beside the matrix.
Tensor Net::scales_of(const io::TensorView& tensor, int64_t count) {
  constexpr std::string_view kWeight = ".weight";
  // Rows that are looked up are not multiplied, so a table that is the head, too, has no scale.
  if (!gguf() || !tensor.name.ends_with(kWeight) || tensor.name == "token_embd.weight") return {};
  const auto it = tensors_.find(tensor.name.substr(0, tensor.name.size() - kWeight.size()) + ".scale");
  if (it == tensors_.end()) return {};
  check_dims(*it->second, {count});
  return plain(*it->second);
}

Tensor Net::product(const io::TensorView& tensor, const Tensor& x, int64_t out) {
  check_dims(tensor, {Dim(out), x.dim(-1)});
  const Tensor y = is_blocks(tensor) ? packed_product(tensor, x) : x.matmul(plain(tensor).t());
  const Tensor scale = scales_of(tensor, 1);
  return scale.is_empty() ? y : y * scale;
}

Tensor Net::linear(std::string_view key, const Tensor& x, int64_t out) {
  const Found found = require(key);
  const Tensor y = product(*found.tensor, x, out);
  return with_bias(key, hook(site_of(key, found, x.dim(-1).value(), out), x, y), out);
}

Tensor Net::head_linear(bool own, const Tensor& x) {
  if (own) return linear("head", x, c.vocab);
  const Found found = require("embed");
  LinearSite site = site_of("embed", found, x.dim(-1).value(), c.vocab);
  site.other_hf = {find("head").hf};
  return hook(site, x, product(*found.tensor, x, c.vocab));
}

Tensor Net::adapt(std::string_view key, const Tensor& x, const Tensor& y) const {
  if (!options.linear) return y;
  return options.linear(site_of(key, find(key), x.dim(-1).value(), y.dim(-1).value()), x, y);
}

Tensor Net::linear_transposed(std::string_view key, const Tensor& x, int64_t out) {
  if (gguf()) return linear(key, x, out);
  const Found found = require(key);
  check_dims(*found.tensor, {x.dim(-1), Dim(out)});
  const LinearSite site = site_of(key, found, x.dim(-1).value(), out);
  return with_bias(key, hook(site, x, x.matmul(plain(*found.tensor))), out);
}

LinearSite Net::expert_site(std::string_view key, const Tensor& x, const Tensor& expert, int64_t out) const {
  const Found found = find(key, gguf() ? -1 : 0);
  LinearSite site = site_of(key, found, x.dim(-1).value(), out);
  site.expert = expert;
  site.experts = c.moe.experts;
  std::string own;
  for (const std::string_view pattern : alternatives(line_of(key).hf)) {
    const std::string name = expand(pattern, false, -1);
    if (own.empty() && expand(pattern, false, 0) == found.hf) own = name;
    if (!name.empty()) site.other_hf.push_back(name);
  }
  site.hf = !own.empty() ? own : site.other_hf.empty() ? "" : site.other_hf.front();
  return site;
}

Tensor Net::expert_product(std::string_view key, const Tensor& x, const Tensor& expert, int64_t out) {
  const int64_t count = c.moe.experts;
  const Dim in = x.dim(-1);
  const Found found = require(key, gguf() ? -1 : 0);
  const io::TensorView& stored = *found.tensor;
  if (gguf() || stored.dims.size() == 3) {  // all experts in one
    check_dims(stored, {count, out, in});
    const Tensor y =
        is_blocks(stored)
            ? dequant_grouped_matmul(
                  x, param(stored, true), expert,
                  {.scheme = scheme_of(stored), .num_experts = count, .activations = activations()})
            : grouped_matmul(x, plain(stored).t(), expert);
    const Tensor scales = scales_of(stored, count);
    return scales.is_empty() ? y : y * scales.gather(expert).unsqueeze(1);
  }
  Tensors matrices;
  for (int64_t e = 0; e < count; ++e) {
    const Found own = require(key, e);
    check_dims(*own.tensor, {Dim(out), in});
    matrices.push_back(plain(*own.tensor));
  }
  const Tensor all = concat(matrices, {.axis = 0}).reshape({count, out, in});
  return grouped_matmul(x, all.t(), expert);
}

Tensor Net::expert_linear(std::string_view key, const Tensor& x, const Tensor& expert, int64_t out) {
  const Tensor y = expert_product(key, x, expert, out);
  if (!options.observe && !options.linear) return y;
  const LinearSite site = expert_site(key, x, expert, out);
  if (options.observe) options.observe(site, x, expert);
  return options.linear ? options.linear(site, x, y) : y;
}

Tensor Net::adapt_expert(std::string_view key, const Tensor& x, const Tensor& expert, const Tensor& y) const {
  return options.linear ? options.linear(expert_site(key, x, expert, y.dim(-1).value()), x, y) : y;
}

Tensor Net::lookup(std::string_view key, const Tensor& indices, int64_t rows, int64_t width) {
  const Found found = require(key);
  check_dims(*found.tensor, {rows, width});
  if (!is_blocks(*found.tensor)) {
    const Tensor y = param(*found.tensor, false).gather(indices);
    return y.dtype() == DType::f32 ? y : y.cast(DType::f32);
  }
  const Tensor packed = param(*found.tensor, true).gather(indices);
  const Dim count = indices.shape().num_elements();
  Dims dims = indices.shape().dims();
  dims.push_back(width);
  return dequantize_blocks(packed, {.scheme = scheme_of(*found.tensor), .shape = {count, width, 1}})
      .reshape(dims);
}

Tensor Net::rms_norm(std::string_view key, const Tensor& x) {
  Tensor gamma = weight(key, {x.dim(-1)});
  if (c.norm_plus_one && !gguf()) gamma = gamma + 1;  // GGUF files hold the sum
  return x.rms_norm(gamma, c.norm_eps);
}

Tensor Net::layer_norm(std::string_view key, const Tensor& x) {
  const int64_t size = x.dim(-1).value();
  const Tensor gamma = weight(key, {size}), beta = bias(key, size);
  return rlx::layer_norm(x, gamma, beta, {.eps = c.norm_eps});
}

// ---- tokens ----

Tensor Net::embed(std::string_view key) {
  const Tensor y = lookup(key, ids, c.vocab, c.hidden);
  if (!options.linear) return y;
  LinearSite site = site_of(key, find(key), c.vocab, c.hidden);
  site.lookup = true;
  return options.linear(site, ids, y);
}

Tensor Net::positions() {
  if (!positions_.is_empty()) return positions_;
  const ir::OriginScope shared(graph, {});  // of no layer
  positions_ = cached() ? token_positions_.max(0) : t.arange(seq).reshape({1, seq});
  return positions_;
}

Tensor Net::real_tokens() {
  if (cached()) return (token_positions_ >= 0).cast(DType::f32).unsqueeze(2);
  return mask_.is_empty() ? Tensor() : mask_.unsqueeze(2);
}

const RopeTables& Net::rope(const Rope& r) {
  for (const auto& [known, tables] : ropes_) {
    if (known == &r) return tables;
  }
  const ir::OriginScope shared(graph, {});  // of no layer
  const bool alike = !cached() || batch == Dim(1);
  const Dim rows = alike ? seq : batch * seq;
  RopeTables tables = rope_tables(r, positions().cast(DType::f32).reshape({rows}), length_);
  if (!alike) tables.rows = t.arange(rows).reshape({batch, seq});
  return ropes_.emplace_back(&r, tables).second;
}

// ---- results ----

void Net::output(const std::string& name, const Tensor& value) { outputs_.emplace_back(name, value); }

void Net::finish_decoder(const Tensor& hidden) {
  if (options.hidden) output("hidden", hidden);
  if (options.draft_hidden) output("draft_hidden.next", hidden);
  const Tensor x = options.last_only ? hidden.narrow(1, seq - 1, 1) : hidden;
  // An embedding model needs no head, and its file may have none.
  if (options.hidden && !c.tied && !has("head")) return;
  // A head that is in the file counts, also where the configuration calls it tied: transformers ties equal ones alone.
  Tensor y = options.draft && has("draft_head") ? linear("draft_head", x, c.vocab)
                                                : head_linear(!c.tied || has("head"), x);
  if (c.logit_scale != 1) y = y * c.logit_scale;
  if (c.logit_softcap != 0) y = (y / c.logit_softcap).tanh() * c.logit_softcap;
  output("logits", y);
}

void Net::refuse_unread() const {
  // Layers behind the last, which predict a further token.
  const auto is_draft = [&](const std::string& name) {
    for (int64_t i = 0; i < c.draft_layers; ++i) {
      if (name.starts_with(cat(gguf() ? "blk." : prefix_ + "layers.", c.layers + i, "."))) return true;
    }
    return false;
  };
  constexpr std::string_view kNeverRead[] = {"rotary_emb.inv_freq", "position_ids", "rope_freqs.weight",
                                             "rope_factors_"};
  constexpr std::string_view kOfPictures[] = {"visual.", "vision_tower.", "vision_model.",
                                              "multi_modal_projector."};
  std::vector<std::string> unread;
  for (const auto& [name, tensor] : tensors_) {
    // Experts of no width are stored, too.
    if (std::find(tensor->dims.begin(), tensor->dims.end(), 0) != tensor->dims.end()) continue;
    if (params_.contains(name) || params_.contains(name + ":f32")) continue;
    if (is_draft(name)) continue;
    if (gguf() && name.ends_with(".input_scale")) continue;  // for machines that round inputs to 4 bits
    const auto part = [&](std::string_view p) { return name.find(p) != std::string::npos; };
    if (std::any_of(std::begin(kNeverRead), std::end(kNeverRead), part)) continue;
    if (c.text_part && std::any_of(std::begin(kOfPictures), std::end(kOfPictures), part)) continue;
    if (std::any_of(architecture_.unread.begin(), architecture_.unread.end(), part)) continue;
    unread.push_back(name);
  }
  if (unread.empty()) return;
  const size_t count = unread.size();
  if (count > 4) unread.resize(4);
  throw invalid("model '", file_.path, "': ", count, " tensors have no place in architecture '",
                architecture_.name, "': ", join(unread), count > 4 ? ", .." : "");
}

ModelGraph Net::take() {
  if (!options.draft) refuse_unread();
  for (const State& s : states_) output(s.output, next_states_.at(s.input));
  Values values;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : outputs_) {
    values.push_back(tensor);
    names.push_back(name);
  }
  graph.set_outputs(values, names);
  return {std::move(graph), std::move(weights_), std::move(states_)};
}

}  // namespace rlx::models
