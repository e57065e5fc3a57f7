#include "rlx/passes/prologue.h"

#include <algorithm>

#include "rlx/ir/clone.h"
#include "rlx/ir/leaves.h"
#include "rlx/ops/shape/concat.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::passes {
namespace {

enum class Kind : uint8_t {
  per_run,  // depends on an input
  free,     // a constant or a fill, made where it is needed
  weight,   // a param, or a view of one
  derived,  // made of weights
};

std::vector<Kind> classify(const ir::Graph& g) {
  std::vector<Kind> kinds;
  for (const ir::Node* n : g.nodes()) {
    if (n->id >= kinds.size()) kinds.resize(n->id + 1, Kind::per_run);
    Kind& k = kinds[n->id];
    if (n->op->traits.leaf) {
      k = n->is<ir::Param>() ? Kind::weight : Kind::per_run;
      continue;
    }
    const bool sized =
        std::all_of(n->shapes.begin(), n->shapes.end(), [](const Shape& s) { return s.is_static(); });
    if (!n->op->traits.pure || !sized) continue;  // sizes of a run decide
    k = Kind::free;
    for (const ir::Value v : n->inputs) {
      const Kind operand = kinds[v.node];
      if (operand == Kind::per_run) k = Kind::per_run;
      if (k != Kind::per_run && operand != Kind::free) k = Kind::derived;
    }
    if (k == Kind::derived && n->op->view != nullptr) {
      // Matrices that were joined are turned as single ones are: read where they lie, not copied.
      const ir::Node& of = g.node(n->inputs[0]);
      const bool turned = of.is<ops::Concat>() && n->is<ops::Transpose>() && n->shapes[0].rank() == 2;
      if (kinds[of.id] == Kind::weight || turned) k = Kind::weight;
    }
    if (k == Kind::free && !n->inputs.empty()) k = Kind::derived;  // of constants that folding left
  }
  return kinds;
}

}  // namespace

Split split_prologue(const ir::Graph& g) {
  const std::vector<Kind> kinds = classify(g);
  Split out{ir::Graph(g.name() + "_prologue"), ir::Graph(g.name()), {}};
  if (std::ranges::find(kinds, Kind::derived) == kinds.end()) return out;
  ir::Cloner before(out.prologue), main(out.main);
  ir::Values made;
  // A derived value that something outside reads becomes a param of main.
  const auto crosses = [&](const ir::Node& n) {
    for (const ir::Use& u : n.uses) {
      if (u.user == ir::kNoNode || kinds[u.user] == Kind::per_run || kinds[u.user] == Kind::weight)
        return true;
    }
    return false;
  };
  for (const ir::NodeId id : g.leaves()) {
    const ir::Node& leaf = g.node(id);
    if (leaf.is<ir::Param>()) before.copy(leaf);
    main.copy(leaf);
  }
  for (const ir::Node* n : g.nodes()) {
    if (n->op->traits.leaf) continue;
    const Kind k = kinds[n->id];
    if (k != Kind::per_run) before.copy(*n);
    if (k != Kind::derived) {
      main.copy(*n);
      continue;
    }
    for (uint32_t i = 0; i < n->shapes.size() && crosses(*n); ++i) {
      const std::string name = cat("prologue/", n->id, n->shapes.size() > 1 ? cat("#", i) : "");
      main.set(n->result(i), out.main.param(name, n->shapes[i]));
      made.push_back(before.at(n->result(i)));
      out.made.push_back(name);
    }
  }
  out.prologue.set_outputs(made, out.made);
  out.prologue.erase_dead();
  main.copy_outputs(g);
  out.main.erase_dead();
  return out;
}

}  // namespace rlx::passes
