// Graphs as files. A saved graph is a safetensors file: its tensors are the larger constants and, if given,
// the weights; its metadata holds the text form, with small constants written out, and the version of the
// format.
//
//   "rlx.format": "graph"   "rlx.version": "1"   "rlx.stage": "mir"   "rlx.text": "graph @toy(...) {...}"
//   "rlx.origins": where the nodes came from (rlx/ir/json.h), when it is known
//
// Constant number i is the tensor `constant/i`; a weight is called like its param. Loading maps the file: the
// constants and weights are views of it.
#pragma once

#include <string>

#include "rlx/ir/graph.h"
#include "rlx/ir/interpreter.h"

namespace rlx {

inline constexpr int kGraphFileVersion = 1;

struct GraphFile {
  ir::Graph graph;
  ir::NamedLiterals weights;  // values of params, where the file has them
  std::string stage = "mir";  // hir direct, hir fusable, mir or lir
};

/// Weights must be params of the graph, with their types.
void save_graph(const GraphFile&, const std::string& path);

/// Throws a user error for anything but a file written by save_graph of a known version.
GraphFile load_graph(const std::string& path);
/// As load_graph, from bytes in memory kept alive by `owner`; `name` starts messages.
GraphFile parse_graph_file(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                           const std::string& name);

/// A .rlx text, a JSON form or a saved file, told apart by the contents.
GraphFile read_graph(const std::string& path);

}  // namespace rlx
