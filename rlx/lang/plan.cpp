#include "rlx/lang/plan.h"

#include "rlx/ir/clone.h"
#include "rlx/ir/leaves.h"
#include "rlx/lang/inspect.h"

namespace rlx {

const Plan::Slot& Plan::slot(ir::Value v) const {
  for (const Slot& s : slots) {
    if (s.value == v) return s;
  }
  throw invalid("plan: %", v.node, "#", v.index, " has no slot");
}

namespace {

void require_sizes(const ir::Graph& g) {
  if (const auto symbols = g.dynamic_symbols(); !symbols.empty()) {
    throw invalid("plan: graph '", g.name(), "' has symbolic sizes: ", join(symbols), "; bind them first");
  }
}

void add_ports(Plan& plan, const ir::Graph& g) {
  const auto port = [&](std::string name, ir::Value v) {
    return Plan::Port{std::move(name), v, g.shape(v), plan.slot(v).offset, plan.slot(v).bytes};
  };
  for (const ir::NodeId id : g.leaves()) {
    const ir::Node& n = g.node(id);
    auto& list = n.is<ir::Input>() ? plan.inputs : plan.params;
    list.push_back(port(ir::leaf_name(n), g.value(id)));
  }
  const auto names = g.output_names();
  for (size_t i = 0; i < names.size(); ++i) plan.outputs.push_back(port(names[i], g.outputs()[i]));
}

int64_t attr_of(const ir::PlanStatement& s, std::string_view name) {
  for (const auto& [key, value] : s.attrs) {
    if (key == name && std::holds_alternative<int64_t>(value)) return std::get<int64_t>(value);
  }
  throw invalid("plan: ", s.name, " lacks the whole number '", name, "'");
}

ir::Value operand_of(const ir::PlanStatement& s) {
  if (s.operands.size() != 1)
    throw invalid("plan: ", s.name, " has ", s.operands.size(), " operands; it takes one");
  return s.operands[0];
}

// Every value has a slot of its size, inside the arena and apart from the others; every node runs once, behind
// what it reads.
void check_plan(const Plan& plan, const ir::Graph& g) {
  ir::ValueMap<bool> placed;
  int64_t end = 0;
  for (const Plan::Slot& s : plan.slots) {
    const std::string where = cat("plan: slot of %", s.value.node, "#", s.value.index);
    if (!placed.emplace(s.value, true).second) throw invalid(where, " is given twice");
    if (s.bytes != g.shape(s.value).size_bytes())
      throw invalid(where, " has ", s.bytes, " bytes; ", g.shape(s.value), " needs ",
                    g.shape(s.value).size_bytes());
    if (s.offset < end || s.offset % Plan::kAlignment != 0 || s.bytes > plan.arena_bytes - s.offset) {
      throw invalid(where, " lies at ", s.offset, "; slots come one after another, at multiples of ",
                    Plan::kAlignment, ", inside of ", plan.arena_bytes, " bytes");
    }
    end = s.offset + s.bytes;
  }
  std::vector<bool> ran;
  const auto has_run = [&ran](ir::NodeId id) { return id < ran.size() && ran[id]; };
  const auto run = [&](const ir::Node& n) {
    for (const ir::Value v : n.inputs) {
      if (!has_run(v.node))
        throw invalid("plan: step of %", n.id, " comes before %", v.node, ", which it reads");
    }
    if (has_run(n.id)) throw invalid("plan: %", n.id, " runs twice");
    if (n.id >= ran.size()) ran.resize(n.id + 1, false);
    ran[n.id] = true;
  };
  for (const ir::NodeId id : g.leaves()) run(g.node(id));
  for (const ir::NodeId id : plan.schedule) run(g.node(id));
  for (const ir::Node* n : g.nodes()) {
    if (!has_run(n->id)) throw invalid("plan: there is no step for %", n->id);
    for (uint32_t i = 0; i < n->shapes.size(); ++i) {
      if (!placed.contains(n->result(i))) throw invalid("plan: %", n->id, "#", i, " has no slot");
    }
  }
}

}  // namespace

Plan make_plan(const ir::Graph& g) {
  require_sizes(g);
  Plan plan;
  for (const ir::Node* n : g.nodes()) {
    for (uint32_t i = 0; i < n->shapes.size(); ++i) {
      const int64_t bytes = n->shapes[i].size_bytes();
      plan.slots.push_back({g.value(n->id, i), plan.arena_bytes, bytes});
      plan.arena_bytes += (bytes + Plan::kAlignment - 1) / Plan::kAlignment * Plan::kAlignment;
    }
    if (!n->op->traits.leaf) plan.schedule.push_back(n->id);
  }
  add_ports(plan, g);
  return plan;
}

Plan read_plan(const ir::Graph& g, std::span<const ir::PlanStatement> statements) {
  require_sizes(g);
  Plan plan;
  for (const ir::PlanStatement& s : statements) {
    if (s.name == "arena") {
      plan.arena_bytes = attr_of(s, "bytes");
    } else if (s.name == "slot") {
      plan.slots.push_back({operand_of(s), attr_of(s, "offset"), attr_of(s, "bytes")});
    } else if (s.name == "step") {
      plan.schedule.push_back(operand_of(s).node);
    } else {
      throw invalid("plan: unknown statement '", s.name, "'; known: arena, slot, step");
    }
  }
  check_plan(plan, g);
  add_ports(plan, g);
  return plan;
}

std::vector<ir::PlanStatement> Plan::statements() const {
  std::vector<ir::PlanStatement> out = {{"arena", {}, {{"bytes", arena_bytes}, {"align", kAlignment}}}};
  for (const Slot& s : slots) out.push_back({"slot", {s.value}, {{"offset", s.offset}, {"bytes", s.bytes}}});
  for (const ir::NodeId id : schedule) out.push_back({"step", {{id}}, {}});
  return out;
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
