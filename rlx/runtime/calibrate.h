// Rounding a trained graph to eight bits, by what its values are on examples.
#pragma once

#include "rlx/passes/fuse.h"
#include "rlx/passes/quantise.h"
#include "rlx/runtime/compiled_graph.h"

namespace rlx {

/// What a value reached over all runs.
struct ValueRange {
  double low = 0, high = 0;  // 0 included
};

/// The ranges of values, by name, over runs on these sets of inputs. Inputs and params count as values. NaN and infinities are a user
/// error that names the value: no scale would fit.
std::map<std::string, ValueRange> calibrate(const ir::Graph&, const NamedLiterals& weights,
                                            std::span<const NamedLiterals> sets,
                                            const std::vector<std::string>& names,
                                            const CompileOptions& = {});

/// A graph with rounded operands, and what stayed exact.
struct QuantisedGraph {
  ir::Graph graph;
  std::vector<passes::Remark> remarks;  // products that were left as they are, and why
};

/// The graph with both operands of every product of matrices and two-dimensional convolution rounded: inputs by affine codes,
/// weights by symmetric ones, those of convolutions with a scale for each output channel. The compiler makes products of codes of
/// these where weights are fixed. Nodes without a name get one. The graph keeps its interface.
QuantisedGraph quantise_after_training(const ir::Graph&, const NamedLiterals& weights,
                                       std::span<const NamedLiterals> sets, const CompileOptions& = {});

}  // namespace rlx
