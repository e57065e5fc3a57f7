// Tracing: a function over tensors becomes a graph.
//
//   Graph g = trace("ffn", [](Tracer& t) {
//     const Tensor x = t.input("x", {4, 15, 384}), w = t.param("w", {384, 1536}), b = t.param("b", {1536});
//     return (x.matmul(w) + b).gelu();
//   });
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "rlx/lang/graph.h"
#include "rlx/lang/tensor.h"

namespace rlx {

class Tracer {
 public:
  explicit Tracer(Graph& g) : graph_(g) {}

  Tensor input(const std::string& name, const std::vector<int64_t>& dims, DType dtype = DType::f32,
               const Loc& loc = Loc::current());
  /// With symbolic extents: t.input_dyn("x", {Dim::batch(), 384}).
  Tensor input_dyn(const std::string& name, const Dims& dims, DType dtype = DType::f32,
                   const Loc& loc = Loc::current());
  Tensor param(const std::string& name, const Dims& dims, DType dtype = DType::f32,
               const Loc& loc = Loc::current());
  Tensor constant(const Literal& value, const Loc& loc = Loc::current());

  Tensor matmul(const Tensor& lhs, const Tensor& rhs, const Loc& loc = Loc::current());
  Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps = 1e-5,
                    const Loc& loc = Loc::current());
  Tensor softmax(const Tensor& x, int axis = -1, const Loc& loc = Loc::current());
  Tensor gather(const Tensor& table, const Tensor& indices, int axis = 0, const Loc& loc = Loc::current());

  /// The graph being built, for what has no method here.
  Graph& graph() { return graph_; }
  Tensor wrap(Value v) { return ir::Expr{&graph_, v}; }

 private:
  Graph& graph_;
};

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// Outputs in the order returned; names where given.
Graph trace(const std::string& name, const std::function<NamedTensors(Tracer&)>& fn);

template <class Fn>
  requires std::same_as<std::invoke_result_t<Fn, Tracer&>, Tensor>
Graph trace(const std::string& name, Fn fn) {
  return trace(name, std::function([&fn](Tracer& t) { return NamedTensors{{"", fn(t)}}; }));
}

template <class Fn>
  requires std::same_as<std::invoke_result_t<Fn, Tracer&>, Tensors>
Graph trace(const std::string& name, Fn fn) {
  return trace(name, std::function([&fn](Tracer& t) {
                 NamedTensors out;
                 for (const Tensor& y : fn(t)) out.emplace_back("", y);
                 return out;
               }));
}

}  // namespace rlx
