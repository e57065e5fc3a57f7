#include "rlx/ir/module.h"

#include "rlx/ir/bodies.h"

namespace rlx::ir {
namespace {

struct Words {
  std::string_view words;
  Stage stage;
  FusionPolicy policy;
};
constexpr Words kStages[] = {{"hir direct", Stage::Hir, FusionPolicy::direct},
                             {"hir fusable", Stage::Hir, FusionPolicy::fusable},
                             {"mir", Stage::Mir, FusionPolicy::direct},
                             {"lir", Stage::Lir, FusionPolicy::direct}};

}  // namespace

std::string_view stage_name(Stage stage) {
  constexpr std::string_view kNames[] = {"HIR", "MIR", "LIR"};
  return kNames[size_t(stage)];
}

std::string stage_words(Stage stage, FusionPolicy policy) {
  for (const Words& w : kStages) {
    if (w.stage == stage && (stage != Stage::Hir || w.policy == policy)) return std::string(w.words);
  }
  RLX_CHECK(false, "stage ", int(stage));
}

void Module::set_words(std::string_view words) {
  std::vector<std::string_view> known;
  for (const Words& w : kStages) {
    known.push_back(w.words);
    if (w.words != words) continue;
    stage = w.stage;
    policy = w.policy;
    return;
  }
  throw invalid("stage '", words, "' is unknown; known: ", join(known));
}

bool holds_blocks(const Graph& g) {
  return any_node(g, [](const Node& n) { return n.op->traits.block; });
}

Stage stage_of(const Graph& g) { return holds_blocks(g) ? Stage::Hir : Stage::Mir; }

}  // namespace rlx::ir
