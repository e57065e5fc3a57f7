// The report as JSON; keys are part of the interface.
#include "rlx/base/json_write.h"
#include "rlx/runtime/report.h"

namespace rlx {
namespace {

using backend::Plan;

void write_places(JsonWriter& out, std::string_view key, const Plan& plan,
                  const std::vector<Plan::Place>& places) {
  out.key(key);
  out.begin_array();
  for (const Plan::Place& p : places) {
    out.begin_object();
    out.member("type", cat(p.shape));
    out.member("buffer", plan.buffers[size_t(p.buffer)].name);
    out.member("offset", p.offset);
    out.member("strides", p.layout.strides);
    out.end_object();
  }
  out.end_array();
}

void write_buffers(JsonWriter& out, const Plan& plan) {
  out.key("buffers");
  out.begin_array();
  for (const Plan::Buffer& b : plan.buffers) {
    out.begin_object();
    out.member("name", b.name);
    out.member("kind", backend::buffer_kind_name(b.kind));
    out.member("bytes", b.bytes);
    out.member("offset", b.offset);
    out.member("first", b.first);
    out.member("last", b.last);
    if (b.state >= 0) out.member("state", plan.buffers[size_t(b.state)].name);
    out.end_object();
  }
  out.end_array();
}

void write_declined(JsonWriter& out, const std::vector<backend::Declined>& declined) {
  out.key("declined");
  out.begin_array();
  for (const backend::Declined& d : declined) {
    out.begin_object();
    out.member("kernel", d.kernel);
    out.member("reason", d.reason);
    out.end_object();
  }
  out.end_array();
}

void write_plan(JsonWriter& out, const Plan& plan, const Report& r, const StepPath& path);

// `path` ends with the step's number in its plan.
void write_step(JsonWriter& out, const Plan& plan, const Report& r, const StepPath& path) {
  const auto i = size_t(path.back());
  const bool top = path.size() == 1;
  const Plan::Step& s = plan.steps[i];
  out.begin_object();
  out.member("name", top ? r.names[i] : s.name);
  out.member("node", s.node == ir::kNoNode ? int64_t(-1) : int64_t(s.node));
  out.member("op", s.op);
  out.member("kernel", s.kernel);
  if (!s.note.empty()) out.member("note", s.note);
  if (!s.origin.empty()) out.member("origin", s.origin);
  if (s.by_rule) out.member("by_rule", true);
  out.member("operations", s.cost.operations);
  out.member("bytes", s.cost.bytes);
  if (top && !r.seconds.empty()) out.member("seconds", r.seconds[i]);
  if (top && !r.roofline.empty()) out.member("roofline_share", r.roofline[i]);
  if (const auto times = r.inside.find(path); times != r.inside.end()) {
    out.member("seconds", times->second.seconds);
    out.member("seen", int64_t(times->second.seen));
  }
  write_places(out, "operands", plan, s.in);
  write_places(out, "results", plan, s.out);
  write_declined(out, s.declined);
  if (!s.bodies.empty()) {
    out.key("bodies");
    out.begin_array();
    for (size_t b = 0; b < s.bodies.size(); ++b) {
      StepPath body = path;
      body.push_back(int(b));
      write_plan(out, s.bodies[b], r, body);
    }
    out.end_array();
  }
  out.end_object();
}

// `path`: of the step whose body this is, and the number of the body; empty for the plan itself.
void write_plan(JsonWriter& out, const Plan& plan, const Report& r, const StepPath& path) {
  out.begin_object();
  out.member("graph", plan.graph);
  out.member("arena_bytes", plan.arena_bytes);
  out.member("live_bytes", plan.live_bytes);
  out.member("timeline", memory_timeline(plan));
  write_buffers(out, plan);
  out.key("steps");
  out.begin_array();
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    StepPath here = path;
    here.push_back(int(i));
    write_step(out, plan, r, here);
  }
  out.end_array();
  out.end_object();
}

}  // namespace

std::string Report::json(int indent) const {
  JsonWriter out({.indent = indent, .replace_invalid = true});
  out.begin_object();
  out.member("format", "rlx.report");
  out.member("version", 1);
  out.member("graph", graph);
  out.member("device", device);
  out.member("threads", threads);
  out.key("memory");
  out.begin_object();
  out.member("total", memory.total());
  out.member("weights", memory.weights);
  out.member("packed", memory.packed);
  out.member("constants", memory.constants);
  out.member("states", memory.states);
  out.member("inputs", memory.inputs);
  out.member("outputs", memory.outputs);
  out.member("arena", memory.arena);
  out.member("live", memory.live);
  out.end_object();
  out.member("bytes_sent", sent);
  out.member("bytes_fetched", fetched);
  out.key("plan");
  write_plan(out, plan, *this, {});
  out.member("prologue", prologue);
  out.key("fusion");
  out.begin_array();
  for (const passes::Remark& r : remarks) {
    if (r.on_request) continue;
    out.begin_object();
    out.member("node", r.node);
    out.member("joined", r.applied);
    out.member("text", r.text);
    out.end_object();
  }
  out.end_array();
  out.end_object();
  return out.take();
}

}  // namespace rlx
