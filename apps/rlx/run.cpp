// rlx run: a graph on arrays from files.
#include <charconv>
#include <filesystem>

#include "apps/rlx/command.h"
#include "apps/rlx/output.h"
#include "rlx/base/file.h"
#include "rlx/io/literal.h"
#include "rlx/io/npy.h"
#include "rlx/ir/leaves.h"
#include "rlx/ir/sample.h"
#include "rlx/lang/graph_file.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/runtime/devices.h"

namespace rlx::cli {
namespace {

constexpr int64_t kMaxPrinted = 64;  // elements of an output shown on the terminal

struct Options {
  std::string path, device = "cpu", output_dir;
  std::vector<std::string> inputs, binds;
  std::optional<uint64_t> random;
};

std::pair<std::string, std::string> split(const std::string& text, std::string_view option) {
  const size_t at = text.find('=');
  if (at == 0 || at == std::string::npos || at + 1 == text.size())
    throw invalid("run: ", option, " ", text, "; NAME=VALUE expected");
  return {text.substr(0, at), text.substr(at + 1)};
}

DimBinding read_bindings(const std::vector<std::string>& binds) {
  DimBinding out;
  for (const std::string& text : binds) {
    const auto [symbol, value] = split(text, "--bind");
    int64_t size = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), size);
    if (error != std::errc() || end != value.data() + value.size() || size < 0)
      throw invalid("run: --bind ", text, ": '", value, "' is not a size");
    if (out.get(symbol)) throw invalid("run: symbol '", symbol, "' is bound twice");
    out.set(symbol, size);
  }
  return out;
}

// NAME=FILE.npy is one input; FILE.npz holds several under their own names.
ir::NamedLiterals read_inputs(const std::vector<std::string>& inputs) {
  ir::NamedLiterals out;
  const auto add = [&out](const std::string& name, const io::TensorView& t) {
    if (!out.emplace(name, io::to_literal(t)).second) throw invalid("run: input '", name, "' is given twice");
  };
  for (const std::string& text : inputs) {
    if (text.ends_with(".npz") && text.find('=') == std::string::npos) {
      for (const io::TensorView& t : io::read_npz(text)) add(t.name, t);
    } else {
      const auto [name, path] = split(text, "--input");
      add(name, io::read_npy(path));
    }
  }
  return out;
}

// Leaves nobody gave get random values; what must be an index is best given.
void fill_random(const ir::Graph& g, uint64_t seed, ir::NamedLiterals& values) {
  for (const ir::NodeId id : g.leaves()) {
    const std::string& name = static_cast<const ir::NamedLeaf*>(g.node(id).attrs.get())->name;
    const Shape& shape = g.node(id).shapes[0];
    if (values.contains(name)) continue;
    if (!shape.is_static())
      throw invalid("run: --random: '", name, "' is ", shape, "; give its sizes with --bind SYMBOL=N");
    values.emplace(name, ir::sample_literal(cat(shape), seed + id));
  }
}

void run(const Options& o) {
  device_named(o.device);  // an unknown one is told before anything else
  GraphFile file = read_graph(o.path);
  ir::Graph g = std::move(file.graph);
  if (!o.binds.empty()) g = g.bind(read_bindings(o.binds));
  ir::NamedLiterals values = read_inputs(o.inputs);
  for (auto& [name, weight] : file.weights) values.emplace(name, weight);
  if (o.random) fill_random(g, *o.random, values);
  ir::arrange_leaves(g, values);  // tells all that is wrong with them
  NamedLiterals weights, inputs;
  for (const ir::NodeId id : g.leaves()) {
    const std::string& name = static_cast<const ir::NamedLeaf*>(g.node(id).attrs.get())->name;
    (g.node(id).is<ir::Param>() ? weights : inputs).emplace(name, values.at(name));
  }
  const NamedLiterals results = compile(g, weights, {.device = o.device}).run(inputs);
  check_mapped_files();  // weights and inputs are views of their files
  const auto names = g.output_names();
  if (!o.output_dir.empty()) std::filesystem::create_directories(o.output_dir);
  for (size_t i = 0; i < names.size(); ++i) {
    const Literal& y = results.at(names[i]);
    print(cat(names[i], ": ", y.elements() <= kMaxPrinted ? cat(y) : cat(y.shape()), "\n"));
    if (o.output_dir.empty()) continue;
    if (names[i].find('/') != std::string::npos)
      throw invalid("run: output '", names[i], "' cannot be the name of a file; rename it in the graph");
    io::write_npy(o.output_dir + "/" + names[i] + ".npy", io::to_view(names[i], y));
  }
}

}  // namespace

void add_run(CLI::App& app) {
  CLI::App* command = app.add_subcommand("run", "run a graph on arrays and print or write its outputs");
  auto o = std::make_shared<Options>();
  command->add_option("FILE", o->path, "a .rlx text, its JSON form or a saved graph")->required();
  command->add_option("--input,-i", o->inputs, "NAME=FILE.npy, or FILE.npz with arrays of those names");
  command->add_option("--random", o->random, "seed: fill inputs that are not given");
  command->add_option("--bind", o->binds, "SYMBOL=N: the size of a symbol");
  command->add_option("--device", o->device, "where to run: cpu, or ref (the reference interpreter)");
  command->add_option("--output-dir", o->output_dir, "write each output as NAME.npy into this folder");
  command->callback([o] { run(*o); });
}

}  // namespace rlx::cli
