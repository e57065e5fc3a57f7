// What the kernels of products share: the description of a product of two operands with leading axes.
#pragma once

#include "rlx/backend/batch_axes.h"
#include "rlx/backend/cpu/kernels/gemm.h"
#include "rlx/backend/cpu/nodes/families.h"

namespace rlx::cpu {

using backend::BatchAxis;

struct Product {
  Gemm gemm;
  std::vector<BatchAxis> outer;  // axes that remain beside the batch of the gemm
  int64_t element = 4;

  /// Whether one matrix B serves all places of the leading axes.
  bool one_matrix() const;
};

/// a [.., m, k] times b [.., k, n] into c [.., m, n], which is row-major; leading axes broadcast.
Product describe_product(const Arg& a, const Arg& b, const Arg& c);
Support accepts_product(const Arg& a, const Arg& b, const Arg& c);

/// The step of a product. `b` is operand `operand_b` of the step; fixed, it is packed once. `steps` are the epilogue: addresses of
/// those with data come from the operand numbered beside them.
struct EpilogueOperand {
  EpilogueStep step;
  int operand = -1;  // of the step; -1: it has no data
};
struct ProductOperands {
  int a = 0, b = 1;
  std::vector<EpilogueOperand> epilogue;
};
std::unique_ptr<Step> prepare_product(const Request&, const Product&, const ProductOperands&);

}  // namespace rlx::cpu
