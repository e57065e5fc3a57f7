// HIR to MIR: every block gives way to its decomposition, in bodies too.
#include "rlx/ir/bodies.h"
#include "rlx/ir/rewrite.h"
#include "rlx/lang/module.h"

namespace rlx {
namespace {

std::string block_label(const ir::Node& n) { return n.name.empty() ? cat(n.op->name, " %", n.id) : n.name; }

ir::OriginRef block_origin(const ir::Node& n) {
  auto origin = n.origin ? std::make_shared<ir::Origin>(*n.origin) : std::make_shared<ir::Origin>();
  if (origin->block.empty()) origin->block = block_label(n);  // of blocks in blocks the outermost counts
  return origin;
}

Values expand(ir::Cloner& copy, const ir::Node& n, FusionPolicy policy) {
  const ir::OriginScope scope(copy.to(), block_origin(n));
  try {
    const Values operands = copy.at(n.inputs);
    Values results;
    for (const ir::Expr& t : n.op->decompose(ir::Lower{copy.to(), operands, n.shapes, policy}, n.attrs.get()))
      results.push_back(t);
    return results;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::user) throw;
    LowerError error(cat("lower: ", e.message()));
    error.set_node(block_label(n));
    if (n.origin) error.set_origin(n.origin->text());
    throw error;
  }
}

}  // namespace

Graph lower(const ir::Graph& from, FusionPolicy policy) {
  constexpr int kMaxRounds = 64;  // a block may hold blocks; one that holds itself never ends
  Graph out = from;
  for (int round = 0; ir::holds_blocks(out); ++round) {
    if (round == kMaxRounds)
      throw LowerError(cat("lower: blocks of graph '", from.name(), "' decompose into blocks without end"));
    out = ir::rewrite(out, [&](ir::Cloner& copy, const ir::Node& n) -> std::optional<Values> {
            if (!n.op->traits.block) return std::nullopt;
            return expand(copy, n, policy);
          }).graph;
  }
  return out;
}

Mir lower(const Hir& hir) { return {lower(hir.graph, hir.policy)}; }

Lir plan(const Mir& mir) {
  ir::for_each_node(mir.graph, [](const ir::Node& n) {
    if (n.op->traits.block)
      throw invalid("plan: %", n.id, " is the block ", n.op->name, "; lower the module first");
  });
  return {mir.graph, make_plan(mir.graph)};
}

}  // namespace rlx
