// rlx inspect: what is in a file or folder, by its content.
#include <algorithm>
#include <cstdio>

#include "apps/rlx/bound_graph.h"
#include "apps/rlx/command.h"
#include "apps/rlx/device.h"
#include "apps/rlx/inspect_memory.h"
#include "apps/rlx/model_arguments.h"
#include "apps/rlx/open_program.h"
#include "apps/rlx/output.h"
#include "apps/rlx/usage_error.h"
#include "rlx/base/error.h"
#include "rlx/base/file.h"
#include "rlx/base/json_write.h"
#include "rlx/io/file_format.h"
#include "rlx/io/model_file.h"
#include "rlx/ir/leaves.h"
#include "rlx/lang/graph_file.h"
#include "rlx/lang/inspect.h"
#include "rlx/lang/program.h"
#include "rlx/runtime/page.h"

namespace rlx::cli {
namespace {

struct Question {
  bool json = false;
  std::vector<std::string> binds;
  llm::MemoryQuestion memory;
};

std::string padded(std::string_view text, size_t width) {
  std::string out(text);
  out.resize(std::max(out.size() + 1, width), ' ');
  return out;
}

// One line of a metadata value, long ones cut at a character.
std::string readable_value(const io::GgufValue& v) {
  constexpr size_t kLongest = 60;
  const auto shortened = [](std::string_view text) {
    std::string out(text.substr(0, kLongest));
    if (text.size() > kLongest) {
      while (!out.empty() && (out.back() & 0xc0) == 0x80) out.pop_back();
      if (!out.empty() && (out.back() & 0x80)) out.pop_back();
      out += "...";
    }
    for (char& c : out) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
    }
    return out;
  };
  switch (v.type()) {
    case io::GgufType::string:
      return cat('"', shortened(v.string()), '"');
    case io::GgufType::bool_:
      return cat(v.boolean());
    case io::GgufType::array:
      return cat(io::gguf_type_name(v.element_type()), "[", v.size(), "]");
    case io::GgufType::f32: {
      char text[32];
      std::snprintf(text, sizeof text, "%.7g", v.real());
      return text;
    }
    case io::GgufType::f64:
    case io::GgufType::u64:
      return cat(v.real());
    default:
      return cat(v.integer());
  }
}

void inspect_model(const io::Input& input, const Question& q) {
  const io::ModelFile file = io::ModelFile::open(input);
  if (q.json) return print(with_memory(io::describe_json(file), file, q.memory) + "\n");

  int64_t parameters = 0, bytes = 0;
  const auto totals = io::totals_by_type(file.tensors);
  for (const io::TypeTotal& t : totals) parameters += t.parameters, bytes += t.bytes;
  print(cat("kind          ", file.format->name,
            file.gguf ? cat(" version ", file.gguf->version()) : std::string(),
            file.files > 1 ? cat(", ", file.files, " files") : std::string(), "\n"));
  if (!file.architecture().empty()) print(cat("architecture  ", file.architecture(), "\n"));
  print(cat("tensors       ", file.tensors.size(), "\n"));
  print(cat("parameters    ", parameters, "\n"));
  print(cat("size          ", readable_bytes(bytes), "\n"));

  print(memory_text(file, q.memory));

  if (!totals.empty()) print("\ntype         tensors    parameters        size\n");
  for (const io::TypeTotal& t : totals) {
    char line[128];
    std::snprintf(line, sizeof line, "%-11s %8lld %13lld %11s\n", std::string(t.type).c_str(),
                  (long long)t.tensors, (long long)t.parameters, readable_bytes(t.bytes).c_str());
    print(line);
  }
  if (file.gguf && !file.gguf->entries().empty()) {
    print("\nmetadata\n");
    for (const io::GgufEntry& e : file.gguf->entries()) {
      print(cat("  ", padded(e.key, 44), readable_value(e.value), "\n"));
    }
  }
  if (!file.metadata.empty()) {
    print("\nmetadata\n");
    for (const auto& [key, value] : file.metadata) {
      print(cat("  ", padded(key, 24), value.size() > 60 ? cat(value.size(), " bytes") : value, "\n"));
    }
  }
  size_t widest = 0;
  for (const io::TensorView& t : file.tensors) widest = std::max(widest, t.name.size());
  if (!file.tensors.empty()) print("\ntensors\n");
  for (const io::TensorView& t : file.tensors) {
    print(cat("  ", padded(t.name, widest + 2), padded(cat(t), 28), readable_bytes(t.stored_bytes()), "\n"));
  }
}

bool is_model(const io::Input& input) { return io::FormatTable::standard().recognise(input) != nullptr; }

void inspect_graph(const io::Input& input, const Question& q) {
  GraphFile file = read_graph(input.path());
  if (!q.binds.empty()) file.graph = file.graph.bind(read_bindings("inspect", q.binds));
  if (!q.json)
    return print(cat("stage ", file.stage, ", ", file.weights.size(), " weights\n", inspect(file.graph)));
  JsonWriter out({.replace_invalid = true});
  out.begin_object();
  out.member("kind", "graph"), out.member("name", file.graph.name()), out.member("stage", file.stage);
  out.member("nodes", file.graph.len());
  out.key("ops"), out.begin_object();
  for (const auto& [op, count] : histogram(file.graph)) out.member(op, count);
  out.end_object();
  out.key("leaves"), out.begin_array();
  for (const ir::NodeId id : file.graph.leaves()) {
    const ir::Node& n = file.graph.node(id);
    out.begin_object();
    out.member("name", ir::leaf_name(n)), out.member("kind", n.op->name),
        out.member("type", cat(n.shapes[0]));
    out.end_object();
  }
  out.end_array();
  out.end_object();
  print(out.take() + "\n");
}

// The first kind that recognises the path shows it.
struct Kind {
  bool (*recognises)(const io::Input&);
  void (*inspect)(const io::Input&, const Question&);
};
constexpr Kind kKinds[] = {
    {is_graph_file, inspect_graph},  // before models: a saved graph is a safetensors file too
    {is_onnx, [](const io::Input& input, const Question& q) { inspect_onnx(input, q.json); }},
    {is_model, inspect_model},
};

}  // namespace

