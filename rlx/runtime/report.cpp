#include "rlx/runtime/report.h"

#include <algorithm>
#include <cmath>

#include "rlx/runtime/core.h"
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

int64_t bytes_of(const std::vector<Plan::Place>& places) {
  int64_t out = 0;
  for (const Plan::Place& p : places) out += p.shape.size_bytes();
  return out;
}

// Inputs that some step reads, results, and operands and results of steps that the host runs. States stay.
void add_copies(Report& r, const runtime::Core& core, const backend::Executable& program) {
  for (size_t i = 0; i < core.leaves().size(); ++i) {
    if (core.leaves()[i].role != runtime::LeafRole::input || !program.reads_leaf(i)) continue;
    for (const Plan::Buffer& b : r.plan.buffers) {
      if (b.kind == BufferKind::leaf && size_t(b.index) == i) r.sent += b.bytes;
    }
  }
  r.fetched = r.memory.outputs;
  for (const Plan::Step& s : r.plan.steps) {
    if (s.by_rule) r.fetched += bytes_of(s.in), r.sent += bytes_of(s.out);
  }
}

std::string types_text(const std::vector<Plan::Place>& places) {
  std::vector<std::string> out;
  for (const Plan::Place& p : places) out.push_back(cat(p.shape));
  return join(out);
}

// A row of the table. `seconds`: NaN where none were taken; `more`: behind the note.
std::vector<std::string> step_row(const Plan::Step& s, std::string number, std::string name, bool timed,
                                  double seconds, std::string share, const std::string& more) {
  std::vector<std::string> row = {std::move(number),
                                  std::move(name),
                                  s.op,
                                  s.kernel,
                                  types_text(s.out),
                                  fixed(s.cost.operations * 1e-6, 3),
                                  fixed(s.cost.bytes / 1024, 1)};
  if (timed) {
    row.push_back(std::isnan(seconds) ? "" : fixed(seconds * 1e6, 1));
    row.push_back(seconds > 0 ? fixed(s.cost.operations / seconds * 1e-9, 1) : "");
    row.push_back(std::move(share));
  }
  std::vector<std::string> notes;
  for (const std::string& part : {s.note, s.origin, more}) {
    if (!part.empty()) notes.push_back(part);
  }
  row.push_back(join(notes, "; "));
  return row;
}

// Steps of bodies stand under the step that runs them: 3.0.1 is the second step of its first body.
void append_inside(Table& table, const Report& r, const Plan::Step& outer, const StepPath& path) {
  for (size_t b = 0; b < outer.bodies.size(); ++b) {
    for (size_t i = 0; i < outer.bodies[b].steps.size(); ++i) {
      const Plan::Step& s = outer.bodies[b].steps[i];
      StepPath at = path;
      at.insert(at.end(), {int(b), int(i)});
      const auto times = r.inside.find(at);
      const bool seen = times != r.inside.end();
      const std::string indent(at.size() - 1, ' ');
      table.add(step_row(s, join(at, "."), cat(indent, s.name.empty() ? "-" : s.name), !r.seconds.empty(),
                         seen ? times->second.seconds : NAN, "",
                         seen ? cat("median of ", times->second.seen) : ""));
      append_inside(table, r, s, at);
    }
  }
}

void append_steps(std::string& out, const Report& r) {
  const bool timed = !r.seconds.empty();
  std::vector<Column> columns = {{"#", true}, {"node"},        {"op"},      {"kernel"},
                                 {"result"},  {"MFLOP", true}, {"KB", true}};
  if (timed) columns.insert(columns.end(), {{"us", true}, {"GFLOP/s", true}, {"of peak", true}});
  columns.push_back({"note"});
  Table table(std::move(columns));
  for (size_t i = 0; i < r.plan.steps.size(); ++i) {
    const std::string share = r.roofline.empty() ? "" : cat(fixed(r.roofline[i] * 100, 0), "%");
    table.add(step_row(r.plan.steps[i], cat(i), r.names[i], timed, timed ? r.seconds[i] : NAN, share, ""));
    append_inside(table, r, r.plan.steps[i], {int(i)});
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

// `outer`: of the body that the plan is, with its number.
void find_reference_steps(const Plan& plan, const StepPath& outer, std::vector<StepPath>& out) {
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    StepPath path = outer;
    path.push_back(int(i));
    if (plan.steps[i].by_rule) out.push_back(path);
    for (size_t b = 0; b < plan.steps[i].bodies.size(); ++b) {
      StepPath body = path;
      body.push_back(int(b));
      find_reference_steps(plan.steps[i].bodies[b], body, out);
    }
  }
}

// "r scan: p cumprod"
std::string path_text(const Plan& plan, const StepPath& path) {
  std::string out;
  const Plan* at = &plan;
  for (size_t i = 0; i < path.size(); i += 2) {
    const Plan::Step& s = at->steps[size_t(path[i])];
    out += cat(i > 0 ? ": " : "", s.name.empty() ? "-" : s.name, " ", s.op);
    if (i + 1 < path.size()) at = &s.bodies[size_t(path[i + 1])];
  }
  return out;
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

Report runtime::make_report(const Core& core, const backend::Executable& program,
                            const std::vector<passes::Remark>& remarks) {
  Report r;
  r.graph = core.graph().name();
  r.device = core.options().device;
  r.threads = core.builder().threads();
  r.plan = program.plan();
  r.remarks = core.remarks();
  r.remarks.insert(r.remarks.end(), remarks.begin(), remarks.end());
  r.memory = memory_of(r.plan, core);
  for (const auto& form : program.packings()) r.memory.packed += form.packing.bytes;
  if (!core.builder().backend().memory().on_host()) add_copies(r, core, program);
  for (const Plan::Step& s : r.plan.steps) r.names.push_back(s.name.empty() ? "-" : s.name);
  return r;
}

Report CompiledGraph::report(const std::map<std::string, Shape>& inputs) {
  check_alone("report");
  if (!inputs.empty() || !instance_) plan(inputs);
  Report r = runtime::make_report(*core_, *instance_->program, instance_->remarks);
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
  const auto program = core.build(core.sizes_of("estimate_memory", inputs)).program;
  MemoryUse use = memory_of(program->plan(), core);
  for (const auto& form : program->packings()) use.packed += form.packing.bytes;
  return use;
}

void Report::add_times(const Profile& profile) {
  seconds = profile.medians(plan.steps.size());
  inside = profile.inside();
  if (profile.limits()) {
    for (size_t i = 0; i < seconds.size(); ++i)
      roofline.push_back(roofline_share(*profile.limits(), plan.steps[i], seconds[i]));
  }
}

std::vector<StepPath> Report::reference_steps() const {
  std::vector<StepPath> out;
  find_reference_steps(plan, {}, out);
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
  if (sent + fetched > 0)
    out += cat("copied in every run: ", sent, " bytes to the device, ", fetched, " bytes back\n");
  if (!prologue.empty()) out += cat("once, when weights are set: ", join(prologue), "\n");
  if (const auto slow = reference_steps(); !slow.empty()) {
    std::vector<std::string> list;
    for (const StepPath& path : slow) list.push_back(path_text(plan, path));
    out += cat("run by the reference rule", device == "cpu" || device == "ref" ? "" : " on the host",
               ", slowly: ", join(list), "\n");
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
