// The launches of a convolution, part by part.
#pragma once

#include "rlx/backend/cuda/nodes/conv_geometry.h"

namespace rlx::cuda {

/// What a kernel of a convolution takes: the node's operands and result, or a place in its workspace.
enum class ConvArg : uint8_t { x, w, y, packed, sums, turned };

struct ConvLaunch {
  FunctionRef function;
  Grid grid, block;
  size_t shared = 0;
  std::vector<ConvArg> args;
};

/// How one part runs.
struct ConvPlan {
  std::vector<ConvLaunch> launches;
  size_t packed = 0, sums = 0, turned = 0;  // bytes of the workspace
  Turned x = Turned::no;                    // how x lies in it when the part has run
  std::string note;

  /// Of a part by itself; `workspace` begins at a multiple of 256 bytes.
  size_t workspace() const { return aligned(turned) + aligned(packed) + sums; }
  /// `results`: Params; `rest` is where the workspace goes on behind x, which several parts share.
  void run(Stream_*, std::byte* x, std::byte* w, std::byte* workspace, std::byte* rest,
           std::vector<std::byte*> results) const;

  static size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }
  static constexpr size_t kAlignment = 256;  // rows of packed weights are copied 16 bytes at a time
};

/// What happens to results: the text of Params, kPlain, plain_results and finish (kernels/conv_places.h), and which operands of the node (0, 1, ..) or results
/// (-1, -2, ..) the members of Params are.
struct ConvResults {
  std::string text;
  std::vector<int> members;
};

/// Results that are stored as they are.
ConvResults plain_results(DType);

using PlanConv = ConvPlan (*)(const Device&, const ConvPart&, const ConvResults&);

/// A convolution inside of a node: its operands are operands x and w of the launches, which are those of the node.
struct ConvNode {
  int x = 0, w = 1;
  ConvResults results;
};
/// Of a Conv node by itself.
ConvNode plain_conv(const Request&);

/// A step that runs the parts one after the other; those without terms are zeros. The request is that of the convolution.
std::unique_ptr<Step> conv_step(const Request&, const ConvNode&, PlanConv);

/// The kernel for a convolution that `accepts_conv_parts` takes.
PlanConv conv_plan_for(const Request&);
ConvPlan plan_conv_tiles(const Device&, const ConvPart&, const ConvResults&);
/// Slices that the threads bring which multiply them, on all cards (conv.cpp).
ConvPlan plan_conv_slices(const Device&, const ConvPart&, const ConvResults&);

/// The text that the kernels of a part begin with; `constants` are told besides those of the part.
std::string conv_head(const ConvPart&, const ConvResults&, const std::string& constants);
/// A launch that adds parts of so many sums in their order, after `head`.
ConvLaunch conv_sum(const Device&, int64_t sums, const std::string& head);
inline size_t conv_sum_bytes(const ConvPart& p, int64_t columns, int64_t splits) {
  return splits == 1 ? 0 : size_t(splits * p.groups * p.outputs * columns) * (p.dtype == DType::f64 ? 8 : 4);
}

/// Groups of few output channels (conv_few.cpp).
Support accepts_few(const Request&);
ConvPlan plan_conv_few(const Device&, const ConvPart&, const ConvResults&);

/// Whether the kernels take the types and the sizes at all.
Support accepts_conv_parts(const Request&);

}  // namespace rlx::cuda
