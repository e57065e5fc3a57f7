// A program: a graph and the values of its params, which load and save together.
//
//   Program p = Program::open("model.safetensors");
//   const NamedLiterals out = p.interpret({{"x", x}});
#pragma once

#include <string>
#include <vector>

#include "rlx/lang/graph.h"

namespace rlx {

/// A graph and the values of its params.
struct Program {
  Graph graph;
  NamedLiterals weights = {};  // by the names of params; some may be missing

  /// A saved graph or module, a .rlx text or JSON, told apart by the contents. Blocks are lowered; weights are
  /// views of the mapped file.
  static Program open(const std::string& path);
  /// A safetensors file that `open` reads back to the same program. Weights that are no params of the graph, or
  /// have other types, are an error.
  void save(const std::string& path) const;

  /// Params that have no value yet, in the order of the graph.
  std::vector<std::string> missing_weights() const;
  /// Runs by the operators' reference rules. `inputs` may also replace weights.
  NamedLiterals interpret(const NamedLiterals& inputs) const;

  friend bool operator==(const Program&, const Program&) = default;
};

}  // namespace rlx
