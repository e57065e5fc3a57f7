#include "rlx/lang/trace.h"

#include "rlx/ir/leaves.h"
#include "rlx/ops/shape/iota.h"

namespace rlx {

Tensor Tracer::input(const std::string& name, const Dims& dims, DType dtype, const Loc& loc) {
  return wrap(graph_.input(name, Shape(dtype, dims), loc));
}
Tensor Tracer::input_dyn(const std::string& name, const Dims& dims, DType dtype, const Loc& loc) {
  return input(name, dims, dtype, loc);
}
Tensor Tracer::param(const std::string& name, const Dims& dims, DType dtype, const Loc& loc) {
  return wrap(graph_.param(name, Shape(dtype, dims), loc));
}
Tensor Tracer::constant(const Literal& value, const Loc& loc) { return wrap(graph_.constant(value, loc)); }

Tensor Tracer::zeros(const Dims& dims, DType dtype, const Loc& loc) { return full(dims, 0, dtype, loc); }
Tensor Tracer::ones(const Dims& dims, DType dtype, const Loc& loc) { return full(dims, 1, dtype, loc); }
Tensor Tracer::full(const Dims& dims, double value, DType dtype, const Loc& loc) {
  return build_at(graph_, loc, [&]() -> Tensor { return ir::full(graph_, Shape(dtype, dims), value); });
}
Tensor Tracer::arange(Dim n, DType dtype, const Loc& loc) {
  return build_at(graph_, loc, [&]() -> Tensor { return ops::iota(graph_, Shape(dtype, {n}), 0); });
}

Tensor Tracer::matmul(const Tensor& lhs, const Tensor& rhs, const Loc& loc) { return lhs.matmul(rhs, loc); }
Tensor Tracer::layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps,
                          const Loc& loc) {
  return x.layer_norm(gamma, beta, eps, loc);
}
Tensor Tracer::softmax(const Tensor& x, int axis, const Loc& loc) { return x.softmax(axis, loc); }
Tensor Tracer::gather(const Tensor& table, const Tensor& indices, int axis, const Loc& loc) {
  return table.gather(indices, axis, loc);
}

namespace detail {

void set_traced_outputs(Graph& g, const NamedTensors& outputs, const Loc& loc) {
  run_at(loc, [&] {
    Values values;
    std::vector<std::string> names;
    for (const auto& [name, tensor] : outputs) {
      if (tensor.is_empty())
        throw invalid("trace: output ", values.size(), " of '", g.name(), "' is an empty tensor");
      if (&tensor.graph() != &static_cast<ir::Graph&>(g)) {
        throw invalid(
            "trace: output ", values.size(), " of '", g.name(), "' belongs to graph '", tensor.graph().name(),
            "'; what is returned must be of this graph, and leaves the body of a loop or branch as its result");
      }
      values.push_back(tensor);
      names.push_back(name);
    }
    if (values.empty()) throw invalid("trace: '", g.name(), "' returns no tensors");
    g.set_outputs(std::move(values), std::move(names));
  });
}

}  // namespace detail

}  // namespace rlx
