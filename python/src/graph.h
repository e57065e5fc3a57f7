// Graphs and the values of a graph that is being traced.
#pragma once

#include <nanobind/nanobind.h>

#include "rlx/lang/graph.h"

namespace rlx::python {

namespace nb = nanobind;

struct GraphHandle {
  std::shared_ptr<ir::Graph> graph;
};

/// A value of a graph that is being built.
struct Tracer {
  std::shared_ptr<ir::Graph> graph;
  ir::Value value;
};

void bind_graph(nb::module_&);
void bind_transforms(nb::module_&);
void bind_functions(nb::module_&);
void bind_models(nb::module_&);

}  // namespace rlx::python
