#include "rlx/runtime/archive.h"

#include <map>

#include "rlx/backend/cpu/isa.h"
#include "rlx/base/file.h"
#include "rlx/base/json.h"
#include "rlx/base/json_write.h"
#include "rlx/base/version.h"
#include "rlx/io/literal.h"
#include "rlx/io/safetensors.h"
#include "rlx/ir/call.h"
#include "rlx/ir/leaves.h"
#include "rlx/ir/text.h"
#include "rlx/ops/table.h"
#include "rlx/runtime/compile_cache.h"
#include "rlx/runtime/core.h"

namespace rlx {
namespace {

constexpr std::string_view kConstantPrefix = "constant/", kWeightPrefix = "weight/",
                           kPackedPrefix = "packed/";
constexpr size_t kMaxInlineBytes = 256;

/// What decides the bits of a run beside the graph.
std::string machine_text(const CompileOptions& o) {
  const std::string isa = o.device == "cpu" ? cat(" ", cpu::isa_name(cpu::current_isa())) : "";
  return cat("rlx ", RLX_VERSION, ", ", o.device, isa);
}

std::string options_json(const CompileOptions& o, int threads) {
  JsonWriter out;
  out.begin_object();
  out.member("device", o.device);
  out.member("threads", threads);
  out.member("optimise", o.optimise);
  out.member("fuse", o.fuse);
  out.member("batch_independent", o.batch_independent);
  out.member("plans_kept", o.plans_kept);
  out.key("states");
  out.begin_array();
  for (const StatePair& s : o.states) out.value(std::vector<std::string>{s.input, s.output});
  out.end_array();
  out.end_object();
  return out.take();
}

CompileOptions options_from(const Json& json) {
  CompileOptions o;
  o.device = json.at("device").string();
  o.threads = int(json.at("threads").integer());
  o.optimise = json.at("optimise").boolean();
  o.fuse = json.at("fuse").boolean();
  o.batch_independent = json.at("batch_independent").boolean();
  o.plans_kept = json.at("plans_kept").integer();
  for (const JsonView pair : json.at("states").items())
    o.states.push_back({std::string(pair.at(size_t(0)).string()), std::string(pair.at(size_t(1)).string())});
  return o;
}

const std::string& metadata(const io::SafetensorsFile& file, std::string_view key,
                            const std::string& source) {
  const std::string* value = file.find_metadata(key);
  if (value == nullptr)
    throw invalid(source, ": it has no '", key, "' in its metadata; not a compiled program");
  return *value;
}

std::string leaf_name(const ir::Graph& graph, size_t leaf) {
  return static_cast<const ir::NamedLeaf*>(graph.node(graph.leaves()[leaf]).attrs.get())->name;
}

std::vector<StoredForm> forms_from(const io::SafetensorsFile& file, const ir::Graph& graph,
                                   const std::string& source) {
  std::map<std::string, size_t, std::less<>> leaves;
  for (size_t i = 0; i < graph.leaves().size(); ++i) leaves.emplace(leaf_name(graph, i), i);
  std::vector<StoredForm> forms;
  const Json packed = Json::parse(metadata(file, "rlx.packed", source), source);
  for (const JsonView p : packed.items()) {
    const io::TensorView& t = file.tensor(p.at("tensor").string());
    const auto leaf = leaves.find(p.at("param").string());
    if (leaf == leaves.end())
      throw invalid(source, ": tensor '", t.name, "' is packed for param '", p.at("param").string(),
                    "', which its graph does not have");
    forms.push_back({leaf->second, std::string(p.at("form").string()), t.bytes, t.owner});
  }
  return forms;
}

// Why a program for leaves of these types is none of the graph; empty when it is one.
std::string misfit(const ir::Graph& graph, const std::vector<Shape>& types, const ir::Graph& program) {
  const auto all = graph.leaves(), own = program.leaves();
  if (types.size() != all.size() || own.size() != all.size())
    return cat("it is for ", types.size(), " leaves and takes ", own.size(), ", the graph has ", all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const ir::Node &leaf = graph.node(all[i]), &mine = program.node(own[i]);
    if (!ir::may_be(leaf.shapes[0], types[i]) || !types[i].is_static() || mine.op != leaf.op ||
        ir::leaf_name(mine) != ir::leaf_name(leaf) || mine.shapes[0] != types[i])
      return cat("it takes ", mine.op->name, " '", ir::leaf_name(mine), "' as ", mine.shapes[0],
                 ", made for ", types[i], "; the graph has ", leaf.op->name, " '", ir::leaf_name(leaf),
                 "' as ", leaf.shapes[0]);
  }
  if (program.output_names() != graph.output_names())
    return cat("it returns ", join(program.output_names()), ", the graph ", join(graph.output_names()));
  const DimBinding sizes = ir::solve_sizes(graph, types);
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const Shape wanted = graph.shape(graph.outputs()[i]).bind(sizes),
                made = program.shape(program.outputs()[i]);
    if (made != wanted) return cat("'", graph.output_name(i), "' is ", made, ", that of the graph ", wanted);
  }
  return {};
}

/// Adds the tensors, and says in JSON what they are.
std::string store_forms(const runtime::Prepared& prepared, std::vector<io::TensorView>& tensors) {
  JsonWriter out;
  out.begin_array();
  for (const StoredForm& f : prepared.forms) {
    const std::string name = cat(kPackedPrefix, tensors.size());
    tensors.push_back({.name = name,
                       .type = io::StorageType::of(DType::u8),
                       .dims = {int64_t(f.bytes.size())},
                       .bytes = f.bytes,
                       .owner = f.owner});
    out.begin_object();
    out.member("param", leaf_name(prepared.graph, f.leaf));
    out.member("form", f.form);
    out.member("tensor", name);
    out.end_object();
  }
  out.end_array();
  return out.take();
}

CompiledGraph from_file(const io::SafetensorsFile& file, const std::string& source, int threads = 0) {
  if (const std::string& format = metadata(file, "rlx.format", source); format != "program")
    throw invalid(source, ": its format is '", format, "'; 'program' expected");
  if (const std::string& version = metadata(file, "rlx.version", source);
      version != std::to_string(kArchiveVersion))
    throw invalid(source, ": version ", version, " is unknown; this library reads ", kArchiveVersion);
  runtime::Prepared prepared;
  prepared.options = options_from(Json::parse(metadata(file, "rlx.options", source), source));
  if (threads != 0) prepared.options.threads = threads;
  const CompileOptions& o = prepared.options;
  if (const std::string& machine = metadata(file, "rlx.machine", source); machine != machine_text(o))
    throw invalid(source, ": it was compiled for ", machine, ", this is ", machine_text(o),
                  "; compile it again");
  if (threads == 0 && o.threads > default_pool().threads())
    throw invalid(source, ": it was compiled for ", o.threads, " threads, there are ",
                  default_pool().threads(), "; compile it again");
  const auto fetch = [&](const std::string& name) { return io::to_literal(file.tensor(name)); };
  prepared.graph = ir::parse_module(metadata(file, "rlx.text", source), ops::table(), fetch).graph;
  const Json programs = Json::parse(metadata(file, "rlx.programs", source), source);
  for (const JsonView p : programs.items()) {
    std::vector<Shape> leaves;
    for (const JsonView s : p.at("leaves").items()) leaves.push_back(parse_shape(s.string()));
    ir::Graph program = ir::parse_module(p.at("text").string(), ops::table(), fetch).graph;
    if (const std::string why = misfit(prepared.graph, leaves, program); !why.empty())
      throw invalid(source, ": program ", prepared.programs.size(), " does not fit its graph: ", why);
    prepared.programs.emplace_back(std::move(leaves), std::move(program));
  }
  prepared.forms = forms_from(file, prepared.graph, source);
  for (const io::TensorView& t : file.tensors()) {
    if (t.name.starts_with(kWeightPrefix))
      prepared.weights.emplace(t.name.substr(kWeightPrefix.size()), io::to_literal(t));
  }
  return CompiledGraph(std::make_shared<runtime::Core>(std::move(prepared)));
}

Hash128 weights_hash(const NamedLiterals& weights) {
  Hasher h;
  for (const auto& [name, value] : weights) {
    h.add(name);
    h.add(cat(value.shape()));
    h.add_bytes(value.bytes().data(), value.bytes().size());
  }
  return h.finish();
}

std::string hex(Hash128 h) {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", (unsigned long long)h.hi, (unsigned long long)h.lo);
  return text;
}

}  // namespace

