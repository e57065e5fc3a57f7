#include "rlx/runtime/report.h"

#include <algorithm>

#include "rlx/runtime/core.h"
#include "rlx/runtime/profile.h"
#include "rlx/runtime/stages.h"
#include "rlx/runtime/table.h"

namespace rlx {
namespace {

using backend::BufferKind;
using backend::Plan;

bool in_arena(const Plan::Buffer& b) {
  return (b.kind == BufferKind::activation || b.kind == BufferKind::workspace) && b.last >= 0;
}

MemoryUse memory_of(const Plan& plan, const runtime::Core& core) {
  MemoryUse use;
  std::vector<bool> read(core.leaves().size(), false);
  for (const Plan::Step& s : plan.steps) {
    for (size_t i = 0; i < s.in.size(); ++i) {
      const Plan::Buffer& b = plan.buffers[size_t(s.in[i].buffer)];
      if (b.kind == BufferKind::leaf && !(i < s.packed.size() && s.packed[i])) read[size_t(b.index)] = true;
    }
  }
  for (const Plan::Buffer& b : plan.buffers) {
    if (b.kind == BufferKind::constant) use.constants += b.bytes;
    if (b.kind == BufferKind::output && core.outputs()[size_t(b.index)].state < 0) use.outputs += b.bytes;
    if (b.kind != BufferKind::leaf) continue;
    const auto role = core.leaves()[size_t(b.index)].role;
    if (role == runtime::LeafRole::input) use.inputs += b.bytes;
    if (role == runtime::LeafRole::state) use.states += b.bytes;
    if (role == runtime::LeafRole::param && read[size_t(b.index)]) use.weights += b.bytes;
  }
  use.arena = plan.arena_bytes;
  use.live = plan.live_bytes;
  return use;
}

std::string types_text(const std::vector<Plan::Place>& places) {
  std::vector<std::string> out;
  for (const Plan::Place& p : places) out.push_back(cat(p.shape));
  return join(out);
}

void append_steps(std::string& out, const Report& r) {
  const bool timed = !r.seconds.empty();
  std::vector<Column> columns = {{"#", true}, {"node"},        {"op"},      {"kernel"},
                                 {"result"},  {"MFLOP", true}, {"KB", true}};
  if (timed) columns.insert(columns.end(), {{"us", true}, {"GFLOP/s", true}, {"of peak", true}});
  columns.push_back({"note"});
  Table table(std::move(columns));
  for (size_t i = 0; i < r.plan.steps.size(); ++i) {
    const Plan::Step& s = r.plan.steps[i];
    std::vector<std::string> row = {cat(i),
                                    r.names[i],
                                    s.op,
                                    s.kernel,
                                    types_text(s.out),
                                    fixed(s.cost.operations * 1e-6, 3),
                                    fixed(s.cost.bytes / 1024, 1)};
    if (timed) {
      row.push_back(fixed(r.seconds[i] * 1e6, 1));
      row.push_back(r.seconds[i] > 0 ? fixed(s.cost.operations / r.seconds[i] * 1e-9, 1) : "");
      row.push_back(r.roofline.empty() ? "" : cat(fixed(r.roofline[i] * 100, 0), "%"));
    }
    row.push_back(s.note.empty() || s.origin.empty() ? s.note + s.origin : cat(s.note, "; ", s.origin));
    table.add(std::move(row));
  }
  out += table.text("  ");
}

void append_memory(std::string& out, const Report& r) {
  const MemoryUse& m = r.memory;
  out += cat("memory: ", m.total(), " bytes = weights ", m.weights, " + packed ", m.packed, " + constants ",
             m.constants, " + states ", m.states, " + inputs ", m.inputs, " + outputs ", m.outputs,
             " + arena ", m.arena, " (largest live set ", m.live, ")\n");
  const std::vector<int64_t> live = memory_timeline(r.plan);
  constexpr int kWidth = 40;
  for (size_t i = 0; i < live.size(); ++i) {
    const auto marks = size_t(m.arena > 0 ? live[i] * kWidth / m.arena : 0);
    out += cat("  step ", i, ": ", live[i], " ", std::string(marks, '#'), "\n");
  }
}

void append_declined(std::string& out, const Plan& plan, const std::vector<std::string>& names,
                     const std::string& indent) {
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Plan::Step& s = plan.steps[i];
    for (const backend::Declined& d : s.declined)
      out +=
          cat(indent, i < names.size() ? names[i] : s.name, " ", s.op, ": ", d.kernel, ": ", d.reason, "\n");
    for (const Plan& body : s.bodies) append_declined(out, body, {}, indent + "  ");
  }
}

}  // namespace

