#include "python/src/graph.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/array.h"
#include "python/src/attributes.h"
#include "python/src/dtypes.h"
#include "rlx/ir/call.h"
#include "rlx/ir/inline.h"
#include "rlx/ir/interpreter.h"
#include "rlx/ir/sample.h"
#include "rlx/ir/text.h"
#include "rlx/lang/picture.h"
#include "rlx/ops/table.h"

namespace rlx::python {
namespace {

// The line of Python that makes a node.
ir::OriginRef origin_of(const std::string& file, uint32_t line) {
  auto origin = std::make_shared<ir::Origin>();
  auto owned = std::make_shared<const std::string>(file);
  origin->file = owned->c_str();
  origin->file_owner = owned;
  origin->line = line;
  return origin;
}

nb::list tracers_of(const std::shared_ptr<ir::Graph>& g, std::span<const ir::Value> values) {
  nb::list out;
  for (const ir::Value v : values) out.append(nb::cast(Tracer{g, v}));
  return out;
}

ir::Values values_of(nb::handle tracers) {
  ir::Values out;
  for (const nb::handle h : nb::iter(tracers)) out.push_back(nb::cast<Tracer&>(h).value);
  return out;
}

nb::list apply(GraphHandle& g, const std::string& name, nb::handle operands, nb::dict keywords,
               const std::string& file, uint32_t line) {
  const ir::OpDef& op = ops::table().at(name);
  const ir::OriginScope scope(*g.graph, line == 0 ? nullptr : origin_of(file, line));
  const ir::NodeId id = g.graph->append(op, attributes_from(op, keywords), values_of(operands));
  ir::Values results;
  for (uint32_t i = 0; i < g.graph->node(id).shapes.size(); ++i) results.push_back(g.graph->value(id, i));
  return tracers_of(g.graph, results);
}

// Operators as dictionaries, from which the Python functions are made.
nb::list describe_operators() {
  nb::list out;
  for (const auto& [name, op] : ops::table().all()) {
    if (op->traits.leaf) continue;
    nb::dict d;
    d["name"] = name;
    d["summary"] = std::string(op->summary);
    d["doc"] = std::string(op->doc);
    d["operands"] = op->operands;
    d["results"] = op->results;
    d["min_operands"] = op->min_operands;
    d["max_operands"] = op->max_operands;
    nb::list fields;
    for (const ir::FieldInfo& f : op->fields) {
      std::vector<std::string> choices(f.choices.begin(), f.choices.end());
      fields.append(nb::make_tuple(std::string(f.name), std::string(f.doc), int(f.kind), f.optional, choices,
                                   object_of(f.default_value)));
    }
    d["fields"] = fields;
    out.append(d);
  }
  return out;
}

// The cases of the conformance run: (operands, keywords, results by the interpreter).
nb::list samples_of(const std::string& name) {
  const ir::OpDef& op = ops::table().at(name);
  nb::list out;
  const auto samples = op.samples ? op.samples() : std::vector<ir::Sample>{};
  for (size_t i = 0; i < samples.size(); ++i) {
    ir::Graph g(name);
    ir::Values operands;
    Literals values;
    nb::list arrays, expected;
    nb::dict keywords;
    for (size_t k = 0; k < samples[i].inputs.size(); ++k) {
      values.push_back(ir::sample_literal(samples[i].inputs[k], 1000 * i + k));
      operands.push_back(g.input(cat("x", k), values.back().shape()));
      arrays.append(nb::cast(Array{values.back()}));
    }
    const ir::NodeId id = g.append(op, samples[i].attrs, operands);
    ir::Values results;
    for (uint32_t r = 0; r < g.node(id).shapes.size(); ++r) results.push_back(g.value(id, r));
    g.set_outputs(results);
    for (const Literal& l : ir::interpret(g, values)) expected.append(nb::cast(Array{l}));
    for (const ir::FieldInfo& f : op.fields) {
      const std::shared_ptr<void> attrs = op.copy_attrs(samples[i].attrs.get());
      keywords[std::string(f.name).c_str()] = object_of(f.get(attrs.get()));
    }
    out.append(nb::make_tuple(arrays, keywords, expected));
  }
  return out;
}

}  // namespace

void bind_graph(nb::module_& m) {
  nb::class_<Tracer>(m, "Tracer", nb::dynamic_attr(), "A tensor of a function that is being traced.")
      .def_prop_ro("shape", [](const Tracer& t) { return tuple_of(t.graph->shape(t.value)); })
      .def_prop_ro("dtype", [](const Tracer& t) { return cat(t.graph->shape(t.value).dtype()); })
      .def_prop_ro("ndim", [](const Tracer& t) { return t.graph->shape(t.value).rank(); })
      .def_prop_ro("_graph", [](const Tracer& t) { return GraphHandle{t.graph}; });
  nb::class_<GraphHandle>(m, "Graph", "A tensor program.")
      .def(
          "__init__",
          [](GraphHandle* self, const std::string& name) {
            new (self) GraphHandle{std::make_shared<ir::Graph>(name)};
          },
          nb::arg("name") = "main")
      .def("_id", [](const GraphHandle& g) { return uintptr_t(g.graph.get()); })
      .def("input",
           [](GraphHandle& g, const std::string& name, const std::string& dtype, nb::handle dims) {
             return Tracer{g.graph, g.graph->input(name, Shape(dtype_named(dtype), dims_of(dims)))};
           })
      .def("param",
           [](GraphHandle& g, const std::string& name, const std::string& dtype, nb::handle dims) {
             return Tracer{g.graph, g.graph->param(name, Shape(dtype_named(dtype), dims_of(dims)))};
           })
      .def("constant",
           [](GraphHandle& g, const Array& a) { return Tracer{g.graph, g.graph->constant(a.value)}; })
      .def("apply", &apply)
      .def("inline",
           [](GraphHandle& g, const GraphHandle& other, nb::handle leaves) {
             return tracers_of(g.graph, ir::inline_graph(*g.graph, *other.graph, values_of(leaves)));
           })
      .def("set_outputs",
           [](GraphHandle& g, nb::handle values, std::vector<std::string> names) {
             g.graph->set_outputs(values_of(values), std::move(names));
           })
      .def(
          "bind_to",
          [](const GraphHandle& g, nb::list shapes) {
            if (!g.graph->has_dynamic_dims()) return g;
            std::vector<Shape> types;
            const auto leaves = g.graph->leaves();
            for (size_t i = 0; i < leaves.size(); ++i)
              types.push_back(g.graph->node(leaves[i]).shapes[0].with_dims(dims_of(shapes[i])));
            return GraphHandle{std::make_shared<ir::Graph>(g.graph->bind(ir::solve_sizes(*g.graph, types)))};
          },
          "The graph for inputs of these shapes.")
      .def("erase_dead", [](GraphHandle& g) { return g.graph->erase_dead(); })
      .def_prop_ro("name", [](const GraphHandle& g) { return g.graph->name(); })
      .def_prop_ro("inputs",
                   [](const GraphHandle& g) {
                     nb::list out;
                     for (const ir::NodeId id : g.graph->leaves()) {
                       const ir::Node& n = g.graph->node(id);
                       out.append(nb::make_tuple(n.name, cat(n.shapes[0].dtype()), tuple_of(n.shapes[0])));
                     }
                     return out;
                   })
      .def_prop_ro("outputs",
                   [](const GraphHandle& g) {
                     nb::list out;
                     for (size_t i = 0; i < g.graph->outputs().size(); ++i) {
                       const Shape& s = g.graph->shape(g.graph->outputs()[i]);
                       out.append(nb::make_tuple(g.graph->output_name(i), cat(s.dtype()), tuple_of(s)));
                     }
                     return out;
                   })
      .def("__len__", [](const GraphHandle& g) { return g.graph->len(); })
      .def("__eq__", [](const GraphHandle& a, const GraphHandle& b) { return *a.graph == *b.graph; })
      .def(
          "text", [](const GraphHandle& g) { return cat(*g.graph); }, "The text form; parse reads it back.")
      .def("__str__", [](const GraphHandle& g) { return cat(*g.graph); })
      .def("__repr__",
           [](const GraphHandle& g) {
             return cat("<rlx.Graph @", g.graph->name(), ": ", g.graph->len(), " nodes>");
           })
      .def(
          "svg", [](const GraphHandle& g) { return to_svg(*g.graph); }, "A picture, as an SVG document.")
      .def("_repr_svg_", [](const GraphHandle& g) { return to_svg(*g.graph); })
      .def_static("parse",
                  [](const std::string& text) {
                    return GraphHandle{std::make_shared<ir::Graph>(ir::parse_graph(text, ops::table()))};
                  })
      .def("verify", [](const GraphHandle& g) {
        std::vector<std::string> out;
        for (const ir::VerifyError& e : g.graph->verify()) out.push_back(cat(e));
        return out;
      });
  m.def("describe_operators", &describe_operators);
  m.def("samples_of", &samples_of);
}

}  // namespace rlx::python
