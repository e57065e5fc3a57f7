// Graphs made from the samples of operators: one node, its operands as inputs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "rlx/ir/graph.h"
#include "rlx/ir/interpreter.h"
#include "rlx/ir/sample.h"

namespace rlx::test {

inline bool is_narrow_float(DType t) { return is_float(t) && !is_storage_only(t); }

/// A graph with every real float type in it replaced: leaves, constants, casts, bodies.
inline ir::Graph retype(const ir::Graph& g, DType to);

/// Attributes with every real float type in them replaced.
inline std::shared_ptr<void> retype_attrs(const ir::OpDef& op, const void* attrs, DType to) {
  std::shared_ptr<void> out = op.copy_attrs(attrs);
  for (const ir::FieldInfo& f : op.fields) {
    ir::AttrValue v = f.get(out.get());
    if (auto* t = std::get_if<DType>(&v); t && is_narrow_float(*t)) *t = to;
    if (auto* s = std::get_if<Shape>(&v); s && is_narrow_float(s->dtype())) *s = s->with_dtype(to);
    if (auto* l = std::get_if<Literal>(&v); l && is_narrow_float(l->dtype())) *l = l->cast(to);
    if (auto* b = std::get_if<ir::GraphRef>(&v); b && *b)
      *b = std::make_shared<const ir::Graph>(retype(**b, to));
    f.set(out.get(), v);
  }
  return out;
}

inline ir::Graph retype(const ir::Graph& g, DType to) {
  ir::Graph out(g.name());
  std::map<ir::NodeId, ir::NodeId> ids;
  const auto moved = [&](ir::Value v) { return out.value(ids.at(v.node), v.index); };
  for (const ir::Node* n : g.nodes()) {
    ir::Values operands;
    for (const ir::Value v : n->inputs) operands.push_back(moved(v));
    ids[n->id] = out.append(*n->op, retype_attrs(*n->op, n->attrs.get(), to), operands);
  }
  ir::Values outputs;
  for (const ir::Value v : g.outputs()) outputs.push_back(moved(v));
  out.set_outputs(outputs);
  return out;
}

struct SampleCase {
  ir::Graph graph;
  Literals leaves;  // values for graph.leaves()
};

/// The graph of sample `index` of an operator. With `floats`, real floats take that dtype.
inline SampleCase make_case(const ir::OpDef& op, size_t index, std::optional<DType> floats = std::nullopt) {
  const ir::Sample sample = op.samples()[index];
  SampleCase out{ir::Graph(std::string(op.name)), {}};
  ir::Values operands;
  for (size_t i = 0; i < sample.inputs.size(); ++i) {
    out.leaves.push_back(ir::sample_literal(sample.inputs[i], 1000 * index + i, floats));
    operands.push_back(out.graph.input(cat("x", i), out.leaves.back().shape()));
  }
  const ir::AttrsRef attrs =
      floats ? ir::AttrsRef(retype_attrs(op, sample.attrs.get(), *floats)) : sample.attrs;
  const ir::NodeId id = out.graph.append(op, attrs, operands);
  ir::Values outputs;
  for (uint32_t r = 0; r < out.graph.node(id).shapes.size(); ++r) outputs.push_back(out.graph.value(id, r));
  out.graph.set_outputs(outputs);
  return out;
}

inline std::vector<const ir::OpDef*> ops_of(const ir::OpTable& table) {
  std::vector<const ir::OpDef*> out;
  for (const auto& [name, def] : table.all()) out.push_back(def);
  return out;
}

struct OpName {
  template <class T>
  std::string operator()(const T& info) const {
    return std::string(info.param->name);
  }
};

}  // namespace rlx::test
