// Blocks: operators of the HIR stage, larger than what backends know. A block is a composite whose
// decomposition follows its `policy`; lowering sets the policy and puts the decomposition in its place.
//
// The order of the weights of a gated feed-forward net is up, gate, down, in every block.
#pragma once

#include "rlx/ir/module.h"
#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

using ir::FusionPolicy;

/// What tells a block from other operators: it has a policy for lowering to set.
bool is_block(const OpDef& op);
/// Whether a graph has a block, in any body.
bool holds_blocks(const Graph& g);

inline constexpr std::string_view kPolicyDoc = "what lowering emits: fused operators or primitives";

/// Result types of a block: those of its decomposition on operands of the given types. Sizes that cannot be
/// decided become constraints of the block.
Shapes infer_by_decomposition(Infer& c, Exprs (*decompose)(const Lower&, const void*), const void* attrs);

template <class Block>
Shapes infer_block(Infer& c, const typename Block::Attrs& a) {
  return infer_by_decomposition(
      c,
      [](const Lower& l, const void* attrs) {
        return Block::decompose(l, *static_cast<const typename Block::Attrs*>(attrs));
      },
      &a);
}

}  // namespace rlx::ops
