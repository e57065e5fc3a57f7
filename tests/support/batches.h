// Batches made of the samples of operators.
#pragma once

#include <cstring>

#include "tests/support/samples.h"

namespace rlx::test {

/// Examples joined along a new axis.
inline Literal stack(const Literals& examples, int axis = 0) {
  Dims dims = examples[0].shape().dims();
  dims.insert(dims.begin() + axis, Dim(int64_t(examples.size())));
  Literal out = Literal::zeros(examples[0].shape().with_dims(dims));
  const auto view = axis_view(out.shape(), axis);
  const size_t row = size_t(view.inner) * dtype_size(out.dtype());
  std::byte* to = out.mutable_bytes().data();
  for (int64_t o = 0; row > 0 && o < view.outer; ++o) {
    for (int64_t k = 0; k < view.length; ++k) {
      std::memcpy(to + size_t(o * view.length + k) * row,
                  examples[size_t(k)].bytes().data() + size_t(o) * row, row);
    }
  }
  return out;
}

/// Example k of an operand: the sample's own kind of values under another seed.
inline Literal example(const ir::OpDef& op, size_t sample, size_t operand, int64_t k) {
  return ir::sample_literal(op.samples()[sample].inputs[operand],
                            1000 * sample + operand + 100'000 * uint64_t(k), DType::f64);
}

}  // namespace rlx::test
