#include "rlx/backend/plan.h"

#include <algorithm>
#include <set>

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

// Bytes [begin, end) that a place touches inside its buffer.
std::pair<int64_t, int64_t> extent(const Plan::Place& p) {
  int64_t low = 0, high = 0;
  for (int i = 0; i < p.shape.rank(); ++i) {
    const int64_t size = p.shape.dim(i).value();
    if (size == 0) return {0, 0};
    const int64_t reach = (size - 1) * p.layout.strides[size_t(i)];
    (reach < 0 ? low : high) += reach;
  }
  const auto element = int64_t(dtype_size(p.shape.dtype()));
  return {p.offset + low * element, p.offset + (high + 1) * element};
}

}  // namespace

std::vector<Plan> Step::bodies() const { return {}; }

std::string_view buffer_kind_name(BufferKind k) { return kKinds[size_t(k)]; }

std::string Plan::text() const {
  std::string out;
  append_plan(out, *this, "");
  return out;
}

std::vector<std::string> verify_plan(const Plan& plan) {
  std::vector<std::string> wrong;
  std::vector<bool> written(plan.buffers.size(), false);
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Plan::Buffer& b = plan.buffers[i];
    written[i] = b.kind == BufferKind::leaf || b.kind == BufferKind::constant;
    if (!in_arena(b.kind) || b.last < 0) continue;
    if (b.offset % 64 != 0) wrong.push_back(cat(b.name, ": offset ", b.offset, " is not a multiple of 64"));
    if (b.offset < 0 || b.offset + b.bytes > plan.arena_bytes)
      wrong.push_back(cat(b.name, ": ends at ", b.offset + b.bytes, ", the arena at ", plan.arena_bytes));
    for (size_t k = 0; k < i; ++k) {
      const Plan::Buffer& o = plan.buffers[k];
      if (!in_arena(o.kind) || o.last < 0 || o.bytes == 0 || b.bytes == 0) continue;
      const bool together = o.first <= b.last && b.first <= o.last;
      if (together && o.offset < b.offset + b.bytes && b.offset < o.offset + o.bytes)
        wrong.push_back(cat(b.name, " and ", o.name, " overlap and are in use at the same time"));
    }
  }
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const auto check = [&](const Plan::Place& p, std::string_view what) {
      const Plan::Buffer& b = plan.buffers[size_t(p.buffer)];
      const auto [begin, end] = extent(p);
      if (begin < end && (begin < 0 || end > b.bytes))  // an empty place touches nothing
        wrong.push_back(
            cat("step ", s, ": ", what, " ", b.name, " touches bytes ", begin, " to ", end, " of ", b.bytes));
      if (int(s) < b.first || int(s) > b.last)
        wrong.push_back(
            cat("step ", s, ": ", what, " ", b.name, " is in use from step ", b.first, " to ", b.last));
    };
    const Plan::Step& step = plan.steps[s];
    for (size_t i = 0; i < step.in.size(); ++i) {
      if (i < step.packed.size() && step.packed[i]) continue;
      check(step.in[i], "operand");
      if (!written[size_t(step.in[i].buffer)])
        wrong.push_back(cat("step ", s, ": operand ", plan.buffers[size_t(step.in[i].buffer)].name,
                            " was never written"));
    }
    for (const Plan::Place& p : step.out) {
      check(p, "result");
      if (plan.buffers[size_t(p.buffer)].kind == BufferKind::leaf ||
          plan.buffers[size_t(p.buffer)].kind == BufferKind::constant)
        wrong.push_back(
            cat("step ", s, ": result ", plan.buffers[size_t(p.buffer)].name, " is not to be written"));
      written[size_t(p.buffer)] = true;
    }
    for (const Plan& body : step.bodies) {
      for (const std::string& w : verify_plan(body)) wrong.push_back(cat("step ", s, ": ", w));
    }
  }
  return wrong;
}

}  // namespace rlx::backend
