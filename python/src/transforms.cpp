#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/graph.h"
#include "rlx/transform/transform.h"

namespace rlx::python {
namespace {

GraphHandle handle(ir::Graph g) { return {std::make_shared<ir::Graph>(std::move(g))}; }

}  // namespace

void bind_transforms(nb::module_& m) {
  using Names = std::vector<std::string>;
  m.def("grad", [](const GraphHandle& g, const Names& wrt, const std::string& loss, bool with_value) {
    return handle(transform::grad(*g.graph, wrt, {.with_value = with_value, .loss = loss}));
  });
  m.def("vjp", [](const GraphHandle& g, const Names& wrt) {
    return handle(transform::value_and_grad(*g.graph, wrt, {.cotangent_inputs = true}));
  });
  m.def("jvp", [](const GraphHandle& g, const Names& wrt) { return handle(transform::jvp(*g.graph, wrt)); });
  m.def("vmap", [](const GraphHandle& g, std::map<std::string, std::optional<int>> in_axes,
                   std::vector<std::optional<int>> out_axes, int64_t size) {
    return handle(transform::vmap(
        *g.graph, {.in_axes = std::move(in_axes), .out_axes = std::move(out_axes), .size = Dim(size)}));
  });
}

}  // namespace rlx::python
