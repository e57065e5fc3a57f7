// Reading pictures between their pixels, at places computed by the graph.
#pragma once

#include "rlx/onnx/call.h"

namespace rlx::onnx {

/// x [N, C, d1 .. dr] as rows [N, d1 * .. * dr, C].
Tensor pixel_rows(const Tensor& x);

/// Rows at whole places: `places` has one i64 tensor [N, K] for each spatial axis; outside of the picture 0.
Tensor pixels_or_zero(const Call&, const Tensor& rows, const Dims& extents, const Tensors& places);

/// Linear interpolation at real places [N, K] per axis, 0 outside: [N, K, C].
Tensor linear_sample(const Call&, const Tensor& rows, const Dims& extents, const Tensors& places);

}  // namespace rlx::onnx
