#include "rlx/lang/plan.h"

#include "rlx/ir/leaves.h"
#include "rlx/lang/inspect.h"

namespace rlx {

const Plan::Slot& Plan::slot(ir::Value v) const {
  for (const Slot& s : slots) {
    if (s.value == v) return s;
  }
  throw invalid("plan: %", v.node, "#", v.index, " has no slot");
}

Plan make_plan(const ir::Graph& g) {
  if (const auto symbols = g.dynamic_symbols(); !symbols.empty()) {
    throw invalid("plan: graph '", g.name(), "' has symbolic sizes: ", join(symbols), "; bind them first");
  }
  Plan plan;
  std::vector<std::vector<int64_t>> offset_of;  // by node, by result
  for (const ir::Node* n : g.nodes()) {
    if (n->id >= offset_of.size()) offset_of.resize(n->id + 1);
    for (uint32_t i = 0; i < n->shapes.size(); ++i) {
      const int64_t bytes = n->shapes[i].size_bytes();
      plan.slots.push_back({g.value(n->id, i), plan.arena_bytes, bytes});
      offset_of[n->id].push_back(plan.arena_bytes);
      plan.arena_bytes += (bytes + Plan::kAlignment - 1) / Plan::kAlignment * Plan::kAlignment;
    }
    if (!n->op->traits.leaf) plan.schedule.push_back(n->id);
  }
  const auto port = [&](std::string name, ir::Value v) {
    const Shape& shape = g.shape(v);
    return Plan::Port{std::move(name), v, shape, offset_of[v.node][v.index], shape.size_bytes()};
  };
  for (const ir::NodeId id : g.leaves()) {
    const ir::Node& n = g.node(id);
    auto& list = n.is<ir::Input>() ? plan.inputs : plan.params;
    list.push_back(port(static_cast<const ir::NamedLeaf*>(n.attrs.get())->name, g.value(id)));
  }
  const auto names = g.output_names();
  for (size_t i = 0; i < names.size(); ++i) plan.outputs.push_back(port(names[i], g.outputs()[i]));
  return plan;
}

std::string Plan::text() const {
  std::string out = cat("plan: ", byte_text(arena_bytes), " in ", slots.size(), " slots, aligned to ",
                        kAlignment, ", ", schedule.size(), " steps\n");
  const auto ports = [&out](std::string_view title, const std::vector<Port>& list) {
    for (const Port& p : list) out += cat("  ", title, " ", p.name, ": ", p.shape, " at ", p.offset, "\n");
  };
  ports("input", inputs);
  ports("param", params);
  ports("output", outputs);
  for (const Slot& s : slots)
    out += cat("  ", s.offset, " + ", s.bytes, "  %", s.value.node,
               s.value.index ? cat("#", s.value.index) : "", "\n");
  return out;
}

}  // namespace rlx
