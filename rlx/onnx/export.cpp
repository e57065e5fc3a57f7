#include "rlx/onnx/export.h"

#include "rlx/io/onnx/write.h"
#include "rlx/ir/leaves.h"
#include "rlx/onnx/write/writer.h"
#include "rlx/transform/walk.h"

namespace rlx::onnx {

WriteNode find_writer(std::string_view op) {
  for (const auto* theme :
       {&elementwise_writers(), &structure_writers(), &network_writers(), &control_writers()}) {
    if (const auto at = theme->find(op); at != theme->end()) return at->second;
  }
  return nullptr;
}

ir::Graph with_counterparts(const ir::Graph& g) {
  ir::Graph out = g;
  transform::expand_composites(out, [](const ir::Node& n) { return find_writer(n.op->name) == nullptr; });
  return out;
}

bool can_export(std::string_view op) { return find_writer(op) != nullptr; }

std::string export_model(const Program& p, const ExportOptions& options) {
  if (const auto missing = p.missing_weights(); !missing.empty())
    throw invalid("onnx: weight '", missing[0], "' has no value; ", missing.size(), " are missing");
  if (options.opset < 21 || options.opset > 27)
    throw invalid("onnx: operator set ", options.opset, " cannot be written; 21 to 27 can");
  const ir::Graph g = with_counterparts(p.graph);
  Writer w(g, nullptr);
  file::Model m;
  m.ir_version = 10;
  m.producer = "rlx";
  m.opsets[""] = options.opset;
  w.out().name = g.name();
  for (const ir::NodeId id : g.leaves()) {
    const ir::Node& n = g.node(id);
    const std::string& name = ir::leaf_name(n);
    w.set_name(n.result(), name);
    if (n.is<ir::Input>()) {
      w.out().inputs.push_back(w.value_info(name, n.shapes[0]));
      continue;
    }
    const Literal& value = p.weights.at(name);
    file::Tensor t;
    t.name = name;
    t.type = int32_t(file::element_of(value.dtype()));
    for (const Dim d : value.shape().dims()) t.dims.push_back(d.value());
    t.raw = value.bytes();
    w.out().initializers.push_back(std::move(t));
  }
  w.learn_symbols();
  w.write_body();
  for (size_t i = 0; i < g.outputs().size(); ++i) {
    const ir::Value v = g.outputs()[i];
    const std::string name = g.output_name(i);
    file::Node n;  // outputs have names of their own, whatever made them
    n.op = "Identity";
    n.inputs = {w.name(v)};
    n.outputs = {name};
    if (w.name(v) != name) w.out().nodes.push_back(std::move(n));
    w.out().outputs.push_back(w.value_info(name, g.shape(v)));
  }
  m.graph = std::move(w.out());
  return io::onnx::model_bytes(m);
}

}  // namespace rlx::onnx
