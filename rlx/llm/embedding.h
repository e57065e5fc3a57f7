// Texts as vectors.
//
//   Embedder model = Embedder::open("all-MiniLM-L6-v2");
//   std::vector<std::vector<float>> vectors = model.embed({"one text", "another"});
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rlx/models/model.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/text/tokenizer.h"

namespace rlx::llm {

/// Which tokens of the last layer make the vector.
enum class Pooling : uint8_t { mean, first, last };  // of all tokens; the first (CLS); the last
/// "mean", "cls" or "last"; another is a user error.
Pooling pooling_named(std::string_view name);
std::string_view pooling_name(Pooling);

/// How vectors are made of texts.
struct EmbedOptions {
  /// Else as the model's files say; else mean for encoders and last for decoders.
  std::optional<Pooling> pooling;
  bool normalise = true;        // to length 1
  int64_t dimensions = 0;       // the first so many; 0: all
  int64_t batch_tokens = 4096;  // texts of similar length are computed together, up to so many tokens
  int64_t max_tokens = 0;       // of a text, the rest is cut off; 0: what the model takes
  CompileOptions compile;
};

/// What becomes of a pooled vector: a dense layer, or without a weight a norm to length 1.
struct VectorStep {
  std::optional<Literal> weight, bias;      // f32 [out, in], [out]
  models::Activation activation = nullptr;  // null: none
};

/// An encoder or a language model that turns texts into vectors.
class Embedder {
 public:
  /// A folder or a GGUF file of an encoder or a language model.
  static Embedder open(const std::string& path, const EmbedOptions& options = {});
  explicit Embedder(std::shared_ptr<const models::Model>, EmbedOptions options = {});
  ~Embedder();
  Embedder(Embedder&&) noexcept;

  /// Numbers of one embedding.
  int64_t dimensions() const;
  /// As asked for, else as the files say.
  Pooling pooling() const;
  /// In the order of the texts.
  std::vector<std::vector<float>> embed(std::span<const std::string> texts);
  /// As embed, on ids.
  std::vector<std::vector<float>> embed_ids(std::span<const std::vector<text::TokenId>> ids);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// input_ids, mask [batch, seq] i32 -> embedding [batch, dimensions]: the model, pooling, steps and normalisation in one graph.
models::ModelGraph embedding_graph(const models::Model&, Pooling, bool normalise, int64_t dimensions,
                                   std::span<const VectorStep> steps = {});

}  // namespace rlx::llm
