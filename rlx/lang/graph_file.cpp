#include "rlx/lang/graph_file.h"

#include <algorithm>

#include "rlx/base/file.h"
#include "rlx/io/literal.h"
#include "rlx/io/safetensors.h"
#include "rlx/ir/json.h"
#include "rlx/ir/leaves.h"
#include "rlx/ir/text.h"
#include "rlx/ops/all.h"

namespace rlx {
namespace {

constexpr std::string_view kConstantPrefix = "constant/";
constexpr size_t kMaxInlineBytes = 256;  // larger constants become tensors

void check_weights(const GraphFile& file) {
  for (const auto& [name, value] : file.weights) {
    const auto id = file.graph.find_leaf(name);
    if (!id || !file.graph.node(*id).is<ir::Param>())
      throw invalid("save: '", name, "' is not a param of graph '", file.graph.name(), "'");
    if (file.graph.node(*id).shapes[0] != value.shape()) {
      throw invalid("save: param '", name, "' is ", file.graph.node(*id).shapes[0], ", the weight is ",
                    value.shape());
    }
    if (name.starts_with(kConstantPrefix))
      throw invalid("save: a weight cannot be called '", name, "': constants have such names");
  }
}

const std::string& metadata(const io::SafetensorsFile& file, std::string_view key,
                            const std::string& source) {
  const std::string* value = file.find_metadata(key);
  if (value == nullptr) throw invalid(source, ": it has no '", key, "' in its metadata; not a saved graph");
  return *value;
}

GraphFile from_safetensors(const io::SafetensorsFile& file, const std::string& source) {
  if (const std::string& format = metadata(file, "rlx.format", source); format != "graph")
    throw invalid(source, ": its format is '", format, "'; 'graph' expected");
  if (const std::string& version = metadata(file, "rlx.version", source);
      version != std::to_string(kGraphFileVersion))
    throw invalid(source, ": version ", version, " is unknown; this program reads ", kGraphFileVersion);
  GraphFile out;
  out.stage = metadata(file, "rlx.stage", source);
  constexpr std::string_view kStages[] = {"hir direct", "hir fusable", "mir", "lir"};
  if (std::find(std::begin(kStages), std::end(kStages), out.stage) == std::end(kStages))
    throw invalid(source, ": stage '", out.stage, "' is unknown; known: ", join(kStages));
  const std::string* origins = file.find_metadata("rlx.origins");
  out.graph = ir::parse_graph(
      metadata(file, "rlx.text", source), ops::table(),
      [&](const std::string& name) { return io::to_literal(file.tensor(name)); },
      origins != nullptr ? ir::origins_from_json(*origins) : std::vector<ir::OriginRef>());
  for (const io::TensorView& t : file.tensors()) {
    if (t.name.starts_with(kConstantPrefix)) continue;
    const auto id = out.graph.find_leaf(t.name);
    if (!id || !out.graph.node(*id).is<ir::Param>())
      throw invalid(source, ": tensor '", t.name, "' is neither a constant nor a param of the graph");
    Literal value = io::to_literal(t);
    if (value.shape() != out.graph.node(*id).shapes[0]) {
      throw invalid(source, ": tensor '", t.name, "' is ", value.shape(), ", the param is ",
                    out.graph.node(*id).shapes[0]);
    }
    out.weights.emplace(t.name, std::move(value));
  }
  return out;
}

}  // namespace

void save_graph(const GraphFile& file, const std::string& path) {
  check_weights(file);
  std::vector<io::TensorView> tensors;
  const std::string text = ir::to_text(file.graph, [&](const Literal& value) -> std::string {
    if (value.bytes().size() <= kMaxInlineBytes) return {};
    std::string name = cat(kConstantPrefix, tensors.size());
    tensors.push_back(io::to_view(name, value));
    return name;
  });
  for (const auto& [name, value] : file.weights) tensors.push_back(io::to_view(name, value));
  io::Metadata metadata = {{"rlx.format", "graph"},
                           {"rlx.version", std::to_string(kGraphFileVersion)},
                           {"rlx.stage", file.stage},
                           {"rlx.text", text}};
  if (std::string origins = ir::origins_to_json(file.graph); !origins.empty())
    metadata.emplace_back("rlx.origins", std::move(origins));
  io::write_safetensors(path, tensors, metadata);
}

GraphFile load_graph(const std::string& path) {
  return from_safetensors(io::SafetensorsFile::open(path), path);
}

GraphFile parse_graph_file(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                           const std::string& name) {
  return from_safetensors(io::SafetensorsFile::parse(bytes, std::move(owner), name), name);
}

GraphFile read_graph(const std::string& path) {
  const MappedFile file = MappedFile::open(path);
  const std::string_view text = file.text();
  const size_t start = text.find_first_not_of(" \t\r\n");
  // A safetensors file begins with a length of eight bytes, whose upper ones are zero.
  if (text.size() >= 8 && text[7] == '\0') return load_graph(path);
  try {
    if (start != std::string_view::npos && text[start] == '{')
      return {ir::graph_from_json(text, ops::table()), {}, "mir"};
    return {ir::parse_graph(text, ops::table()), {}, "mir"};
  } catch (Error& e) {
    e.set_message(cat(path, ": ", e.message()));
    throw;
  }
}

}  // namespace rlx
