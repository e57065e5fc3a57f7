// The launches of a convolution, part by part.
#pragma once

#include "rlx/backend/cuda/nodes/conv_geometry.h"

namespace rlx::cuda {

/// What a kernel of a convolution takes: the node's operands and result, or a place in its workspace.
enum class ConvArg : uint8_t { x, w, y, packed, sums };

struct ConvLaunch {
  FunctionRef function;
  Grid grid, block;
  size_t shared = 0;
  std::vector<ConvArg> args;
};

/// How one part runs.
struct ConvPlan {
  std::vector<ConvLaunch> launches;
  size_t packed = 0, sums = 0;  // bytes of the workspace
  std::string note;
};

/// A step that runs the parts one after the other; those without terms are zeros.
std::unique_ptr<Step> conv_step(const Request&, ConvPlan (*plan)(const Device&, const ConvPart&));

/// The text that the kernels of a part begin with; `constants` are told besides those of the part.
std::string conv_head(const ConvPart&, const std::string& constants);
/// A launch that adds `splits` parts of sums in their order, after `head`.
ConvLaunch conv_sum(const Device&, const ConvPart&, const std::string& head);
inline size_t conv_sum_bytes(const ConvPart& p, int64_t splits) {
  return splits == 1
             ? 0
             : size_t(splits * p.groups * p.outputs * p.positions()) * (p.dtype == DType::f64 ? 8 : 4);
}

/// Groups of few output channels (conv_few.cpp).
Support accepts_few(const Request&);
std::unique_ptr<Step> prepare_few(const Request&);

/// Whether the kernels take the types and the sizes at all.
Support accepts_conv_parts(const Request&);

}  // namespace rlx::cuda
