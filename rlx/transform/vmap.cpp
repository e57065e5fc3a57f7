#include "rlx/ir/clone.h"
#include "rlx/ir/leaves.h"
#include "rlx/ops/shape/transpose.h"
#include "rlx/transform/batch.h"
#include "rlx/transform/transform.h"

namespace rlx::transform {

Graph vmap(const Graph& g, const VmapOptions& options) {
  if (!options.size)
    throw invalid(
        "vmap: the number of examples is not given; set size to a number or a symbol, Dim::batch()");
  const Dim size = *options.size;
  Graph out(g.name() + "_vmap");
  std::vector<BatchedValue> leaves;
  for (const auto& [name, axis] : options.in_axes) leaf_named(g, name, "vmap");
  for (const NodeId id : g.leaves()) {
    const Node& n = g.node(id);
    const std::string& name = ir::leaf_name(n);
    const auto it = options.in_axes.find(name);
    const bool batched = it != options.in_axes.end() && it->second.has_value();
    Shape shape = n.shapes[0];
    int axis = 0;
    if (batched) {
      axis = *it->second;
      if (!normalize_axis(axis, shape.rank() + 1)) {
        throw invalid("vmap: axis ", *it->second, " for '", name,
                      "' is out of range; with the batch it has rank ", shape.rank() + 1);
      }
      Dims dims = shape.dims();
      dims.insert(dims.begin() + axis, size);
      shape = shape.with_dims(std::move(dims));
    }
    Expr t{&out, ir::append_leaf_like(out, n, shape)};
    if (batched) t = ops::move_axis(t, axis, 0);
    leaves.push_back({t, batched});
  }
  const auto results = batch_graph(out, g, leaves, size);
  const auto names = g.output_names();
  if (options.out_axes.size() != 1 && options.out_axes.size() != results.size()) {
    throw invalid("vmap: ", options.out_axes.size(), " out_axes for ", results.size(), " outputs");
  }
  Values outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    const auto wanted = options.out_axes[options.out_axes.size() == 1 ? 0 : i];
    if (!wanted) {
      if (results[i].batched) {
        throw invalid("vmap: output '", names[i], "' depends on the batch; its out axis cannot be none");
      }
      outputs.push_back(results[i].tensor);
      continue;
    }
    const Expr t = with_batch(results[i], size);
    int axis = *wanted;
    if (!normalize_axis(axis, t.rank())) {
      throw invalid("vmap: out axis ", *wanted, " for '", names[i],
                    "' is out of range; with the batch it has rank ", t.rank());
    }
    outputs.push_back(ops::move_axis(t, 0, axis));
  }
  out.set_outputs(outputs, names);
  out.erase_dead();
  return out;
}

}  // namespace rlx::transform
