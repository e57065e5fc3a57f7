#include "rlx/lang/trace.h"

namespace rlx {

Tensor Tracer::input(const std::string& name, const std::vector<int64_t>& dims, DType dtype, const Loc& loc) {
  return input_dyn(name, Dims(dims.begin(), dims.end()), dtype, loc);
}

Tensor Tracer::input_dyn(const std::string& name, const Dims& dims, DType dtype, const Loc& loc) {
  return wrap(graph_.input(name, Shape(dtype, dims), loc));
}

Tensor Tracer::param(const std::string& name, const Dims& dims, DType dtype, const Loc& loc) {
  return wrap(graph_.param(name, Shape(dtype, dims), loc));
}

Tensor Tracer::constant(const Literal& value, const Loc& loc) { return wrap(graph_.constant(value, loc)); }

Tensor Tracer::matmul(const Tensor& lhs, const Tensor& rhs, const Loc& loc) { return lhs.matmul(rhs, loc); }

Tensor Tracer::layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps,
                          const Loc& loc) {
  return x.layer_norm(gamma, beta, eps, loc);
}
Tensor Tracer::softmax(const Tensor& x, int axis, const Loc& loc) { return x.softmax(axis, loc); }
Tensor Tracer::gather(const Tensor& table, const Tensor& indices, int axis, const Loc& loc) {
  return table.gather(indices, axis, loc);
}

Graph trace(const std::string& name, const std::function<NamedTensors(Tracer&)>& fn) {
  Graph g(name);
  Tracer tracer(g);
  Values outputs;
  std::vector<std::string> names;
  for (const auto& [output, tensor] : fn(tracer)) {
    if (!tensor) throw invalid("trace: output ", outputs.size(), " of '", name, "' is an empty tensor");
    outputs.push_back(tensor);
    names.push_back(output);
  }
  g.set_outputs(std::move(outputs), std::move(names));
  return g;
}

}  // namespace rlx