void add_inspect(Command app) {
  struct Arguments {
    std::string path, html, device = "cpu", cache_type = "f32";
    Question question;
  };
  const auto arguments = std::make_shared<Arguments>();
  // Options that only language models have an answer to.
  const auto of_models = std::make_shared<std::vector<std::pair<const char*, Argument>>>();
  Command command = app.add_subcommand("inspect", "show what a graph, model file or folder holds");
  command
      .add_option("PATH", arguments->path,
                  cat("graph (.rlx, JSON, saved), ONNX model, ", io::FormatTable::standard().names(),
                      " file, safetensors index, or model folder"))
      .required();
  of_models->emplace_back(
      "--context", command
                       .add_option("-c,--context", arguments->question.memory.context,
                                   "of a language model: tokens that are remembered, for the memory it takes")
                       .positive()
                       .with_default_shown());
  of_models->emplace_back(
      "--batch",
      command.add_option("-b,--batch", arguments->question.memory.batch, "of a language model: texts at once")
          .positive()
          .with_default_shown());
  of_models->emplace_back(
      "--kv", command.add_option("--kv", arguments->cache_type,
                                 "of a language model: storage of keys and values: f32, f16, bf16 or q8_0"));
  const Argument json =
      command.add_flag("--json", arguments->question.json,
                       "print one JSON object; long metadata arrays are given by type and size");
  const Argument html =
      command
          .add_option("--html", arguments->html,
                      "of a graph: write one page with its stages, rewrites, plan and kernels to this file")
          .excludes(json);
  add_target(command, arguments->device).needs(html);
  const Argument bind =
      command.add_option("--bind", arguments->question.binds, "SYMBOL=N: of a graph: the size of a symbol");
  command.callback([arguments, of_models, bind] {
    const io::Input input = io::Input::open(cached_path(arguments->path));
    arguments->question.memory.cache_type = models::CacheType::named(arguments->cache_type);
    const bool is_graph = is_graph_file(input) || is_onnx(input);
    if (bind.given() && (!is_graph_file(input) && arguments->html.empty()))
      throw UsageError(cat("--bind is for graphs; '", arguments->path, "' is none; see 'rlx help inspect'"));
    if (is_graph) {
      for (const auto& [option, argument] : *of_models) {
        if (argument.given())
          throw UsageError(cat(option, " is for language models; '", arguments->path,
                               "' is a graph; see 'rlx help inspect'"));
      }
    }
    if (!arguments->html.empty()) {
      if (!is_graph) throw invalid("inspect: --html is for graphs; '", arguments->path, "' is none");
      const BoundGraph bound =
          read_graph_only({.path = arguments->path, .binds = arguments->question.binds}, "inspect");
      const runtime::Stages stages = runtime::compile_in_stages(bound.graph, {.device = arguments->device});
      return write_file(arguments->html, std::string_view(html_page(stages)));
    }
    for (const Kind& kind : kKinds) {
      if (kind.recognises(input)) return kind.inspect(input, arguments->question);
    }
    throw invalid("inspect: '", arguments->path,
                  "' is nothing this command knows; graphs, model files and folders expected");
  });
}

}  // namespace rlx::cli
