// Attention that is written out becomes one operator.
#pragma once

#include "rlx/ir/rewrite.h"
#include "rlx/ir/target.h"
#include "rlx/passes/remark.h"

namespace rlx::passes {

/// Joins the products on both sides of a softmax, as models hold them that were exported from other systems:
///   p = softmax(scale * matmul(q, k^T) + bias); y = matmul(p, v)   =>   y, lse = attention(q, k, v, bias)
/// The matrix of scores is then not stored. Between product and softmax may stand factors and divisors that are one number,
/// also on q or k, a soft-cap c tanh(s / c), sums with anything that repeats to the scores, where(cond, s, c) with c = -inf or
/// below -1e30 (which no score is seen beside), and reshapes that keep queries and keys. Nobody else may read what lies
/// between, and it is of f32 or f64: in 16 bits every step rounds.
/// Rows that allow no key are NaN behind a softmax and zero behind attention: where the biases do not rule them out, those of
/// such rows are made NaN. Sizes are known. Nothing happens where the target has no kernel for the result.
ir::Rewritten join_attention(ir::Graph, const ir::Target&, std::vector<Remark>* remarks = nullptr);

}  // namespace rlx::passes
