// Jacobians: one basis vector per element, all at once through vmap.
#include "rlx/ir/clone.h"
#include "rlx/ir/leaves.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/compare.h"
#include "rlx/ops/shape/iota.h"
#include "rlx/ops/shape/reshape.h"
#include "rlx/ops/shape/transpose.h"
#include "rlx/transform/transform.h"
#include "rlx/transform/walk.h"

namespace rlx::transform {
namespace {

// All unit vectors of a shape, stacked: [n, shape...].
Expr unit_vectors(Graph& g, const Shape& s) {
  const Dim n = s.num_elements();
  const Expr row = ops::iota(g, Shape(DType::i32, {n, n}), 0),
             column = ops::iota(g, Shape(DType::i32, {n, n}), 1);
  Dims dims = s.dims();
  dims.insert(dims.begin(), n);
  return ops::reshape(ops::cast(ops::equal(row, column), s.dtype()), dims);
}

void require_one_output(const Graph& g, std::string_view who) {
  if (g.outputs().size() != 1)
    throw invalid(who, ": graph '", g.name(), "' has ", g.outputs().size(), " outputs; it must have one");
}

// `mapped` is a vmapped graph with one more leaf `extra` of unit vectors; binds that leaf to them.
Graph bind_units(const Graph& mapped, const std::string& extra, const Shape& unit, std::string name) {
  Graph out(std::move(name));
  Values leaves;
  for (const NodeId id : mapped.leaves()) {
    const Node& n = mapped.node(id);
    const std::string& leaf = ir::leaf_name(n);
    if (leaf == extra) {
      leaves.push_back(unit_vectors(out, unit));
    } else {
      leaves.push_back(ir::append_leaf_like(out, n));
    }
  }
  const auto names = mapped.output_names();
  out.set_outputs(inline_graph(out, mapped, leaves), names);
  return out;
}

}  // namespace

// Column j of the Jacobian is the tangent along unit vector j: [n, output...] -> [output..., leaf...].
Graph jacfwd(const Graph& g, const std::string& wrt) {
  require_one_output(g, "jacfwd");
  const Shape leaf = g.shape(differentiable_leaf(g, wrt, "jacfwd")), y = g.shape(g.outputs()[0]);
  Graph pushed = jvp(g, {wrt});
  if (pushed.outputs().size() != 2) throw invalid("jacfwd: the output is ", y, " and has no derivative");
  pushed.set_outputs({pushed.outputs()[1]}, {"jacobian"});
  const Graph mapped = vmap(pushed, {.in_axes = {{"tangent_" + wrt, 0}}, .size = leaf.num_elements()});
  Graph out = bind_units(mapped, "tangent_" + wrt, leaf, g.name() + "_jacfwd");
  const Expr columns{&out, out.outputs()[0]};
  Dims dims = y.dims();
  dims.insert(dims.end(), leaf.dims().begin(), leaf.dims().end());
  out.set_outputs({ops::reshape(ops::move_axis(columns, 0, -1), dims)}, {"jacobian"});
  out.erase_dead();
  return out;
}

// Row i is the gradient of output element i: [m, leaf...] -> [output..., leaf...].
Graph jacrev(const Graph& g, const std::string& wrt) {
  require_one_output(g, "jacrev");
  const Shape leaf = g.shape(differentiable_leaf(g, wrt, "jacrev")), y = g.shape(g.outputs()[0]);
  const Graph pulled = grad(g, {wrt}, {.cotangent_inputs = true});
  const Graph mapped = vmap(pulled, {.in_axes = {{"d_output", 0}}, .size = y.num_elements()});
  Graph out = bind_units(mapped, "d_output", y, g.name() + "_jacrev");
  Dims dims = y.dims();
  dims.insert(dims.end(), leaf.dims().begin(), leaf.dims().end());
  out.set_outputs({ops::reshape({&out, out.outputs()[0]}, dims)}, {"jacobian"});
  out.erase_dead();
  return out;
}

Graph hessian(const Graph& g, const std::string& wrt) {
  require_one_output(g, "hessian");
  if (g.shape(g.outputs()[0]).rank() != 0) {
    throw invalid("hessian: the output is ", g.shape(g.outputs()[0]), "; it must be a scalar");
  }
  Graph out = jacfwd(grad(g, {wrt}), wrt);
  out.set_name(g.name() + "_hessian");
  out.set_outputs({out.outputs()[0]}, {"hessian"});
  return out;
}

}  // namespace rlx::transform
