// Blocks: operators of the HIR stage, larger than what backends know. A block is a composite with the trait
// `block` whose decomposition follows the policy that lowering gives it (Lower::policy); lowering puts the
// decomposition in its place, in bodies too (rlx/lang/module.h).
//
// The order of the weights of a gated feed-forward net is up, gate, down, in every block.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

using ir::FusionPolicy;

inline bool is_block(const OpDef& op) { return op.traits.block; }

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
