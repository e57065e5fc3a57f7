// Low-rank adapters: y + scale (x A^T) B^T in place of y = x W^T, with W as it is.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rlx/base/json.h"
#include "rlx/io/model_file.h"
#include "rlx/ir/literal.h"
#include "rlx/ir/named_literals.h"
#include "rlx/models/model.h"

namespace rlx::llm {

/// A new adapter, which changes nothing yet: A is uniform within +- 1 / sqrt(in), B is 0.
struct NewAdapter {
  int64_t rank = 8;
  double alpha = 16;  // scale = alpha / rank
  /// Ends of names of modules as folders have them ("q_proj"; "gate_proj" names those of experts too); none: all products of the layers
  /// but the experts and their choice.
  std::vector<std::string> targets;
  uint64_t seed = 1;
};

/// A PEFT folder (adapter_config.json, adapter_model.safetensors), for any model, or a GGUF adapter, for GGUF models.
class Adapter {
 public:
  /// In the form of PEFT. A target that no product of the model has is a user error.
  static Adapter create(const models::Model&, const NewAdapter&);
  /// A file that is none, a kind other than plain LoRA, or settings that would change the result and are not understood are
  /// user errors.
  static Adapter open(const std::string& path);

  /// One for each weight it changes. Those of experts are one part under a name with {e} for the number, or GGUF's name of all: experts
  /// behind the last that it knows stay as they are.
  struct Part {
    Literal a, b;  // f32 [rank, in], [out, rank]; of experts [experts, rank, in], [experts, out, rank]
    double scale = 1;
    bool table = false;  // rows of an embedding: in is the number of them

    // Sizes of a and b; `experts` is 0 for a part of one weight.
    bool of_experts() const { return a.shape().rank() == 3; }
    int64_t experts() const { return of_experts() ? a.shape().dim(0).value() : 0; }
    int64_t rank() const { return a.shape().dim(-2).value(); }
    int64_t in() const { return a.shape().dim(-1).value(); }
    int64_t out() const { return b.shape().dim(-2).value(); }
  };
  using Parts = std::map<std::string, Part>;
  /// All parts, by the weight they change.
  const Parts& parts() const { return parts_; }
  /// Where it was read from; empty for one that was made.
  const std::string& path() const { return path_; }

  /// Puts the adapter into a graph while it is built; its weights are those of `weights()`. The adapter must outlive the hook.
  models::LinearHook hook() const;
  /// Values of the params that the hook makes.
  ir::NamedLiterals weights() const;
  /// A GGUF adapter for a folder, or an adapter of weights that the model has not, is a user error.
  void check_fits(const models::Model&) const;
  /// The values of its own among these, by the names of `weights()`.
  void set_weights(const ir::NamedLiterals&);

  /// A PEFT folder; `base` is the name of the model in it. Parts of several ranks or scales are told by patterns.
  void write(const std::string& folder, const std::string& base) const;

 private:
  std::string path_;
  bool for_gguf_ = false;
  void read_gguf(const io::ModelFile&);
  void read_peft(const io::ModelFile&, const Json& config);
  Parts::const_iterator find(const models::LinearSite& site) const;
  std::map<std::string, Literal>::const_iterator find_saved(const models::LinearSite& site) const;
  void check_original(const std::string& name, const models::LinearSite&, const io::ModelFile& model) const;
  Parts parts_;  // by name of the weight
  /// Weights that take the place of the model's, as PEFT's modules_to_save has them.
  std::map<std::string, Literal> saved_;
  /// Weights of the model that PEFT stores beside the pairs of a head: they must be those of the model.
  std::map<std::string, io::TensorView> originals_;
};

}  // namespace rlx::llm
