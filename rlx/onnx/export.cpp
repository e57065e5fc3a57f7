#include "rlx/onnx/export.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "rlx/base/file.h"
#include "rlx/base/output_file.h"
#include "rlx/io/onnx/write.h"
#include "rlx/ir/leaves.h"
#include "rlx/onnx/write/lower.h"
#include "rlx/onnx/write/writer.h"

namespace rlx::onnx {
namespace {

constexpr int64_t kMostInside = 1'500'000'000, kSmall = 1024;
constexpr uint64_t kPage = 4096;

void require_exportable(const Program& p, const ExportOptions& options) {
  if (const auto missing = p.missing_weights(); !missing.empty())
    throw invalid("onnx: weight '", missing[0], "' has no value; ", missing.size(), " are missing");
  if (options.opset < 21 || options.opset > 27)
    throw invalid("onnx: operator set ", options.opset, " cannot be written; 21 to 27 can");
}

void add_leaves(Writer& w, const Program& p) {
  const ir::Graph& g = w.graph();
  for (const ir::NodeId id : g.leaves()) {
    const ir::Node& n = g.node(id);
    const std::string& name = ir::leaf_name(n);
    w.set_name(n.result(), name);
    if (n.is<ir::Input>()) {
      w.out().inputs.push_back(w.value_info(name, n.shapes[0]));
    } else {
      w.out().initializers.push_back(tensor_of(p.weights.at(name), name));
    }
  }
}

// Outputs have names of their own, whatever made them.
void add_outputs(Writer& w) {
  const ir::Graph& g = w.graph();
  for (size_t i = 0; i < g.outputs().size(); ++i) {
    const ir::Value v = g.outputs()[i];
    const std::string name = g.output_name(i);
    file::Node n;
    n.op = "Identity";
    n.inputs = {w.name(v)};
    n.outputs = {name};
    if (w.name(v) != name) w.out().nodes.push_back(std::move(n));
    w.out().outputs.push_back(w.value_info(name, g.shape(v)));
  }
}

void add_used(const file::Graph& g, std::set<std::string>& names) {
  for (const file::Node& n : g.nodes) {
    names.insert(n.inputs.begin(), n.inputs.end());
    for (const file::Attribute& a : n.attributes) {
      if (a.graph != nullptr) add_used(*a.graph, names);
    }
  }
  for (const file::ValueInfo& o : g.outputs) names.insert(o.name);
}

// Weights that only served what was computed while it was written are used by nobody.
void drop_unused(file::Graph& g) {
  std::set<std::string> used;
  add_used(g, used);
  std::erase_if(g.initializers, [&](const file::Tensor& t) { return !used.contains(t.name); });
}

file::Model model_of(Writer& w, const Program& p, const ExportOptions& options) {
  file::Model m;
  m.ir_version = 10;
  m.producer = "rlx";
  m.opsets[""] = options.opset;
  w.set_weights(p.weights);
  w.out().name = w.graph().name();
  add_leaves(w, p);
  w.learn_symbols();
  w.write_body();
  add_outputs(w);
  drop_unused(w.out());
  m.graph = std::move(w.out());
  m.functions = std::move(w.functions());
  if (!m.functions.empty()) m.opsets[std::string(kFunctionDomain)] = 1;
  return m;
}

// Moves contents of initializers to a file beside the model.
void move_outside(file::Graph& g, const std::string& path, int64_t from) {
  const std::string data = path + ".data";
  OutputFile out(data);
  for (file::Tensor& t : g.initializers) {
    const int64_t bytes = int64_t(t.raw->size());
    if (bytes < from) continue;
    out.write_zeros((kPage - out.written() % kPage) % kPage);  // so that readers can map each tensor
    t.external =
        file::ExternalData{std::filesystem::path(data).filename().string(), int64_t(out.written()), bytes};
    out.write(*t.raw);
    t.raw.reset();
  }
  out.finish();
}

}  // namespace

WriteNode find_writer(std::string_view op) {
  for (const auto* theme : {&elementwise_writers(), &structure_writers(), &index_writers(),
                            &network_writers(), &convolution_writers(), &control_writers()}) {
    if (const auto at = theme->find(op); at != theme->end()) return at->second;
  }
  return nullptr;
}

bool can_export(std::string_view op) { return find_writer(op) != nullptr || find_lowering(op) != nullptr; }

std::string export_model(const Program& p, const ExportOptions& options) {
  require_exportable(p, options);
  const ir::Graph g = with_counterparts(p.graph);
  Writer w(g, nullptr);
  return io::onnx::model_bytes(model_of(w, p, options));
}

void export_file(const std::string& path, const Program& p, const ExportOptions& options) {
  require_exportable(p, options);
  const ir::Graph g = with_counterparts(p.graph);
  Writer w(g, nullptr);
  file::Model m = model_of(w, p, options);
  int64_t total = 0, largest = 0;
  for (const file::Tensor& t : m.graph.initializers) {
    total += int64_t(t.raw->size());
    largest = std::max(largest, int64_t(t.raw->size()));
  }
  const int64_t from = options.external_above.value_or(total > kMostInside ? kSmall : total + 1);
  if (largest >= from) move_outside(m.graph, path, from);
  write_file(path, std::string_view(io::onnx::model_bytes(m)));
}

}  // namespace rlx::onnx
