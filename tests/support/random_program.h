// Random graphs of smooth operators for the transforms: elementwise functions, reductions, products, gathers,
// slices, loops and branches on small f64 tensors. Some loops and branches are decided by the data, with bodies that
// have no value, or refuse to run, outside of the case they are for. The same seed gives the same program everywhere.
#pragma once

#include <array>

#include "rlx/base/philox.h"
#include "rlx/ops/all.h"
#include "tests/support/samples.h"

namespace rlx::test {

class RandomProgram {
 public:
  /// With `symbols`, every axis of an input is a symbol of its own; sizes() has their values.
  RandomProgram(uint64_t seed, int nodes, bool symbols = false) : seed_(seed), g_(cat("random_", seed)) {
    for (int i = 0; i < 3; ++i) {
      Dims dims = kShapes[size_t(i)];
      for (size_t axis = 0; symbols && axis < dims.size(); ++axis) {
        const std::string name = cat("n", i, axis);
        sizes_.set(name, dims[axis].value());
        dims[axis] = Dim::symbol(name);
      }
      pool_.push_back({&g_, g_.input(cat("x", i), Shape(DType::f64, dims))});
    }
    while (int(g_.len()) < nodes) pool_.push_back(step());
    g_.set_outputs({pool_.back().value, pool_[pool_.size() - 2].value});
  }

  const ir::Graph& graph() const { return g_; }
  Literals leaves() const {
    Literals out;
    for (size_t i = 0; i < 3; ++i)
      out.push_back(ir::sample_literal(cat(Shape(DType::f64, kShapes[i])), seed_ * 7 + i));
    return out;
  }
  /// The program cut after its first `count` values: for making a failure small.
  ir::Graph prefix(size_t count) const {
    ir::Graph out = g_;
    out.set_outputs({pool_[count - 1].value});
    out.erase_dead();
    return out;
  }
  size_t values() const { return pool_.size(); }
  const DimBinding& sizes() const { return sizes_; }

 private:
  using T = ir::Expr;
  static inline const Dims kShapes[3] = {{3}, {2, 3}, {3, 3}};

  uint32_t draw(uint32_t limit) {
    if (next_ == 4) block_ = philox_block(seed_, 0xBEEF, index_++), next_ = 0;
    return block_[next_++] % limit;
  }
  T pick() { return pool_[draw(uint32_t(pool_.size()))]; }

  T step() {
    using namespace ops;
    const T x = pick();
    switch (draw(15)) {
      case 0:
        return sin(x);
      case 1:
        return tanh(x);
      case 2:
        return sigmoid(x) * 2.0;
      case 3:
        return exp(tanh(x));
      case 4:
        return combine(x, pick());
      case 5:
        return combine(x, pick());
      case 6:
        return x.rank() > 0 ? reduce(x, draw(2) ? ReduceOp::sum : ReduceOp::mean,
                                     {int(draw(uint32_t(x.rank())))}, draw(2) == 0)
                            : cos(x);
      case 7:
        return product(x);
      case 8:
        return x.rank() > 0 ? softmax(x, int(draw(uint32_t(x.rank())))) : x * x;
      case 9:
        return rows(x);
      case 10:
        return loop(x);
      case 11:
        return branch_by_data(x);
      case 12:
        return loop_by_data(x);
      case 13:
        return counted_loop(x);
      default:
        return branch(x);
    }
  }

