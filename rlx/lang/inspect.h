// Dumps for people: what a graph is made of and where its nodes came from.
#pragma once

#include <map>
#include <string>

#include "rlx/ir/graph.h"

namespace rlx {

/// How often each operator occurs, bodies included.
std::map<std::string, int64_t> histogram(const ir::Graph&);

/// Header, histogram, symbols, then the text with the origin of each node:
///
///   graph @toy: 4 nodes, 1 output, 0.3 KB in results
///     matmul 1, relu 1
///   graph @toy(x: f32[2,4], param w: f32[4,8]) {
///     h = matmul(x, w) : f32[2,8]  // model.cpp:12, ffn
std::string inspect(const ir::Graph&);

/// What changed from one graph to the next:
///
///   diff: 40 -> 31 nodes (1 -> 1 outputs)
///   ops: add -3, fused_matmul_bias_act +3
std::string diff(const ir::Graph& before, const ir::Graph& after);

/// 1536 is "1.5 KB": powers of 1024, one decimal.
std::string byte_text(int64_t bytes);

}  // namespace rlx
