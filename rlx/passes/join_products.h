// Products of one input with several weights become one product.
#pragma once

#include "rlx/ir/rewrite.h"
#include "rlx/passes/remark.h"

namespace rlx::passes {

/// Joins the weights of products that read one input; the parts of the wide result are views.
///   q = matmul(x, wq); k = matmul(x, wk)   =>   y = matmul(x, concat(wq, wk)); q = narrow(y); k = narrow(y)
/// A bias behind every one of them is joined too. Weights are matrices of one type, params or made of params alone, so that
/// the prologue joins them once; transposes are joined as they lie and turned together. The input is then read once, and what is left over by tiles is left over once. A product whose
/// result goes into an elementwise operator stays alone: the operator becomes its epilogue.
/// Of products that share an input, remarks say which were joined, and why the others were not.
ir::Rewritten join_products(ir::Graph, std::vector<Remark>* remarks = nullptr);

}  // namespace rlx::passes
