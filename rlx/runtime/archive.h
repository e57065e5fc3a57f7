// Compiled programs as files: what the passes made is kept, so loading runs none of them.
//
// A safetensors file. Its metadata holds the optimised graph as text, the graph of every size that was planned, the options, and what
// it was made for: version of the library, device, instruction set, number of threads. Its tensors are the weights, those that the
// prologue made included, the larger constants, and weights as kernels packed them, where these forms can be kept: they are then copied
// when the program first runs. Others are packed again.
//
//   save_compiled(f, "model.rlxp");
//   CompiledGraph g = load_compiled("model.rlxp");   // the same bits on the same machine
#pragma once

#include "rlx/runtime/compiled_graph.h"

namespace rlx {

inline constexpr int kArchiveVersion = 3;

/// Every param must have its value.
void save_compiled(CompiledGraph&, const std::string& path);

/// A file of another version, for another instruction set or another number of threads is refused with the reason: its numbers might
/// differ. Weights of a loaded program cannot be set: what was made of them is in the file.
CompiledGraph load_compiled(const std::string& path);
/// As above, from bytes kept alive by `owner`; `name` starts messages. Asked for a number of threads other than 0 it runs with
/// these, whatever it was compiled for: sums may then be split in another way and differ in their last bits.
CompiledGraph load_compiled(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                            const std::string& name, int threads = 0);

/// A folder of compiled programs. The key is the graph, the options, the weights, the device and the version; what is found under it is
/// checked against the same again before it is used, and made anew when it does not fit.
class AotCache {
 public:
  /// The folder is made when something is first stored.
  explicit AotCache(std::string folder) : folder_(std::move(folder)) {}

  /// The program from the folder, or compiled now and stored there.
  CompiledGraph compile(const ir::Graph&, const NamedLiterals& weights, const CompileOptions& = {});
  bool contains(const ir::Graph&, const NamedLiterals& weights, const CompileOptions& = {}) const;
  /// Where its file is, or would be.
  std::string path_of(const ir::Graph&, const NamedLiterals& weights, const CompileOptions& = {}) const;
  /// Programs that this object took from the folder.
  size_t loaded() const { return loaded_; }
  /// Programs that it had to compile.
  size_t compiled() const { return compiled_; }

 private:
  std::string folder_;
  size_t loaded_ = 0, compiled_ = 0;
};

}  // namespace rlx
