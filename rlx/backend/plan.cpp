#include "rlx/backend/plan.h"

#include <algorithm>

namespace rlx::backend {
namespace {

constexpr std::string_view kKinds[] = {"leaf", "output", "constant", "activation", "workspace"};

bool in_arena(BufferKind k) { return k == BufferKind::activation || k == BufferKind::workspace; }

std::string place_text(const Plan& plan, const Plan::Place& p) {
  const Plan::Buffer& b = plan.buffers[size_t(p.buffer)];
  std::string out = cat(b.name);
  if (p.offset != 0) out += cat("+", p.offset);
  if (!p.layout.is_row_major(p.shape.dims())) out += cat(" ", p.layout);
  return out;
}

void append_plan(std::string& out, const Plan& plan, const std::string& indent) {
  out += cat(indent, "plan of ", plan.graph, ": ", plan.steps.size(), " steps, arena ", plan.arena_bytes,
             " bytes, largest live set ", plan.live_bytes, "\n");
  for (const Plan::Buffer& b : plan.buffers) {
    if (b.last < 0 && in_arena(b.kind)) continue;
    out += cat(indent, "  ", kKinds[size_t(b.kind)], " ", b.name, ": ", b.bytes, " bytes");
    if (in_arena(b.kind)) out += cat(" at ", b.offset);
    if (b.state >= 0) out += cat(" in the place of ", plan.buffers[size_t(b.state)].name);
    if (b.last >= 0) out += cat(", steps ", b.first, " to ", b.last);
    out += "\n";
  }
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Plan::Step& s = plan.steps[i];
    std::vector<std::string> in, to;
    for (size_t k = 0; k < s.in.size(); ++k)
      in.push_back(place_text(plan, s.in[k]) + (k < s.packed.size() && s.packed[k] ? " packed" : ""));
    for (const Plan::Place& p : s.out) to.push_back(place_text(plan, p));
    out += cat(indent, "  step ", i, ": ", join(to), " = ", s.kernel, "(", join(in), ")");
    if (!s.note.empty()) out += cat("  // ", s.note);
    out += "\n";
    for (const Plan& body : s.bodies) append_plan(out, body, indent + "    ");
  }
}

}  // namespace

std::vector<Plan> Step::bodies() const { return {}; }

bool runs_by_rule(const Plan::Step& s) {
  return s.by_rule || std::any_of(s.bodies.begin(), s.bodies.end(), [](const Plan& body) {
           return std::any_of(body.steps.begin(), body.steps.end(), runs_by_rule);
         });
}

std::string_view buffer_kind_name(BufferKind k) { return kKinds[size_t(k)]; }

std::string Plan::text() const {
  std::string out;
  append_plan(out, *this, "");
  return out;
}

}  // namespace rlx::backend
