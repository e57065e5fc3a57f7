#include "rlx/runtime/page.h"

#include <algorithm>

#include "rlx/ir/text.h"
#include "rlx/lang/inspect.h"
#include "rlx/lang/picture.h"
#include "rlx/runtime/table.h"

namespace rlx {
namespace {

using backend::BufferKind;

constexpr size_t kLargestPicture = 400;  // nodes

constexpr std::string_view kStyle = R"(
body{font:14px/1.45 system-ui,sans-serif;margin:1.5em auto;max-width:1200px;padding:0 1em;color:#223}
h1{font-size:1.4em}h2{font-size:1.1em;margin-top:1.6em;border-bottom:1px solid #cdd}
pre{background:#f6f8fa;padding:.8em;overflow:auto;font-size:12px;max-height:32em}
table{border-collapse:collapse;font-size:12.5px}td,th{padding:.15em .6em;text-align:left;border-bottom:1px solid #e4e9ee}
td.r,th.r{text-align:right;font-variant-numeric:tabular-nums}.picture{overflow:auto;border:1px solid #dde;max-height:40em}
.slow td{background:#fdeeee}.no{color:#a33}.dim{color:#789})";

// Shows one stage of several; without scripts all of them are shown.
constexpr std::string_view kScript = R"(
const choose=document.getElementById('choose'),all=[...document.querySelectorAll('.stage')];
const show=()=>all.forEach((s,i)=>s.style.display=i==choose.selectedIndex?'':'none');
choose.onchange=show;choose.selectedIndex=0;show();)";

std::string cell(std::string_view text, bool number = false) {
  return cat(number ? "<td class=\"r\">" : "<td>", xml_escaped(text), "</td>");
}

void append_stages(std::string& out, const runtime::Stages& s) {
  out += "<h2>Graph by stage</h2>\n<select id=\"choose\">";
  for (size_t i = 0; i < s.stages.size(); ++i)
    out += cat("<option>", i, " ", xml_escaped(s.stages[i].name), "</option>");
  out += "</select>\n";
  for (size_t i = 0; i < s.stages.size(); ++i) {
    const ir::Graph& g = s.stages[i].graph;
    out += cat("<div class=\"stage\"><h3>", xml_escaped(s.stages[i].name), ": ", g.len(),
               " nodes</h3>\n<pre>", xml_escaped(ir::to_annotated_text(g)), "</pre>\n");
    const bool picture = g.len() <= kLargestPicture && (i == 0 || i + 1 == s.stages.size());
    if (picture) out += cat("<div class=\"picture\">", to_svg(g), "</div>\n");
    out += "</div>\n";
  }
}

void append_rewrites(std::string& out, const runtime::Stages& s) {
  out += "<h2>Rewrites</h2>\n<table><tr><th>pass</th><th>what changed</th></tr>\n";
  for (size_t i = 1; i < s.stages.size(); ++i) {
    if (s.stages[i].name == "prologue" || s.stages[i].name == "main") continue;
    const ir::Graph& before = s.stages[i - 1].graph;
    const std::string change = before == s.stages[i].graph ? "nothing" : diff(before, s.stages[i].graph);
    out += cat("<tr>", cell(s.stages[i].name), cell(change), "</tr>\n");
  }
  out += "</table>\n";
}

// Folded: some are hundreds of lines.
void append_sources(std::string& out, const backend::Plan& plan, const std::string& path) {
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const auto& s = plan.steps[i];
    for (const backend::SourceText& text : s.sources)
      out += cat("<details><summary>", path, i, " ", xml_escaped(s.kernel), "</summary><pre>",
                 xml_escaped(*text), "</pre></details>\n");
    for (size_t b = 0; b < s.bodies.size(); ++b) append_sources(out, s.bodies[b], cat(path, i, ".", b, "."));
  }
}

// A row for each step. Those of bodies stand under the step that runs them: 3.0.1 is the second step of its first body.
void append_steps(std::string& out, const backend::Plan& plan, const std::string& path, int depth) {
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const auto& s = plan.steps[i];
    std::vector<std::string> types, declined;
    for (const auto& p : s.out) types.push_back(cat(p.shape));
    for (const auto& d : s.declined) declined.push_back(cat(d.kernel, ": ", d.reason));
    const std::string name = s.name.empty() ? "-" : s.name;
    out += cat(backend::runs_by_rule(s) ? "<tr class=\"slow\">" : "<tr>", cell(cat(path, i), true),
               "<td style=\"padding-left:", depth + 0.6, "em\">", xml_escaped(name), "</td>", cell(s.op),
               cell(s.kernel), cell(join(types)), cell(fixed(s.cost.operations * 1e-6, 3), true),
               cell(fixed(s.cost.bytes / 1024, 1), true), cell(s.note), cell(s.origin),
               cell(join(declined, "; ")), "</tr>\n");
    for (size_t b = 0; b < s.bodies.size(); ++b)
      append_steps(out, s.bodies[b], cat(path, i, ".", b, "."), depth + 1);
  }
}

void append_kernels(std::string& out, const Report& r) {
  out +=
      "<h2>Kernels</h2>\n<table><tr><th class=\"r\">#</th><th>node</th><th>operator</th><th>kernel</th><th>result</th>"
      "<th class=\"r\">MFLOP</th><th class=\"r\">KB</th><th>how</th><th>source</th><th>declined</th></tr>\n";
  append_steps(out, r.plan, "", 0);
  out += "</table>\n";
  append_sources(out, r.plan, "");
}

void append_fusion(std::string& out, const Report& r) {
  std::string list;
  for (const passes::Remark& remark : r.remarks) {
    if (remark.on_request) continue;
    list += cat(remark.applied ? "<li>" : "<li class=\"no\">", xml_escaped(remark.node), ": ",
                xml_escaped(remark.text), "</li>\n");
  }
  if (!list.empty()) out += cat("<h2>Fusion</h2>\n<ul>\n", list, "</ul>\n");
}

}  // namespace

std::string plan_svg(const backend::Plan& plan) {
  constexpr double kWidth = 1100, kHeight = 320, kLeft = 70, kBottom = 20;
  const double step = (kWidth - kLeft) / double(std::max<size_t>(1, plan.steps.size()));
  const double byte = (kHeight - kBottom) / double(std::max<int64_t>(1, plan.arena_bytes));
  std::string out = cat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", kWidth, "\" height=\"", kHeight,
                        "\" font-family=\"monospace\" font-size=\"10\">\n");
  for (const auto& b : plan.buffers) {
    const bool arena = b.kind == BufferKind::activation || b.kind == BufferKind::workspace;
    if (!arena || b.last < 0 || b.bytes == 0) continue;
    out += cat("<rect x=\"", kLeft + step * b.first, "\" y=\"",
               kHeight - kBottom - byte * double(b.offset + b.bytes), "\" width=\"",
               step * (b.last - b.first + 1), "\" height=\"", byte * double(b.bytes), "\" fill=\"",
               b.kind == BufferKind::workspace ? "#e8d3b0" : "#b9d2e6",
               "\" stroke=\"#567\" stroke-width=\"0.5\"><title>", xml_escaped(b.name), ": ", b.bytes,
               " bytes at ", b.offset, ", steps ", b.first, " to ", b.last, "</title></rect>\n");
  }
  out += cat("<text x=\"2\" y=\"12\">", xml_escaped(byte_text(plan.arena_bytes)), "</text><text x=\"2\" y=\"",
             kHeight - kBottom, "\">0</text><text x=\"", kLeft, "\" y=\"", kHeight - 5,
             "\">step 0</text><text x=\"", kWidth - 60, "\" y=\"", kHeight - 5, "\">step ",
             plan.steps.empty() ? 0 : plan.steps.size() - 1, "</text>\n</svg>\n");
  return out;
}

std::string html_page(const runtime::Stages& s) {
  const std::string name = xml_escaped(s.stages.front().graph.name());
  std::string out = cat("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", name,
                        "</title><style>", kStyle, "</style></head><body>\n<h1>graph ", name, "</h1>\n");
  if (s.report) {
    const MemoryUse& m = s.report->memory;
    out += cat("<p>", xml_escaped(s.report->device), ", ", s.report->threads, " threads, ",
               s.report->plan.steps.size(), " steps; ", byte_text(m.total()), " in all, arena ",
               byte_text(m.arena), ", weights ", byte_text(m.weights + m.packed), "</p>\n");
  } else {
    out += "<p class=\"dim\">Sizes are symbolic: no plan. Bind them to see one.</p>\n";
  }
  append_stages(out, s);
  append_rewrites(out, s);
  if (s.report) {
    out += cat("<h2>Plan over time</h2>\n<div class=\"picture\">", plan_svg(s.report->plan), "</div>\n");
    append_kernels(out, *s.report);
    append_fusion(out, *s.report);
  }
  return cat(out, "<script>", kScript, "</script>\n</body></html>\n");
}

}  // namespace rlx
