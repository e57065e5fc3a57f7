// Weights from a model file, and functions compiled where they stand.
//
//   const Weights file = Weights::open("model.safetensors");
//   CompiledGraph f = compile(graph, file.bind(graph).values);
#pragma once

#include <functional>

#include "rlx/io/tensor_view.h"
#include "rlx/lang/trace.h"
#include "rlx/runtime/compiled_graph.h"

namespace rlx {

/// The tensors of a file, by name; nothing is read before it is asked for.
class Weights {
 public:
  /// A safetensors, GGUF or npz file, an index, or a folder.
  static Weights open(const std::string& path);
  explicit Weights(std::vector<io::TensorView> tensors, std::string source = "weights");

  /// Of all tensors, sorted.
  std::vector<std::string> names() const;
  /// A wrong name is a user error that suggests the nearest.
  Literal value(const std::string& name) const;

  /// Values for a graph, and what was left over.
  struct Bound {
    NamedLiterals values;             // for every param of the graph
    std::vector<std::string> unused;  // tensors that no param asked for
  };
  /// `rename` turns the name of a param into that of its tensor. Reals of another width become the param's type. Everything that is missing or
  /// of another shape is told in one error, with the tensors that were left over.
  Bound bind(const ir::Graph&, const std::function<std::string(const std::string&)>& rename = {}) const;

 private:
  const io::TensorView* find(const std::string& name) const;

  std::string source_;
  std::vector<io::TensorView> tensors_;
};

/// Traces a function and compiles it.
///   CompiledGraph f = jit("twice", [](Tracer& t) { const Tensor x = t.input("x", {4}); return x + x; });
template <class Fn>
CompiledGraph jit(const std::string& name, Fn&& fn, const NamedLiterals& weights = {},
                  const CompileOptions& options = {}) {
  return compile(trace(name, std::forward<Fn>(fn)), weights, options);
}

}  // namespace rlx