std::vector<int64_t> memory_timeline(const Plan& plan) {
  std::vector<int64_t> change(plan.steps.size() + 1, 0);
  for (const Plan::Buffer& b : plan.buffers) {
    if (!in_arena(b)) continue;
    change[size_t(b.first)] += b.bytes;
    change[size_t(b.last) + 1] -= b.bytes;
  }
  int64_t now = 0;
  for (int64_t& c : change) c = now += c;
  change.pop_back();
  return change;
}

Report runtime::make_report(Core& core, const backend::Executable& program) {
  Report r;
  r.graph = core.graph().name();
  r.device = core.options().device;
  r.threads = core.builder().threads();
  r.plan = program.plan();
  r.remarks = core.remarks();
  r.memory = memory_of(r.plan, core);
  for (const auto& form : program.packings()) r.memory.packed += form.packing.bytes;
  for (const Plan::Step& s : r.plan.steps) r.names.push_back(s.name.empty() ? "-" : s.name);
  return r;
}

Report CompiledGraph::report(const std::map<std::string, Shape>& inputs) {
  if (!inputs.empty() || !instance_) plan(inputs);
  Report r = runtime::make_report(*core_, *instance_->program);
  r.memory.packed = std::max(r.memory.packed, packed_weight_bytes());  // of all sizes that were run
  if (core_->prologue()) {
    for (const Plan::Step& s : core_->prologue()->plan().steps)
      r.prologue.push_back(cat(s.kernel, " ", s.op));
  }
  return r;
}

MemoryUse estimate_memory(const ir::Graph& graph, const std::map<std::string, Shape>& inputs,
                          const CompileOptions& options) {
  runtime::Core core(graph, {}, options);
  std::vector<Shape> leaves;
  for (const auto& leaf : core.leaves()) {
    const auto it = inputs.find(leaf.name);
    leaves.push_back(it == inputs.end() ? leaf.shape : it->second);
  }
  const auto program = core.build(leaves);
  MemoryUse use = memory_of(program->plan(), core);
  for (const auto& form : program->packings()) use.packed += form.packing.bytes;
  return use;
}

void Report::add_times(const Profile& profile) {
  seconds = profile.medians(plan.steps.size());
  if (profile.limits()) {
    for (size_t i = 0; i < seconds.size(); ++i)
      roofline.push_back(roofline_share(*profile.limits(), plan.steps[i], seconds[i]));
  }
}

std::vector<size_t> Report::reference_steps() const {
  std::vector<size_t> out;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    if (plan.steps[i].kernel == "reference") out.push_back(i);
  }
  return out;
}

std::string Report::text() const {
  ir::Cost total;
  for (const Plan::Step& s : plan.steps) total.operations += s.cost.operations, total.bytes += s.cost.bytes;
  std::string out = cat("graph '", graph, "' on ", device, ", ", threads,
                        threads == 1 ? " thread: " : " threads: ", plan.steps.size(), " steps, ",
                        fixed(total.operations * 1e-6, 3), " MFLOP, ", fixed(total.bytes / 1024, 1),
                        " KB read and written\n");
  append_steps(out, *this);
  append_memory(out, *this);
  if (!prologue.empty()) out += cat("once, when weights are set: ", join(prologue), "\n");
  if (const auto slow = reference_steps(); !slow.empty()) {
    std::vector<std::string> list;
    for (const size_t i : slow) list.push_back(cat(names[i], " ", plan.steps[i].op));
    out += cat("run by the reference rule, slowly: ", join(list), "\n");
  }
  std::string declined;
  append_declined(declined, plan, names, "  ");
  if (!declined.empty()) out += "kernels that declined\n" + declined;
  std::string joined;
  for (const passes::Remark& r : remarks) {
    if (!r.on_request) joined += cat("  ", r.applied ? "joined  " : "refused ", r.node, ": ", r.text, "\n");
  }
  if (!joined.empty()) out += "fusion\n" + joined;
  return out;
}

}  // namespace rlx
