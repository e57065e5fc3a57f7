#include "apps/rlx/bound_graph.h"

#include <charconv>

#include "apps/rlx/open_program.h"
#include "apps/rlx/value_files.h"
#include "rlx/ir/leaves.h"
#include "rlx/ir/sample.h"
#include "rlx/lang/program.h"

namespace rlx::cli {
namespace {

// Leaves nobody gave get random values; what must be an index is best given.
void fill_random(std::string_view command, const ir::Graph& g, uint64_t seed, ir::NamedLiterals& values) {
  for (const ir::NodeId id : g.leaves()) {
    const std::string& name = ir::leaf_name(g.node(id));
    const Shape& shape = g.node(id).shapes[0];
    if (values.contains(name)) continue;
    if (!shape.is_static())
      throw invalid(command, ": --random: '", name, "' is ", shape, "; give its sizes with --bind SYMBOL=N");
    values.emplace(name, ir::sample_literal(cat(shape), seed + id));
  }
}

}  // namespace

DimBinding read_bindings(std::string_view command, const std::vector<std::string>& binds) {
  DimBinding out;
  for (const std::string& text : binds) {
    const size_t at = text.find('=');
    if (at == 0 || at == text.npos || at + 1 == text.size())
      throw invalid(command, ": --bind ", text, "; SYMBOL=SIZE expected");
    const std::string symbol = text.substr(0, at), value = text.substr(at + 1);
    int64_t size = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), size);
    if (error != std::errc() || end != value.data() + value.size() || size < 0)
      throw invalid(command, ": --bind ", text, ": '", value, "' is not a size");
    if (out.get(symbol)) throw invalid(command, ": symbol '", symbol, "' is bound twice");
    out.set(symbol, size);
  }
  return out;
}

void add_graph_file(Command command, GraphArguments& a) {
  command.add_option("FILE", a.path, "a .rlx text, its JSON form, a saved graph or an ONNX model").required();
  command.add_option("--bind", a.binds, "SYMBOL=N: the size of a symbol");
}

void add_graph_arguments(Command command, GraphArguments& a) {
  add_graph_file(command, a);
  command.add_option("--input,-i", a.inputs, cat("values by name: ", value_files_taken()));
  command.add_option("--random", a.random, "seed: fill inputs that are not given").not_negative();
}

ir::NamedLiterals BoundGraph::leaves() const {
  ir::NamedLiterals out = weights;
  out.insert(inputs.begin(), inputs.end());
  return out;
}

BoundGraph read_graph_only(const GraphArguments& a, std::string_view command, ir::NamedLiterals* values) {
  Program program = open_program(a.path, values);
  BoundGraph out{std::move(program.graph), std::move(program.weights), {}};
  if (!a.binds.empty()) out.graph = out.graph.bind(read_bindings(command, a.binds));
  return out;
}

BoundGraph read_bound_graph(const GraphArguments& a, std::string_view command) {
  ir::NamedLiterals values = read_values(command, "--input", a.inputs);
  BoundGraph out = read_graph_only(a, command, &values);
  for (auto& [name, weight] : out.weights) values.emplace(name, weight);
  out.weights.clear();
  if (a.random) fill_random(command, out.graph, *a.random, values);
  ir::arrange_leaves(out.graph, values);  // tells all that is wrong with them
  for (const ir::NodeId id : out.graph.leaves()) {
    const std::string& name = ir::leaf_name(out.graph.node(id));
    (out.graph.node(id).is<ir::Param>() ? out.weights : out.inputs).emplace(name, values.at(name));
  }
  return out;
}

}  // namespace rlx::cli
