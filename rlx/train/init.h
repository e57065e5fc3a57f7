// Starting values of weights: rules by name, drawn from Philox. The values of a weight depend on the seed, its name and its
// shape, not on what else a graph has.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "rlx/base/shape.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/interpreter.h"

namespace rlx::train {

/// Numbers of one weight, in the order of its elements. Element i never depends on how many were drawn.
class Draws {
 public:
  Draws(uint64_t seed, std::string_view name);
  double uniform(int64_t i) const;  // [0, 1), 53 bits
  double normal(int64_t i) const;   // mean 0, deviation 1

 private:
  uint64_t key_, counter_;
};

/// Fills a weight of this shape, in row-major order.
using InitRule = std::function<void(const Shape&, const Draws&, std::span<double>)>;

/// Numbers of inputs and outputs of a weight. A matrix is [in, out] (y = x w) unless `out_first`; a kernel with more axes is
/// [out, in, window...]; a vector counts as both.
struct Fans {
  int64_t in = 1, out = 1;
};
/// Those of a weight of this shape.
Fans fans_of(const Shape&, bool out_first = false);

/// All 0.
InitRule zeros();
/// All one number.
InitRule constant_value(double value);
/// Normal, of this deviation around this mean.
InitRule normal(double deviation = 1, double mean = 0);
/// Even between two numbers.
InitRule uniform(double low, double high);
/// A normal drawn again outside of mean +- `width` deviations.
InitRule truncated_normal(double deviation = 1, double mean = 0, double width = 2);
/// Variance gain^2 2 / (in + out).
InitRule xavier_uniform(double gain = 1, bool out_first = false);
/// The same variance, normal.
InitRule xavier_normal(double gain = 1, bool out_first = false);
/// Variance gain^2 / in; sqrt(2) is the gain of relu.
InitRule kaiming_uniform(double gain = 1.4142135623730951, bool out_first = false);
/// The same variance, normal.
InitRule kaiming_normal(double gain = 1.4142135623730951, bool out_first = false);
/// Rows or columns, whichever are fewer, orthonormal, times gain; axes after the first count as one.
InitRule orthogonal(double gain = 1);

/// A rule for the weights whose names match, where `*` stands for any text.
struct InitChoice {
  std::string names;
  InitRule rule;
};

/// Values for every param of the graph; the first choice that matches decides. Without one, what an operator takes as its
/// scale (gamma of a norm) is 1, other vectors and scalars are 0, and the rest is xavier_uniform. A choice whose names no param has is a
/// user error.
ir::NamedLiterals init(const ir::Graph&, const std::vector<InitChoice>&, uint64_t seed);
/// One rule for all; `{}` is no rule but no choices.
template <std::convertible_to<InitRule> Rule>
ir::NamedLiterals init(const ir::Graph& graph, const Rule& rule, uint64_t seed) {
  return init(graph, std::vector<InitChoice>{{"*", rule}}, seed);
}

/// Whether `name` matches `pattern`, where `*` stands for any text.
bool matches(std::string_view pattern, std::string_view name);

}  // namespace rlx::train
