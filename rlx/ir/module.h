// A graph at one of its stages, as texts and files hold it. rlx::GraphModule (rlx/lang/module.h) is what
// people work with.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx::ir {

/// How far a graph is lowered.
enum class Stage {
  Hir,  // may hold blocks; has a policy for lowering them
  Mir,  // operators only
  Lir,  // operators and a plan of how they run
};
std::string_view stage_name(Stage);  // "HIR"

/// One line of a plan: `slot(h, offset=64, bytes=128)`. What statements there are and what they mean is the
/// planner's business; texts and files carry them.
struct PlanStatement {
  std::string name;
  Values operands;
  std::vector<std::pair<std::string, AttrValue>> attrs;  // bool, int64_t, double, std::string or int64_t list

  friend bool operator==(const PlanStatement&, const PlanStatement&) = default;
};

/// Words that name the stage, and the policy at HIR: "hir fusable", "mir".
std::string stage_words(Stage, FusionPolicy);

struct Module {
  Graph graph;
  Stage stage = Stage::Mir;
  FusionPolicy policy = FusionPolicy::direct;  // of HIR
  std::vector<PlanStatement> plan;             // of LIR
  bool named = true;                           // the text says `module`, not only `graph`

  /// The words of its stage.
  std::string words() const { return stage_words(stage, policy); }
  /// Sets stage and policy from their words; unknown ones are a user error.
  void set_words(std::string_view words);
};

/// Whether a block is left, in any body.
bool holds_blocks(const Graph&);
/// HIR when there are blocks, else MIR.
Stage stage_of(const Graph&);

}  // namespace rlx::ir
