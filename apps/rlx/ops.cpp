// rlx ops: the operators, for people, programs and the documents.

#include "apps/rlx/command.h"
#include "apps/rlx/output.h"
#include "rlx/backend/coverage.h"
#include "rlx/backend/cpu/nodes/device.h"
#include "rlx/base/json_write.h"
#include "rlx/ir/text.h"
#include "rlx/ops/all.h"
#include "rlx/transform/coverage.h"

namespace rlx::cli {
namespace {

using ir::FieldInfo;
using ir::OpDef;

std::string_view kind_name(ir::AttrKind kind) {
  constexpr std::string_view kNames[] = {"bool",  "int", "real", "string", "choice",  "dtype", "ints",
                                         "reals", "dim", "dims", "shape",  "literal", "graph"};
  return kNames[size_t(kind)];
}

std::string default_text(const FieldInfo& f) {
  std::string out;
  ir::append_attr(out, f, f.default_value);
  return out;
}

std::string signature(const OpDef& op) {
  return cat(op.name, "(", join(op.operands), ") -> ", join(op.results));
}

std::vector<std::string> traits(const OpDef& op) {
  std::vector<std::string> out;
  const auto add = [&](bool has, const char* name) {
    if (has) out.emplace_back(name);
  };
  add(op.traits.leaf, "leaf");
  add(op.is_composite(), "composite");
  add(op.traits.elementwise, "elementwise");
  add(op.traits.linear, "linear");
  add(op.traits.commutative, "commutative");
  add(op.traits.contraction, "contraction");
  add(op.traits.block, "block");
  add(op.traits.zero_gradient, "zero gradient");
  add(op.traits.surrogate_gradient, "surrogate gradient");
  add(!op.traits.pure, "impure");
  return out;
}

void write_json(JsonWriter& out, const OpDef& op) {
  out.begin_object();
  out.member("name", op.name), out.member("summary", op.summary), out.member("doc", op.doc);
  out.member("operands", op.operands), out.member("results", op.results), out.member("traits", traits(op));
  out.key("attributes"), out.begin_array();
  for (const FieldInfo& f : op.fields) {
    out.begin_object();
    out.member("name", f.name), out.member("kind", kind_name(f.kind)), out.member("optional", f.optional);
    out.member("default", default_text(f));
    if (!f.choices.empty()) out.member("choices", f.choices);
    out.member("doc", f.doc);
    out.end_object();
  }
  out.end_array();
  out.end_object();
}

std::string as_json(const std::vector<const OpDef*>& ops) {
  JsonWriter out({.indent = 2});
  out.begin_array();
  for (const OpDef* op : ops) write_json(out, *op);
  out.end_array();
  return out.take() + "\n";
}

std::string as_markdown(const OpDef& op) {
  std::string out = cat("## ", op.name, "\n\n", op.summary, "\n\n    ", signature(op), "\n\n", op.doc, ".\n");
  if (const auto words = traits(op); !words.empty()) out += cat("\n", join(words), "\n");
  if (op.fields.empty()) return out;
  out += "\n| attribute | kind | default | meaning |\n|---|---|---|---|\n";
  for (const FieldInfo& f : op.fields) {
    out +=
        cat("| `", f.name, "` | ", f.choices.empty() ? std::string(kind_name(f.kind)) : join(f.choices, " "),
            " | ", f.kind == ir::AttrKind::literal ? "" : default_text(f), " | ", f.doc, " |\n");
  }
  return out;
}

std::string as_text(const OpDef& op) {
  std::string out = cat(signature(op), "\n  ", op.summary, "\n  ", op.doc, "\n");
  if (const auto words = traits(op); !words.empty()) out += cat("  ", join(words), "\n");
  for (const FieldInfo& f : op.fields) {
    out += cat("  ", f.name, ": ", f.choices.empty() ? std::string(kind_name(f.kind)) : join(f.choices, "|"),
               " = ", default_text(f), "  ", f.doc, "\n");
  }
  return out;
}

// One row per operator: where each transform's rule comes from.
std::string derivatives_table() {
  std::string out =
      "# Derivatives and batching of every operator\n\n"
      "Where each rule comes from. The conformance run checks every row against differences, the "
      "dot-product\n"
      "identity, second order and a loop over examples.\n\n"
      "| operator | vjp | jvp | vmap | note |\n|---|---|---|---|---|\n";
  for (const auto& [name, op] : ops::table().all()) {
    const auto c = transform::coverage(*op);
    out += cat("| `", name, "` | ", c.vjp, " | ", c.jvp, " | ", c.vmap, " | ", c.note, " |\n");
  }
  return out;
}

// One row per operator: what runs its samples on the CPU.
std::string coverage_table() {
  std::string out =
      "# What runs every operator on the CPU\n\n"
      "Found by building the samples of each operator that have elements, operands as weights. kernel: it has one of its\n"
      "own; decomposition: kernels run what it is made of; view: nothing is moved; reference: the plain rule runs the types\n"
      "listed at the end of the row, and the report of a run names the step. Control flow runs its bodies' kernels.\n\n"
      "| operator | runs as | kernels | by the reference rule |\n|---|---|---|---|\n";
  size_t reference = 0;
  for (const auto& [name, op] : ops::table().all()) {
    if (op->traits.leaf) continue;
    const backend::Coverage c = backend::coverage(*op, cpu::device());
    if (c.samples == 0) continue;
    reference += !c.reference.empty();
    out += cat("| `", name, "` | ", c.kind(), " | ", join(c.kernels, ", "), " | ", join(c.reference, "<br>"),
               " |\n");
  }
  return cat(out, "\n", reference, " operators have samples that the reference rule runs.\n");
}

}  // namespace

void add_ops(Command app) {
  struct Options {
    bool json = false, markdown = false, derivatives = false, coverage = false;
    std::string name;
  };
  Command command = app.add_subcommand("ops", "list the operators, or explain one");
  auto o = std::make_shared<Options>();
  const Argument json = command.add_flag("--json", o->json, "as JSON");
  command.add_flag("--markdown", o->markdown, "as the document docs/ops.md").excludes(json);
  command.add_flag("--derivatives", o->derivatives, "a table of how each is differentiated and batched");
  command.add_flag("--coverage", o->coverage, "a table of what runs each on the CPU");
  command.add_option("NAME", o->name, "one operator");
  command.callback([o] {
    if (o->derivatives) {
      print(derivatives_table());
      return;
    }
    if (o->coverage) {
      print(coverage_table());
      return;
    }
    std::vector<const OpDef*> shown;
    if (!o->name.empty()) {
      shown.push_back(&ops::table().at(o->name));
    } else {
      for (const auto& [name, op] : ops::table().all()) shown.push_back(op);
    }
    if (o->json) return print(as_json(shown));
    std::vector<std::string> parts;
    for (const OpDef* op : shown) {
      if (o->markdown) {
        parts.push_back(as_markdown(*op));
      } else if (o->name.empty()) {
        parts.push_back(cat(op->name, std::string(op->name.size() < 28 ? 28 - op->name.size() : 1, ' '),
                            op->summary, "\n"));
      } else {
        parts.push_back(as_text(*op));
      }
    }
    print(join(parts, o->markdown ? "\n" : ""));
  });
}

}  // namespace rlx::cli
