#include "apps/rlx/explain.h"

#include <algorithm>
#include <set>

#include "rlx/base/json_write.h"
#include "rlx/base/text.h"
#include "rlx/ir/bodies.h"
#include "rlx/ops/control/fused.h"

namespace rlx::cli {
namespace {

// The statement of a node, without its bodies.
std::string statement(const ir::Graph& g, const ir::Node& n) {
  std::vector<std::string> operands, types;
  for (const ir::Value v : n.inputs) operands.push_back(g.node(v).label());
  for (const Shape& s : n.shapes) types.push_back(cat(s));
  return cat(n.op->name, "(", join(operands), ") : ", join(types));
}

bool holds(const ir::Node& n, const std::string& name) {
  bool found = false;
  ir::for_each_body(n, [&](const ir::FieldInfo&, const ir::GraphRef& body) {
    found = found || ir::any_node(*body, [&](const ir::Node& inner) { return inner.name == name; });
  });
  return found;
}

// The steps that run a node, also those in bodies. Those are found by names, since a loop that threads share runs a copy of its body.
void find_steps(const backend::Plan& plan, const ir::Graph& g, const std::string& path, Explanation& out) {
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const backend::Plan::Step& step = plan.steps[i];
    const auto nodes = g.nodes();
    const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const ir::Node* n) {
      const bool runs = path.empty() ? n->id == step.node : n->name == step.name && !n->name.empty();
      return runs && (n->name == out.node || holds(*n, out.node));
    });
    if (found == nodes.end()) continue;
    out.steps.push_back({cat(path, i), step.kernel, step.note, step.declined, step.sources});
    size_t body = 0;
    ir::for_each_body(**found, [&](const ir::FieldInfo&, const ir::GraphRef& inner) {
      if (body < step.bodies.size()) find_steps(step.bodies[body], *inner, cat(path, i, ".", body, "."), out);
      ++body;
    });
  }
}

}  // namespace

Explanation explain(const runtime::Stages& c, const std::string& name) {
  Explanation out{.node = name};
  std::string last;
  std::set<std::string> pieces;
  bool known = false;
  for (const runtime::StageGraph& s : c.stages) {
    std::string now;
    for (const ir::Node* n : s.graph.nodes()) {
      if (n->name == name) now = statement(s.graph, *n);
      if (!holds(*n, name)) continue;
      now = cat("inside ", n->label(), " = ", statement(s.graph, *n));
      if (n->is<ops::Fused>()) pieces.insert(n->name);
    }
    known = known || !now.empty();
    if (now == last || (s.name == "prologue" && now.empty())) continue;
    out.stages.push_back(
        {s.name, now.empty() ? "gone: another node gives its value, or nothing reads it" : now});
    last = now;
  }
  if (!known) throw invalid("opt: no node is called '", name, "'; nodes without a name are %0, %1, ..");
  if (!c.report) return out;
  for (const passes::Remark& r : c.report->remarks) {
    if (r.node == name || (!r.on_request && pieces.contains(r.node))) out.remarks.push_back(r);
  }
  find_steps(c.report->plan, c.stages.back().graph, "", out);
  return out;
}

std::string Explanation::text() const {
  std::string out;
  for (const Stage& s : stages) out += cat(s.stage, ": ", s.statement, "\n");
  for (const passes::Remark& r : remarks)
    out += cat("fusion: ", r.node == node ? "" : cat(r.node, ": "), r.text, "\n");
  for (const Step& s : steps) {
    out += cat("step ", s.path, ": ", s.kernel, s.note.empty() ? "" : cat(" (", s.note, ")"), "\n");
    for (const backend::Declined& d : s.declined) out += cat("  declined: ", d.kernel, ": ", d.reason, "\n");
    for (const backend::SourceText& text : s.sources) out += cat("  kernel as text:\n", *text, "\n");
  }
  return out;
}

std::string Explanation::json() const {
  JsonWriter out({.indent = 2, .replace_invalid = true});
  out.begin_object();
  out.member("node", node);
  out.key("stages"), out.begin_array();
  for (const Stage& s : stages) {
    out.begin_object();
    out.member("stage", s.stage);
    out.member("statement", s.statement);
    out.end_object();
  }
  out.end_array();
  out.key("fusion"), out.begin_array();
  for (const passes::Remark& r : remarks) {
    out.begin_object();
    out.member("node", r.node);
    out.member("joined", r.applied);
    out.member("text", r.text);
    out.end_object();
  }
  out.end_array();
  out.key("steps"), out.begin_array();
  for (const Step& s : steps) {
    out.begin_object();
    out.member("step", s.path);
    out.member("kernel", s.kernel);
    if (!s.note.empty()) out.member("note", s.note);
    out.key("declined"), out.begin_array();
    for (const backend::Declined& d : s.declined) {
      out.begin_object();
      out.member("kernel", d.kernel);
      out.member("reason", d.reason);
      out.end_object();
    }
    out.end_array();
    out.key("sources"), out.begin_array();
    for (const backend::SourceText& text : s.sources) out.value(*text);
    out.end_array();
    out.end_object();
  }
  out.end_array();
  out.end_object();
  return out.take();
}

}  // namespace rlx::cli
