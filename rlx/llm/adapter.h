// Low-rank adapters: y + scale (x A^T) B^T in place of y = x W^T, with W as it is.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "rlx/ir/literal.h"
#include "rlx/ir/named_literals.h"
#include "rlx/models/model.h"

namespace rlx::llm {

/// A PEFT folder (adapter_config.json, adapter_model.safetensors), for models from a folder, or a GGUF adapter, for GGUF
/// models.
class Adapter {
 public:
  /// A file that is none, a kind other than plain LoRA, or settings that would change the result and are not understood are
  /// user errors.
  static Adapter open(const std::string& path);

  /// One for each weight it changes.
  struct Part {
    Literal a, b;  // f32 [rank, in], [out, rank]
    double scale = 1;
  };
  const std::map<std::string, Part>& parts() const { return parts_; }
  const std::string& path() const { return path_; }
  bool for_gguf() const { return for_gguf_; }

  /// Puts the adapter into a graph while it is built; its weights are those of `weights()`. The adapter must outlive the hook.
  models::LinearHook hook() const;
  ir::NamedLiterals weights() const;
  /// An adapter of another kind of file, or of weights that the model has not, is a user error.
  void check_fits(const models::Model&) const;

 private:
  std::string path_;
  bool for_gguf_ = false;
  std::map<std::string, Part> parts_;  // by name of the weight
};

}  // namespace rlx::llm
