// A graph from a file with values for all of its leaves: what commands that run graphs begin with.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/rlx/arguments.h"
#include "rlx/ir/interpreter.h"

namespace rlx::cli {

struct GraphArguments {
  std::string path;
  std::vector<std::string> inputs, binds;
  std::optional<uint64_t> random;
};

/// Declares FILE, --input, --random and --bind.
void add_graph_arguments(Command command, GraphArguments& arguments);
/// FILE and --bind alone.
void add_graph_file(Command command, GraphArguments& arguments);

struct BoundGraph {
  ir::Graph graph;                    // blocks lowered, symbols bound as far as asked for
  ir::NamedLiterals weights, inputs;  // every leaf once

  /// Both together.
  ir::NamedLiterals leaves() const;
};

/// SYMBOL=N of --bind.
DimBinding read_bindings(std::string_view command, const std::vector<std::string>& binds);

/// `command` starts messages. All that is wrong with the values is told in one error.
BoundGraph read_bound_graph(const GraphArguments& arguments, std::string_view command);

/// The graph alone, with the weights that its file has. `values` as for open_program.
BoundGraph read_graph_only(const GraphArguments& arguments, std::string_view command,
                           ir::NamedLiterals* values = nullptr);

}  // namespace rlx::cli
