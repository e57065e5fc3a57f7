// A transformer encoder of the shape of MiniLM-L6: six layers, 384 wide, 12 heads, 1536 inner; random weights.
#pragma once

#include "rlx/runtime/compiled_graph.h"

namespace rlx::bench {

inline constexpr int64_t kEncoderWidth = 384;

struct Encoder {
  ir::Graph graph{"encoder"};  // x: f32[batch, seq, 384], mask: f32[batch, seq] -> y
  NamedLiterals weights;
};

Encoder encoder();
/// With the mean square of y as output "loss", at a fixed size.
Encoder encoder_loss(int64_t batch, int64_t seq);

/// Multiply-adds of the products and of attention, forward, in operations.
double encoder_operations(int64_t batch, int64_t seq);

}  // namespace rlx::bench
