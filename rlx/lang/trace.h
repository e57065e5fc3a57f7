// Tracing: a function over tensors becomes a graph.
//
//   Graph g = trace("ffn", [](Tracer& t) {
//     const Tensor x = t.input("x", {4, 15, 384}), w = t.param("w", {384, 1536}), b = t.param("b", {1536});
//     return (x.matmul(w) + b).gelu();
//   });
//
// Inputs and params stand in the order in which the function names them (rlx/lang/builders/leaf.h).
#pragma once

#include <concepts>
#include <string>
#include <utility>
#include <vector>

#include "rlx/lang/graph.h"
#include "rlx/lang/tensor.h"
#include "rlx/lang/traced_result.h"

namespace rlx {

/// What a traced function gets to make leaves and constants with.
class Tracer {
 public:
  explicit Tracer(Graph& g) : graph_(g) {}

  /// A tensor given at run time. Extents are numbers or symbols: t.input("x", {Dim::batch(), 384}).
  Tensor input(const std::string& name, const Dims& dims, DType dtype = DType::f32,
               const Loc& loc = Loc::current());
  template <std::same_as<std::vector<int64_t>> Extents>
  Tensor input(const std::string& name, const Extents& dims, DType dtype = DType::f32,
               const Loc& loc = Loc::current()) {
    return input(name, Dims(dims.begin(), dims.end()), dtype, loc);
  }
  /// The same under the name it has where symbolic extents are used.
  Tensor input_dyn(const std::string& name, const Dims& dims, DType dtype = DType::f32,
                   const Loc& loc = Loc::current());
  /// A weight, set once by name.
  Tensor param(const std::string& name, const Dims& dims, DType dtype = DType::f32,
               const Loc& loc = Loc::current());
  /// A tensor that is part of the graph.
  Tensor constant(const Literal& value, const Loc& loc = Loc::current());

  /// A tensor of zeros; extents may be symbols.
  Tensor zeros(const Dims& dims, DType dtype = DType::f32, const Loc& loc = Loc::current());
  /// A tensor of ones.
  Tensor ones(const Dims& dims, DType dtype = DType::f32, const Loc& loc = Loc::current());
  Tensor full(const Dims& dims, double value, DType dtype = DType::f32, const Loc& loc = Loc::current());
  /// 0, 1, ... n - 1.
  Tensor arange(Dim n, DType dtype = DType::i32, const Loc& loc = Loc::current());

  Tensor matmul(const Tensor& lhs, const Tensor& rhs, const Loc& loc = Loc::current());
  Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps = 1e-5,
                    const Loc& loc = Loc::current());
  Tensor softmax(const Tensor& x, int axis = -1, const Loc& loc = Loc::current());
  Tensor gather(const Tensor& table, const Tensor& indices, int axis = 0, const Loc& loc = Loc::current());

  /// The graph being built.
  Graph& graph() { return graph_; }
  /// A value of that graph as a tensor.
  Tensor wrap(Value v) { return ir::Expr{&graph_, v}; }

 private:
  Graph& graph_;
};

namespace detail {
void set_traced_outputs(Graph& g, const NamedTensors& outputs, const Loc& loc);
}

/// The graph of what `fn` returns: a Tensor, several (a list, array, pair or tuple), or NamedTensors. Outputs
/// stand in the order returned, with the names given.
template <class Fn>
Graph trace(const std::string& name, Fn&& fn, const Loc& loc = Loc::current()) {
  static_assert(std::invocable<Fn&, Tracer&>, "trace: the function must take a Tracer& and nothing else");
  if constexpr (std::invocable<Fn&, Tracer&>) {
    using Result = std::invoke_result_t<Fn&, Tracer&>;
    static_assert(
        TracedResult<Result>,
        "trace: the function must return a Tensor, several of them (a list, array, pair or tuple), or "
        "NamedTensors");
    Graph g(name);
    Tracer tracer(g);
    if constexpr (TracedResult<Result>) {
      NamedTensors outputs;
      detail::collect(g, fn(tracer), outputs);
      detail::set_traced_outputs(g, outputs, loc);
    }
    return g;
  } else {
    return Graph(name);
  }
}

}  // namespace rlx