  int64_t size(Dim d) const { return bind(d, sizes_).value(); }
  bool broadcasts(T a, T b) const {
    for (int i = 1; i <= std::min(a.rank(), b.rank()); ++i) {
      const Dim x = a.dim(-i), y = b.dim(-i);
      if (x != Dim(1) && y != Dim(1) && size(x) != size(y)) return false;
    }
    return true;
  }
  // Operands that do not broadcast are reduced to scalars first.
  T combine(T a, T b) {
    using namespace ops;
    const bool times = draw(2);
    if (!broadcasts(a, b)) return reduce_mean(a, {}) + reduce_mean(b, {});
    return times ? a * b : a - b;
  }
  T product(T x) {
    using namespace ops;
    if (x.rank() < 2) return x * 0.5;
    return tanh(matmul(x, swap_last(x)));
  }
  T rows(T x) {
    using namespace ops;
    if (x.rank() == 0 || x.dim(0) == Dim(0)) return sin(x);
    const int64_t n = size(x.dim(0));
    if (draw(2)) return narrow(x, 0, int64_t(draw(uint32_t(n))), 1);
    const T ids{&g_,
                g_.constant(Literal::integers(Shape(DType::i32, {2}),
                                              std::vector<int64_t>{draw(uint32_t(n)), draw(uint32_t(n))}))};
    return gather(x, ids, 0);
  }
  T loop(T x) {
    using namespace ops;
    ir::Graph body("step");
    const T c{&body, body.input("c", x.shape())}, k{&body, body.input("k", x.shape())};
    body.set_outputs({sin(c * tanh(k)) + c * 0.5});  // bounded slopes: differences stay exact
    return scan_all(g_, {x}, {x}, {}, std::move(body), int64_t(1 + draw(4)))[0];
  }
  T branch(T x) {
    using namespace ops;
    ir::Graph yes("yes"), no("no");
    const T a{&yes, yes.input("a", x.shape())}, b{&no, no.input("b", x.shape())};
    yes.set_outputs({tanh(a) * a});
    no.set_outputs({sin(b)});
    const T p = full(g_, Shape::scalar(DType::bool_), draw(2));
    return if_else(p, {x}, std::move(yes), std::move(no))[0];
  }

  // log and solve are for the sides on which they have a value.
  T branch_by_data(T x) {
    using namespace ops;
    const auto level = [](T t) { return reduce_mean(sin(t), {}) - 0.05; };
    ir::Graph yes("positive"), no("negative");
    const T a{&yes, yes.input("a", x.shape())}, b{&no, no.input("b", x.shape())};
    yes.set_outputs({tanh(a) * log(level(a) + 0.2)});
    const T one = full(no, Shape(DType::f64, {1, 1}), 1), depth = reshape(-level(b), {1, 1});
    const T matrix =
        clamp(depth, 0, 9) + 0.5 * cast(greater(depth, 0.0 * depth), DType::f64);  // 0 if positive
    no.set_outputs({sin(b) * (0.01 * reshape(batched_dense_solve(matrix, one), {}))});
    const T p = greater(level(x), full(g_, Shape::scalar(DType::f64), 0));
    return if_else(p, {x}, std::move(yes), std::move(no))[0];
  }
  // Steps until a counter that starts somewhere ends, or the value is small; each reads a table at the counter.
  T loop_by_data(T x) {
    using namespace ops;
    const Shape count = Shape::scalar(DType::i32), table_type(DType::f64, {4});
    ir::Graph cond("more"), body("step");
    const auto leaves = [&](ir::Graph& g) {
      return std::array{T{&g, g.input("i", count)}, T{&g, g.input("z", x.shape())},
                        T{&g, g.input("t", table_type)}};
    };
    {
      const auto [i, z, t] = leaves(cond);
      const T large = greater(reduce_mean(z * z, {}), full(cond, Shape::scalar(DType::f64), 0.01));
      cond.set_outputs({logical_and(less(i, scalar_like(i, 4)), large)});
    }
    {
      const auto [i, z, t] = leaves(body);
      body.set_outputs({i + scalar_like(i, 1), sin(z) * gather(t, i, 0)});
    }
    const T start = cast(clamp(reduce_mean(x, {}) * 3.0 + 2.0, 0, 5), DType::i32);
    const T table{&g_, g_.constant(Literal::of<double>({4}, {0.9, -0.7, 1.1, 0.5}))};
    return while_loop(g_, {start, x}, {table}, std::move(cond), std::move(body), 5)[1];
  }
  // A counter beside the value, and per-step outputs.
  T counted_loop(T x) {
    using namespace ops;
    const Shape count = Shape::scalar(DType::i32);
    ir::Graph body("count");
    const T i{&body, body.input("i", count)}, z{&body, body.input("z", x.shape())};
    const T next = sin(z) * (0.5 + 0.25 * cast(i, DType::f64));
    body.set_outputs({i + scalar_like(i, 1), next, next * z});
    const auto out = scan_all(g_, {full(g_, count, 0), x}, {}, {}, std::move(body), int64_t(1 + draw(3)));
    return draw(2) ? out[1] : reduce_sum(out[2], {0});
  }

  uint64_t seed_, index_ = 0;
  PhiloxBlock block_{};
  size_t next_ = 4;
  ir::Graph g_;
  DimBinding sizes_;
  std::vector<T> pool_;
};

}  // namespace rlx::test
