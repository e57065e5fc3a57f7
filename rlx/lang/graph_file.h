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

#include "rlx/io/input.h"
#include "rlx/ir/interpreter.h"
#include "rlx/ir/module.h"
#include "rlx/ops/table.h"

namespace rlx {

inline constexpr int kGraphFileVersion = 1;

struct GraphFile {
  ir::Graph graph;
  ir::NamedLiterals weights;            // values of params, where the file has them
  std::string stage = "mir";            // hir direct, hir fusable, mir or lir
  std::vector<ir::PlanStatement> plan;  // of lir, where there is one
};

/// Weights must be params of the graph, with their types.
void save_graph(const GraphFile&, const std::string& path);

/// Throws a user error for anything but a file written by save_graph of a known version. `ops` are the
/// operators that it may name.
GraphFile load_graph(const std::string& path, const ir::OpTable& ops = ops::table());
/// As load_graph, from bytes in memory kept alive by `owner`; `name` starts messages.
GraphFile parse_graph_file(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                           const std::string& name, const ir::OpTable& ops = ops::table());

/// Whether the contents are those of one of the forms below. Other files of ours, checkpoints among them, are none.
bool is_graph_file(const io::Input&);

/// A .rlx text (a graph or a module), a JSON form or a saved file, told apart by the contents.
GraphFile read_graph(const std::string& path, const ir::OpTable& ops = ops::table());

/// As read_graph, without weights: a module as its text or file has it.
ir::Module read_module(const std::string& path, const ir::OpTable& ops = ops::table());

/// Every error of such a file; of a text each one in it (rlx/ir/text.h: verify_text). Empty means sound.
std::vector<ir::VerifyError> verify_graph_file(const std::string& path,
                                               const ir::OpTable& ops = ops::table());

}  // namespace rlx
