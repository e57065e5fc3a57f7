// rlx onnx: what of ONNX is known, and what becomes of a model.
#include <cstdio>
#include <map>

#include "apps/rlx/command.h"
#include "apps/rlx/open_program.h"
#include "apps/rlx/output.h"
#include "rlx/base/file.h"
#include "rlx/base/json_write.h"
#include "rlx/io/onnx/read.h"
#include "rlx/onnx/export.h"
#include "rlx/onnx/table.h"

namespace rlx::cli {
namespace {

/// The operators of a theme, each with the versions from which on it is read another way.
using Versions = std::map<std::string_view, std::vector<int>>;
Versions versions_of(const onnx::Theme& theme) {
  Versions out;
  for (const onnx::Entry& e : theme.entries) out[e.name].push_back(e.since);
  return out;
}

std::string ops_json() {
  JsonWriter out({.indent = 2});
  out.begin_array();
  for (const onnx::Theme& theme : onnx::themes()) {
    for (const auto& [name, since] : versions_of(theme)) {
      out.begin_object();
      out.member("domain", theme.domain), out.member("theme", theme.name);
      out.member("name", name), out.member("since", since);
      out.end_object();
    }
  }
  out.end_array();
  return out.take() + "\n";
}

std::string ops_text() {
  std::string out;
  for (const onnx::Theme& theme : onnx::themes()) {
    out += cat(theme.name, theme.domain.empty() ? std::string() : cat(" (", theme.domain, ")"), "\n");
    for (const auto& [name, since] : versions_of(theme))
      out += cat("  ", name, "  since ", join(since), "\n");
  }
  return out;
}

// What the file says, without importing it.
void print_model(const io::onnx::Model& m) {
  std::map<std::string, int> count;
  for (const auto& n : m.graph.nodes) ++count[n.domain.empty() ? n.op : cat(n.domain, ".", n.op)];
  print(cat("onnx       IR version ", m.ir_version, ", by ", m.producer.empty() ? "somebody" : m.producer,
            " ", m.producer_version, "\n"));
  for (const auto& [domain, version] : m.opsets)
    print(cat("operators  ", domain.empty() ? "ai.onnx" : domain, " ", version, "\n"));
  print(cat("graph      ", m.graph.nodes.size(), " nodes, ", m.graph.initializers.size(), " tensors, ",
            m.functions.size(), " functions\n"));
  for (const auto& [op, n] : count) print(cat("  ", op, "  ", n, "\n"));
  const onnx::Imported imported = onnx::import_model(m);
  const ir::Graph& g = imported.program.graph;
  print(cat("imported   ", g.len(), " nodes, ", imported.program.weights.size(), " weights\n"));
  for (const ir::NodeId id : g.inputs())
    print(cat("input      ", ir::leaf_name(g.node(id)), ": ", g.node(id).shapes[0], "\n"));
  for (size_t i = 0; i < g.outputs().size(); ++i)
    print(cat("output     ", g.output_name(i), ": ", g.shape(g.outputs()[i]), "\n"));
  for (const std::string& note : imported.notes) print(cat("note       ", note, "\n"));
}

// The graph and its weights, in a form that this library reads again.
void convert_model(const std::string& path, const std::string& to) {
  const Program p = open_program(path);
  if (to.ends_with(".rlx")) {
    write_file(to, std::string_view(p.graph.to_text()));
    if (!p.weights.empty())
      std::fprintf(stderr,
                   "rlx: note: a text holds no weights; write .safetensors to keep the %zu of the model\n",
                   p.weights.size());
  } else {
    p.save(to);
  }
  print(cat(p.graph.len(), " nodes, ", p.weights.size(), " weights, onnx to ", to, "\n"));
}

}  // namespace

void inspect_onnx(const io::Input& input, bool json) {
  if (json) throw invalid("inspect: --json is not for ONNX models; convert the model first");
  print_model(io::onnx::parse_model(input.bytes(), input.owner(), input.path()));
}

bool convert_onnx(const std::string& in, const std::string& out) {
  if (out.ends_with(".onnx")) {
    const Program p = open_program(in);
    onnx::export_file(out, p);
    print(cat(p.graph.len(), " nodes, ", p.weights.size(), " weights to ", out, "\n"));
    return true;
  }
  if (!is_onnx(io::Input::open(in))) return false;
  if (!out.ends_with(".rlx") && !out.ends_with(".safetensors"))
    throw invalid("convert: '", out, "': an ONNX model becomes a .rlx text or a .safetensors file");
  convert_model(in, out);
  return true;
}

void add_onnx(Command app) {
  Command command = app.add_subcommand("onnx", "ONNX: the operators that are known, or what a model holds");
  auto what = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command.add_option("WHAT", *what, "'ops' for the operators, or a model file").required();
  command.add_flag("--json", *json, "print the operators as JSON");
  command.callback([what, json] {
    if (*what == "ops") {
      print(*json ? ops_json() : ops_text());
    } else {
      print_model(io::onnx::read_model(*what));
    }
  });
}

}  // namespace rlx::cli
