// Models: a Hugging Face folder or a GGUF file as graphs.
//
//   const Model model = open_model("SmolLM2-135M-Instruct");
//   ModelGraph g = model.graph({.capacity = 2048});
//   CompiledGraph run = compile(g.graph, g.weights, {.states = ...g.states...});
//
// Two forms. The whole sequence at once, without states; sizes are the symbols batch and seq:
//
//   input_ids [batch, seq] i32, mask [batch, seq] i32 if asked for (1: a token, 0: padding)
//   -> logits [batch, seq, vocab]; encoders: last_hidden_state [batch, seq, hidden], mean_pooled [batch, hidden], and
//      logits where the file holds a language head
//
// And pieces of sequences with what came before them kept in states, each an input and an output of one type that share
// memory. Attention layers keep keys and values in `capacity` slots; all rows of a batch write to the same slots, and
// what a slot holds is told by positions, so rows may have different lengths (padding first) and a row may start anew at
// any slot. Sizes are the symbols seq and keys; batch and capacity are numbers.
//
//   input_ids      [batch, seq] i32
//   positions      [batch, seq] i32     of each token in its own text; -1: padding, which only comes before a text
//   start          [1] i32              the slot of the first new token; start + seq <= keys
//   key_positions  [batch, keys] i32    what slots 0 .. keys - 1 hold after this run; -1: nothing. keys <= capacity
//   context_length [1] i32              only with Config::rope.kind longrope: tokens the text will have; decides which factors
//   -> logits [batch, seq, vocab], or [batch, 1, vocab] with last_only
//
// A state of zeros is that of an empty text. The same graph serves a prompt in one piece, in pieces, and single tokens.
//
// Or keys and values lie in pages of a store that texts share (`pages`), so rows of one run may be any texts, of any length, at any
// place. Sizes are the symbols batch, seq and pages; page 0, and the last row of running states, are nobody's: padding is
// written there.
//
//   input_ids, positions  [batch, seq] i32  as above; positions of a row follow each other
//   pages                 [batch, pages] i32  the page of tokens 0 .., of tokens `page` .., ..; 0 where there is none yet
//   window_pages          [batch, pages] i32  the same for layers with a window, which have a store of their own: entries of pages
//                                             that lie behind the window are not read
//   rows                  [batch] i32         the row of running states; a row is new when its tokens begin with position 0
//   context_length        [batch] i32         of each row
//
// Of these a graph has those that its layers need.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/io/model_file.h"
#include "rlx/lang/graph.h"
#include "rlx/lang/tensor.h"
#include "rlx/models/config.h"

namespace rlx::models {

/// A product with a weight, or rows of an embedding: where adapters hang in.
struct LinearSite {
  std::string hf, gguf;  // the weight in a folder and in a GGUF file; empty where there is no such name
  int64_t in = 0, out = 0;
  /// Where rows of x [m, in] have a weight each: the expert of each row, i32 [m], of so many. `hf` then has {e} for its number.
  Tensor expert = {};
  int64_t experts = 0;
  /// Further names that folders have: of experts, and of a head where the embedding serves as one.
  std::vector<std::string> other_hf = {};
  /// Of a GGUF file: rows (pair, half) of so many lanes each are (half, pair) in a folder. 0: rows are the same.
  int64_t paired_lanes = 0;
  /// Of a GGUF file: the weight differs from the folder's in a way that is not told here.
  bool changed = false;
  /// Not a product: x are indices, i32, and y their rows of the table [in, out] of tokens.
  bool lookup = false;
};
/// Gets the input and the product and returns what takes its place.
using LinearHook = std::function<Tensor(const LinearSite&, const Tensor& x, const Tensor& y)>;

/// Sees what every product with a weight reads: x [.., in], or rows [m, in] with the expert of each, i32 [m].
using ProductObserver = std::function<void(const LinearSite&, const Tensor& x, const Tensor& expert)>;

/// One attention: q [batch, seq, heads * head_dim], k and v [batch, keys, kv_heads * lanes], mask bool
/// [batch or 1, 1, seq, keys], true where a key is seen; empty where every key is.
struct AttentionSite {
  int64_t layer = 0, heads = 0, kv_heads = 0, head_dim = 0;
  double scale = 0, softcap = 0;
};
/// Returns [batch, seq, heads * lanes], or an empty tensor to leave the attention as it is.
using AttentionHook = std::function<Tensor(const AttentionSite&, const Tensor& q, const Tensor& k,
                                           const Tensor& v, const Tensor& mask)>;

/// How keys and values are kept: f32, f16, bf16, or blocks of 32 numbers in 8 bits with a scale.
struct CacheType {
  DType dtype = DType::f32;  // u8: blocks of `scheme`
  std::string scheme;

