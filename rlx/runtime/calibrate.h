// Rounding a trained graph to eight bits, by what its values are on examples.
#pragma once

#include "rlx/passes/quantise.h"
#include "rlx/runtime/compiled_graph.h"

namespace rlx {

struct ValueRange {
  double low = 0, high = 0;  // 0 included
};

/// The ranges of values, by name, over runs on these sets of inputs. Inputs and params count as values. NaN and infinities are a user
/// error that names the value: no scale would fit.
std::map<std::string, ValueRange> calibrate(const ir::Graph&, const NamedLiterals& weights,
                                            std::span<const NamedLiterals> sets,
                                            const std::vector<std::string>& names,
                                            const CompileOptions& = {});

/// The graph with both operands of every product of matrices rounded: inputs of products by affine codes, weights by symmetric ones.
/// Nodes without a name get one. The graph keeps its interface.
ir::Graph quantise_after_training(const ir::Graph&, const NamedLiterals& weights,
                                  std::span<const NamedLiterals> sets, const CompileOptions& = {});

}  // namespace rlx
