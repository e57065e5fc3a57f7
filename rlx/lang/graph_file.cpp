#include "rlx/lang/graph_file.h"

#include <algorithm>

#include "rlx/base/file.h"
#include "rlx/io/file_format.h"
#include "rlx/io/literal.h"
#include "rlx/io/safetensors.h"
#include "rlx/ir/json.h"
#include "rlx/ir/leaves.h"
#include "rlx/ir/text.h"

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

GraphFile from_safetensors(const io::SafetensorsFile& file, const std::string& source,
                           const ir::OpTable& ops) {
  if (const std::string& format = metadata(file, "rlx.format", source); format != "graph")
    throw invalid(source, ": its format is '", format, "'; 'graph' expected");
  if (const std::string& version = metadata(file, "rlx.version", source);
      version != std::to_string(kGraphFileVersion))
    throw invalid(source, ": version ", version, " is unknown; this program reads ", kGraphFileVersion);
  GraphFile out;
  out.stage = metadata(file, "rlx.stage", source);
  const std::string* origins = file.find_metadata("rlx.origins");
  ir::Module module = ir::parse_module(
      metadata(file, "rlx.text", source), ops,
      [&](const std::string& name) { return io::to_literal(file.tensor(name)); },
      origins != nullptr ? ir::origins_from_json(*origins) : std::vector<ir::OriginRef>());
  try {
    module.set_words(out.stage);
  } catch (const Error& e) {
    throw invalid(source, ": ", e.message());
  }
  out.graph = std::move(module.graph);
  out.plan = std::move(module.plan);
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

enum class Form { text, json, saved };

Form form_of(std::string_view text) {
  // A safetensors file begins with a length of eight bytes, whose upper ones are zero.
  if (text.size() >= 8 && text[7] == '\0') return Form::saved;
  const size_t start = text.find_first_not_of(" \t\r\n");
  return start != std::string_view::npos && text[start] == '{' ? Form::json : Form::text;
}

// Messages of `read` start with the path.
template <class Read>
auto in_file(const std::string& path, Read read) {
  try {
    return read();
  } catch (Error& e) {
    e.set_message(cat(path, ": ", e.message()));
    throw;
  }
}

// A file of tensors that cannot be a graph says what it is.
void refuse_models(const MappedFile& file) {
  const auto input = io::Input::of_bytes(file.bytes(), file.owner(), file.path());
  for (const io::FileFormat* f : io::FormatTable::standard().formats()) {
    if (f->name != "safetensors" && f->recognises(input))
      throw invalid(file.path(), ": this is a ", f->name,
                    " file, which holds no graph; a .rlx text, JSON or saved graph is expected");
  }
}

GraphFile saved_graph(const MappedFile& file, const ir::OpTable& ops) {
  return parse_graph_file(file.bytes(), file.owner(), file.path(), ops);
}

ir::Module module_of(const MappedFile& file, const ir::OpTable& ops) {
  refuse_models(file);
  ir::Module m;
  switch (form_of(file.text())) {
    case Form::saved: {
      GraphFile saved = saved_graph(file, ops);
      m.set_words(saved.stage);
      m.graph = std::move(saved.graph);
      m.plan = std::move(saved.plan);
      m.named = m.stage != ir::Stage::Mir;
      return m;
    }
    case Form::text:
      return in_file(file.path(), [&] { return ir::parse_module(file.text(), ops); });
    case Form::json:
      m.graph = in_file(file.path(), [&] { return ir::graph_from_json(file.text(), ops); });
      m.stage = ir::stage_of(m.graph);
      m.named = false;
  }
  return m;
}

GraphFile graph_of(const MappedFile& file, const ir::OpTable& ops) {
  refuse_models(file);
  if (form_of(file.text()) == Form::saved) return saved_graph(file, ops);
  ir::Module m = module_of(file, ops);
  std::string stage = m.words();
  return {std::move(m.graph), {}, std::move(stage), std::move(m.plan)};
}

}  // namespace

void save_graph(const GraphFile& file, const std::string& path) {
  check_weights(file);
  std::vector<io::TensorView> tensors;
  const auto store = [&](const Literal& value) -> std::string {
    if (value.bytes().size() <= kMaxInlineBytes) return {};
    std::string name = cat(kConstantPrefix, tensors.size());
    tensors.push_back(io::to_view(name, value));
    return name;
  };
  // With a plan the text is that of a module; the stage is told by the metadata in any case.
  const std::string text =
      file.plan.empty()
          ? ir::to_text(file.graph, store)
          : ir::to_text(ir::Module{file.graph, ir::Stage::Lir, ir::FusionPolicy::direct, file.plan}, store);
  for (const auto& [name, value] : file.weights) tensors.push_back(io::to_view(name, value));
  io::Metadata metadata = {{"rlx.format", "graph"},
                           {"rlx.version", std::to_string(kGraphFileVersion)},
                           {"rlx.stage", file.stage},
                           {"rlx.text", text}};
  if (std::string origins = ir::origins_to_json(file.graph); !origins.empty())
    metadata.emplace_back("rlx.origins", std::move(origins));
  io::write_safetensors(path, tensors, metadata);
}

GraphFile load_graph(const std::string& path, const ir::OpTable& ops) {
  return from_safetensors(io::SafetensorsFile::open(path), path, ops);
}

GraphFile parse_graph_file(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                           const std::string& name, const ir::OpTable& ops) {
  return from_safetensors(io::SafetensorsFile::parse(bytes, std::move(owner), name), name, ops);
}

bool is_graph_file(const io::Input& input) {
  if (input.is_folder()) return false;
  const std::string_view text = input.text();
  const std::string_view head = text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()), 200);
  switch (form_of(text)) {
    case Form::text:
      return head.starts_with("graph") || head.starts_with("module") || head.starts_with("//");
    case Form::json:
      return head.find("\"rlx.graph\"") != std::string_view::npos;
    case Form::saved:
      try {
        const auto file = io::SafetensorsFile::parse(input.bytes(), input.owner(), input.path());
        const std::string* format = file.find_metadata("rlx.format");
        return format != nullptr && *format == "graph";
      } catch (const Error&) {
        return false;  // who opens it as what it seems to be tells what is wrong
      }
  }
  return false;
}

GraphFile read_graph(const std::string& path, const ir::OpTable& ops) {
  return graph_of(MappedFile::open(path), ops);
}

ir::Module read_module(const std::string& path, const ir::OpTable& ops) {
  return module_of(MappedFile::open(path), ops);
}

std::vector<ir::VerifyError> verify_graph_file(const std::string& path, const ir::OpTable& ops) {
  const MappedFile file = MappedFile::open(path);
  if (form_of(file.text()) == Form::text) return ir::verify_text(file.text(), ops);
  return graph_of(file, ops).graph.verify();
}

}  // namespace rlx
