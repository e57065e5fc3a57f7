// Values for the leaves of a graph, by name.
#pragma once

#include "rlx/ir/interpreter.h"
#include "rlx/ir/leaves.h"
#include "rlx/ir/sample.h"

namespace rlx::test {

inline NamedLiterals named_samples(const ir::Graph& g) {
  NamedLiterals out;
  for (const ir::NodeId id : g.leaves())
    out.emplace(ir::leaf_name(g.node(id)), ir::sample_literal(cat(g.node(id).shapes[0]), 5 + id));
  return out;
}

}  // namespace rlx::test