  CacheType(DType type = DType::f32) : dtype(type) {}  // NOLINT: a plain type is the usual case
  /// Blocks of 32 numbers in 8 bits.
  static CacheType q8_0();
  /// "f32", "f16", "bf16", "q8_0"; another name is a user error.
  static CacheType named(std::string_view name);
  /// The words that `named` knows.
  static std::span<const std::string_view> names();
  bool is_blocks() const { return !scheme.empty(); }
  /// Elements of `dtype` that so many numbers take.
  int64_t width(int64_t numbers) const;
};

/// The store of pages.
struct PageStore {
  int64_t page = 64;         // tokens of a page
  int64_t count = 0;         // pages, page 0 among them; 0: not this form
  int64_t window_count = 0;  // of layers with a window; 0: as many
  int64_t rows = 1;          // texts that may have running states at once
};

/// Which form of a model's graph is built.
struct GraphOptions {
  int64_t capacity = 0;  // slots of the caches; 0: the form without states
  int64_t batch = 1;     // rows of the form with slots
  PageStore pages;
  CacheType cache_type;
  bool mask = false;       // the form without states has the input `mask`
  bool last_only = false;  // logits of the last token alone
  /// For products with packed weights: round x to 8 bits, in strips of 32, so that codes meet codes (several times as fast); false keeps
  /// f32, which is closer to the weights.
  bool round_activations = true;
  /// A further output `hidden` [batch, seq, hidden]: what the head of logits reads.
  bool hidden = false;
  /// A further output `draft_hidden.next` [batch, seq, hidden]: what the draft head reads.
  bool draft_hidden = false;
  /// The draft head in place of the model: its input `draft_hidden` [batch, seq, hidden] is, for each token, what the model gave for the
  /// token before; it gives the logits of the token behind and a draft_hidden.next of its own.
  bool draft = false;
  LinearHook linear;
  ProductObserver observe;
  /// Products with packed weights have a gradient by x that decodes a part of the weight at a time, so that weights stay packed in
  /// training too.
  bool trainable = false;
  AttentionHook attention;
};

/// A cache: an input of the graph and the output that is its next value.
struct State {
  std::string input, output;
  Shape shape;            // static
  bool in_pages = false;  // a store of pages, not rows of texts
};

/// A graph of a model, with its weights and states.
struct ModelGraph {
  Graph graph;
  ir::NamedLiterals weights;  // by param; borrowed from the file where it holds them as they are read
  std::vector<State> states;
};

struct Architecture;

class Model {
 public:
  explicit Model(io::ModelFile file);

  /// Its sizes and settings.
  const Config& config() const { return config_; }
  /// The file its weights are in.
  const io::ModelFile& file() const { return file_; }
  /// Whether the file holds a head that guesses the token behind the next, and it can be built.
  bool has_draft() const;
  /// Builds a graph; a tensor that the file lacks, or holds in another size, is a user error.
  ModelGraph graph(const GraphOptions& options = {}) const;

 private:
  io::ModelFile file_;
  const Architecture* architecture_;
  Config config_;
};

/// A folder with config.json and safetensors, or a GGUF file. An unknown architecture, a field of the configuration or
/// a tensor that is not understood are user errors.
Model open_model(const std::string& path);

/// The architectures there are.
std::vector<std::string> architecture_names();

}  // namespace rlx::models