void save_compiled(CompiledGraph& f, const std::string& path) {
  runtime::Core& core = f.core();
  const runtime::Prepared prepared = core.prepared();
  std::vector<io::TensorView> tensors;
  const auto store = [&](const Literal& value) -> std::string {
    if (value.bytes().size() <= kMaxInlineBytes) return {};
    std::string name = cat(kConstantPrefix, tensors.size());
    tensors.push_back(io::to_view(name, value));
    return name;
  };
  const std::string text = ir::to_text(prepared.graph, store);
  JsonWriter programs;
  programs.begin_array();
  for (const auto& [leaves, graph] : prepared.programs) {
    programs.begin_object();
    programs.key("leaves");
    programs.begin_array();
    for (const Shape& s : leaves) programs.value(cat(s));
    programs.end_array();
    programs.member("text", ir::to_text(graph, store));
    programs.end_object();
  }
  programs.end_array();
  for (const auto& [name, value] : prepared.weights)
    tensors.push_back(io::to_view(cat(kWeightPrefix, name), value));
  const std::string packed = store_forms(prepared, tensors);
  io::write_safetensors(path, tensors,
                        {{"rlx.format", "program"},
                         {"rlx.version", std::to_string(kArchiveVersion)},
                         {"rlx.machine", machine_text(core.options())},
                         {"rlx.options", options_json(core.options(), core.builder().threads())},
                         {"rlx.text", text},
                         {"rlx.programs", programs.take()},
                         {"rlx.packed", packed}});
}

CompiledGraph load_compiled(const std::string& path) {
  return from_file(io::SafetensorsFile::open(path), path);
}

CompiledGraph load_compiled(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                            const std::string& name, int threads) {
  return from_file(io::SafetensorsFile::parse(bytes, std::move(owner), name), name, threads);
}

std::string AotCache::path_of(const ir::Graph& graph, const NamedLiterals& weights,
                              const CompileOptions& options) const {
  const Hash128 w = weights_hash(weights), g = compile_key(graph, options);
  Hasher h;
  for (const uint64_t part : {w.lo, w.hi, g.lo, g.hi}) h.add(part);
  h.add(machine_text(options));
  return cat(folder_, "/", hex(h.finish()), ".rlxp");
}

bool AotCache::contains(const ir::Graph& graph, const NamedLiterals& weights,
                        const CompileOptions& options) const {
  return path_kind(path_of(graph, weights, options)) == PathKind::file;
}

CompiledGraph AotCache::compile(const ir::Graph& graph, const NamedLiterals& weights,
                                const CompileOptions& options) {
  const std::string path = path_of(graph, weights, options);
  if (path_kind(path) == PathKind::file) {
    try {
      CompiledGraph f = load_compiled(path);
      ++loaded_;
      return f;
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::internal) throw;  // a file that does not fit is made anew
    }
  }
  CompiledGraph f(graph, weights, options);
  ++compiled_;
  make_folders(folder_);
  save_compiled(f, path);
  return f;
}

}  // namespace rlx
