// Random networks in f32 with weights, on axes longer and shorter than a vector: products with bias and activation, norms,
// softmax, attention, residual sums, joins and slices, reductions, views. Operators have bounded slopes, so that the
// rounding of one order of summation and of another stay near each other. The same seed gives the same network everywhere.
#pragma once

#include "rlx/base/philox.h"
#include "rlx/ops/all.h"
#include "tests/support/samples.h"

namespace rlx::test {

class RandomNetwork {
 public:
  RandomNetwork(uint64_t seed, int values) : seed_(seed), g_(cat("network_", seed)) {
    const int64_t rows[] = {1, 2, 7, 16, 33}, widths[] = {1, 3, 8, 24, 40};
    const int64_t batch = 1 + draw(3), r = rows[draw(5)], w = widths[draw(5)];
    for (const char* name : {"x", "y"}) {
      const Shape shape(DType::f32, {batch, r, w});
      inputs_.emplace(name, ir::sample_literal(cat(shape), seed * 5 + inputs_.size()));
      pool_.push_back({&g_, g_.input(name, shape)});
    }
    while (int(pool_.size()) < values) pool_.push_back(step());
    g_.set_outputs({pool_.back().value, pool_[pool_.size() - 3].value});
  }

  const ir::Graph& graph() const { return g_; }
  const ir::NamedLiterals& inputs() const { return inputs_; }
  const ir::NamedLiterals& weights() const { return weights_; }

 private:
  using T = ir::Expr;

  uint32_t draw(uint32_t limit) {
    if (next_ == 4) block_ = philox_block(seed_, 0xACED, index_++), next_ = 0;
    return block_[next_++] % limit;
  }
  T pick() { return pool_[draw(uint32_t(pool_.size()))]; }
  int64_t size(T x, int axis) const { return x.dim(axis).value(); }

  T weight(Dims dims) {
    const std::string name = cat("w", weights_.size());
    const Shape shape(DType::f32, std::move(dims));
    weights_.emplace(name, ir::sample_literal(cat(shape), seed_ * 31 + weights_.size()));
    return {&g_, g_.param(name, shape)};
  }

  T step() {
    using namespace ops;
    const T x = pick();
    switch (draw(14)) {
      case 0:
        return curve(x);
      case 1:
        return curve(linear(x, 1 + int64_t(draw(48))));
      case 2:
        return add(linear(x, size(x, 2)), x);
      case 3:  // products of one input
        return tanh(mul(silu(linear(x, 24)), linear(x, 24)));
      case 4:
        return combine(x, pick());
      case 5:
        return combine(x, pick());
      case 6:
        return layer_norm(combine(x, pick()), weight({x.dim(2)}), weight({x.dim(2)}), -1, 0.1);
      case 7:
        return rms_norm(x, weight({x.dim(2)}), weight({x.dim(2)}), -1, 0.1);
      case 8:
        return softmax(x, int(draw(3)));
      case 9:
        return sub(x, reduce(x, draw(2) ? ReduceOp::mean : ReduceOp::max, {int(draw(3))}, true));
      case 10:
        return joined(x);
      case 11:
        return piece(x);
      case 12:
        return draw(2) ? swap_last(x) : flip(x, {int(draw(3))});
      default:
        return size(x, 2) % 8 == 0 ? attended(x) : curve(x);
    }
  }

  T curve(T x) {
    using namespace ops;
    const Activation kinds[] = {Activation::tanh,    Activation::gelu, Activation::silu,
                                Activation::sigmoid, Activation::relu, Activation::sin};
    return activation(kinds[draw(6)], x);
  }
  // Rows keep their length: the weights are in -1..1.
  T linear(T x, int64_t out) {
    using namespace ops;
    const T y = matmul(x, weight({x.dim(2), out})) * (1.0 / std::sqrt(double(size(x, 2))));
    const Dims biases[] = {{out}, {1, out}, {1}, {}};
    return draw(4) == 0 ? y : add(y, weight(biases[draw(4)]));
  }
  // Same size, or one value a row, a column or a tensor.
  T combine(T x, T y) {
    using namespace ops;
    if (y.shape().dims() != x.shape().dims()) {
      const Dims sizes[] = {{x.dim(2)}, {x.dim(1), 1}, {1, 1, x.dim(2)}, {1}};
      y = weight(sizes[draw(4)]);
    }
    switch (draw(4)) {
      case 0:
        return tanh(mul(x, y));
      case 1:
        return sub(x, tanh(y));
      case 2:
        return max(x, y);
      default:
        return add(x, y) * 0.5;
    }
  }
  T joined(T x) {
    using namespace ops;
    const int axis = int(draw(3));
    const T whole = concat({curve(x), x, curve(x)}, axis);
    return narrow(whole, axis, int64_t(draw(uint32_t(2 * size(x, axis)))), size(x, axis));
  }
  T piece(T x) {
    using namespace ops;
    const int axis = int(draw(3));
    const int64_t n = size(x, axis), begin = draw(uint32_t(n));
    return narrow(x, axis, begin, n - begin);
  }
  T attended(T x) {
    using namespace ops;
    const int64_t width = size(x, 2), heads = draw(2) ? 1 : width / 8;
    const T q = linear(x, width), k = linear(x, width), v = linear(x, width);
    return attention_kind(q, k, v, heads, width / heads, draw(2) ? MaskKind::causal : MaskKind::none);
  }

  uint64_t seed_, index_ = 0;
  PhiloxBlock block_{};
  size_t next_ = 4;
  ir::Graph g_;
  ir::NamedLiterals inputs_, weights_;
  std::vector<T> pool_;
};

}  // namespace rlx::test
