// A graph while an architecture builds it: weights by the words of its table, positions, caches, what all layers share.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "rlx/lang/operators.h"
#include "rlx/lang/trace.h"
#include "rlx/models/model.h"
#include "rlx/models/rope.h"

namespace rlx::models {

/// One line of a table of names: what an architecture calls a weight, and where it is. In names, {} stands for the layer, {e} for
/// the expert, and '@' for what stands before all names of a folder. The bias of a weight has its name with "bias" for "weight".
struct WeightName {
  std::string_view key, hf, gguf = {};
};

/// A name of the table with these in their places.
std::string expanded(std::string_view pattern, std::string_view prefix, int64_t layer, int64_t expert = -1);

class Net {
 public:
  Net(const io::ModelFile& file, const Architecture& architecture, const Config& config,
      const GraphOptions& options);

  const Config& c;
  const GraphOptions& options;
  Graph graph;
  Tracer t;
  int64_t layer = 0;  // the one being built: {} in names
  Dim batch, seq, keys;
  Tensor ids;

  bool gguf() const { return file_.gguf.has_value(); }
  bool paged() const { return options.pages.count > 0; }
  bool cached() const { return options.capacity > 0 || paged(); }
  Mixer mixer() const { return c.mixers[size_t(layer)]; }

  /// While it lives, what is built belongs to the layer: "layer3" in origins and pictures.
  [[nodiscard]] ir::LabelScope label_layer() { return {graph, cat("layer", layer)}; }

  // ---- weights ----

  bool has(std::string_view key) const;
  /// f32 with these extents; other plain types are cast, blocks decoded.
  Tensor weight(std::string_view key, const Dims& dims);
  Tensor bias(std::string_view key, int64_t size);  // empty where the file has none
  /// x [.., in] times the weight [out, in], plus its bias where there is one. Blocks stay packed.
  Tensor linear(std::string_view key, const Tensor& x, int64_t out);
  /// Logits of words: the product with the head, or with the embedding that serves as one and that adapters call the head, too.
  Tensor head_linear(bool own, const Tensor& x);
  /// As linear, of a weight stored as [in, out].
  Tensor linear_transposed(std::string_view key, const Tensor& x, int64_t out);
  /// Rows of x [m, in], each times the matrix of its expert: [m, out].
  Tensor expert_linear(std::string_view key, const Tensor& x, const Tensor& expert, int64_t out);
  /// y, a product that was computed elsewhere, as an adapter of that weight changes it.
  Tensor adapt(std::string_view key, const Tensor& x, const Tensor& y) const;
  /// y, a part of a product of experts, as an adapter of that part alone changes it.
  Tensor adapt_expert(std::string_view key, const Tensor& x, const Tensor& expert, const Tensor& y) const;
  /// A < 0 of a recurrence, f32 with these extents: folders hold ln(-A), GGUF A itself.
  Tensor decay(std::string_view key, const Dims& dims);
  /// Rows of a table [rows, width].
  Tensor lookup(std::string_view key, const Tensor& indices, int64_t rows, int64_t width);
  Tensor rms_norm(std::string_view key, const Tensor& x);
  Tensor layer_norm(std::string_view key, const Tensor& x);

  // ---- tokens ----

  /// f32 [batch, seq, hidden], as adapters change it.
  Tensor embed(std::string_view key = "embed");
  /// i32 [batch, seq], padding at 0; [1, seq] where all rows are alike.
  Tensor positions();
  /// f32 [batch, seq, 1], 0 for padding; empty where there is none.
  Tensor real_tokens();
  const RopeTables& rope(const Rope& r);
  /// The input draft_hidden of a draft head.
  const Tensor& draft_hidden() const { return draft_hidden_; }

  // ---- states ----

  /// A state of zeros at first; `next` is to become its value. Returns its present value.
  Tensor state(const std::string& name, const Shape& shape);
  void set_state(const std::string& name, const Tensor& next);
  /// New rows put into a cache [batch, capacity, width]; returns rows 0 .. keys - 1 in f32.
  Tensor remember(const std::string& name, const Tensor& rows);
  /// New rows put into a store of pages; returns the store, [slots, width of the cache type].
  Tensor remember_in_pages(const std::string& name, const Tensor& rows, bool window);
  /// i32 [batch, pages]
  Tensor pages(bool window);
  const Tensor& token_positions() const { return token_positions_; }
  /// bool [batch or 1, 1, seq, keys]: the keys each token sees; a window of 0 is none.
  Tensor seen_keys(int64_t window);

  // ---- results ----

  void output(const std::string& name, const Tensor& value);
  /// The hidden states that the head of logits reads, as does a draft head, then logits = softcap(scale * x W).
  void finish_decoder(const Tensor& x);
  /// In between, folders have the layer of the draft head under this prefix and number. Elsewhere it is the one behind the last, as in
  /// GGUF always.
  void enter_draft(std::string_view prefix, int64_t number);
  void leave_draft();

  ModelGraph take();

 private:
  struct Found {
    const io::TensorView* tensor;
    std::string hf, gguf;
  };
  std::string expand(std::string_view pattern, bool gguf, int64_t expert) const;
  Found find(std::string_view key, int64_t expert = -1) const;
  Found require(std::string_view key, int64_t expert = -1) const;
  Tensor param(const io::TensorView&, bool packed);
  Tensor plain(const io::TensorView&);
  Tensor packed_product(const io::TensorView&, const Tensor& x);
  /// The factors that GGUF may hold beside a weight of `count` matrices; empty where there are none.
  Tensor scales_of(const io::TensorView&, int64_t count);
  Tensor product(const io::TensorView&, const Tensor& x, int64_t out);
  LinearSite site_of(std::string_view key, const Found&, int64_t in, int64_t out) const;
  LinearSite expert_site(std::string_view key, const Tensor& x, const Tensor& expert, int64_t out) const;
  Tensor expert_product(std::string_view key, const Tensor& x, const Tensor& expert, int64_t out);
  const WeightName& line_of(std::string_view key) const;
  ops::Activations activations() const {
    return options.round_activations ? ops::Activations::q8 : ops::Activations::exact;
  }
  void check_dims(const io::TensorView&, const Dims&) const;
  Tensor hook(const LinearSite&, const Tensor& x, const Tensor& y) const;
  Tensor with_bias(std::string_view key, const Tensor& y, int64_t out);
  void choose_prefix();
  void refuse_unread() const;
  Tensor slots(bool window);
  Tensor state_rows();
  Tensor encoded(const Tensor& rows) const;
  Tensor decoded(const Tensor& rows, int64_t width) const;

  const io::ModelFile& file_;
  const Architecture& architecture_;
  std::map<std::string, const io::TensorView*, std::less<>> tensors_;
  std::string prefix_, main_prefix_;
  int64_t draft_number_ = 0;  // of the draft head's layer in a folder
  std::map<std::string, Tensor, std::less<>> params_;
  ir::NamedLiterals weights_;
  std::vector<State> states_;
  std::map<std::string, Tensor> next_states_;
  NamedTensors outputs_;
  Tensor draft_hidden_;
  Tensor token_positions_, start_, key_positions_, length_, mask_, positions_;
  // Of the form with pages, by window or not; made when a layer asks.
  Tensor pages_[2], slots_[2], state_rows_, is_new_;
  std::map<std::string, Tensor> stores_;  // of running states
  std::map<int64_t, Tensor> seen_;
  std::vector<std::pair<const Rope*, RopeTables>> ropes_;

 public:
  /// The input `mask` as f32 [batch, seq]; empty without one.
  Tensor mask() const { return mask_; }
};

}  // namespace rlx::models
