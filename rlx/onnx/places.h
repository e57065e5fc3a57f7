// Indices as ONNX writes them: negative ones count from the end, several together name one element.
#pragma once

#include "rlx/onnx/call.h"

namespace rlx::onnx {

/// Indices into an axis of size n, none of them negative; i64.
Tensor wrapped(const Call&, const Tensor& indices, Dim n);
/// As above, with the size as an i64 scalar of the graph.
Tensor wrapped(const Tensor& indices, const Tensor& n);

/// The last axis of `indices` holds one index for each of `extents`: their row-major place, without that axis.
Tensor flat_places(const Call&, const Tensor& indices, const Dims& extents);

}  // namespace rlx::onnx
