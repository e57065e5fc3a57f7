#include "apps/rlx/build_plan.h"

#include <algorithm>
#include <set>

#include "apps/rlx/build_bodies.h"
#include "rlx/backend/cpu/nodes/device.h"
#include "rlx/ir/bodies.h"
#include "rlx/ir/leaves.h"
#include "rlx/ops/control/fused.h"
#include "rlx/ops/table.h"
#include "rlx/runtime/core.h"

namespace rlx::cli {
namespace {

using backend::BufferKind;
using backend::Plan;

// ---- the families of kernels that a program links ----

class Families {
 public:
  Families() {
    for (const cpu::Family& f : cpu::families()) f.add(tables_.emplace_back());
  }

  /// The one with the kernel that was chosen.
  void add(const ir::OpDef& op, std::string_view kernel) {
    for (const bool general : {false, true}) {
      for (size_t i = 0; i < tables_.size(); ++i) {
        const backend::Kernels& kernels = general ? tables_[i].general() : tables_[i].of(op);
        if (std::any_of(kernels.begin(), kernels.end(), [&](const auto& k) { return k.name == kernel; })) {
          used_.insert(i);
          return;
        }
      }
    }
    RLX_CHECK(false, "no family has kernel ", kernel, " for ", op.name);
  }

  /// Bodies are planned anew, also in parts and on another number of threads, so every kernel that their nodes may ask is there.
  void add_bodies(const ir::Node& n, const backend::Grouping* joins) {
    if (n.is<ops::Fused>()) return;  // a region, which is not planned
    for (size_t i = 0; i < tables_.size(); ++i) {
      if (!tables_[i].general().empty()) used_.insert(i);
    }
    ir::for_each_body(n, [&](const ir::FieldInfo&, const ir::GraphRef& body) {
      const std::optional<ir::Graph> joined = joins ? joins->grouped(*body) : std::nullopt;
      for (const ir::Node* inner : (joined ? *joined : *body).nodes()) {
        for (size_t i = 0; i < tables_.size(); ++i) {
          if (!tables_[i].of(*inner->op).empty()) used_.insert(i);
        }
        add_bodies(*inner, joins);
      }
    });
  }

  std::string text() const {
    std::vector<std::string> words;
    for (const size_t i : used_) {
      const std::string_view name = cpu::families()[i].name;
      words.push_back(cat(name.find(':') == std::string_view::npos ? "rlx::cpu::" : "rlx::", name));
    }
    return join(words);
  }

 private:
  std::vector<backend::KernelTable> tables_;
  std::set<size_t> used_;  // in the order of the backend
};

// ---- what programs cannot run ----

// Kernels that are asked for every node say nothing of this one.
bool is_general(std::string_view kernel) {
  const backend::Kernels& general = cpu::device().kernels().general();
  return std::any_of(general.begin(), general.end(), [&](const auto& k) { return k.name == kernel; });
}

void find_refused(const Plan& plan, std::vector<std::string>& out) {
  for (const Plan::Step& s : plan.steps) {
    if (s.kernel == "reference") {
      std::vector<std::string> reasons;
      for (const backend::Declined& d : s.declined) {
        if (!is_general(d.kernel)) reasons.push_back(cat(d.kernel, ": ", d.reason));
      }
      out.push_back(cat("step '", s.name, "' (", s.op, s.origin.empty() ? "" : cat(", ", s.origin),
                        ") runs by its reference rule",
                        reasons.empty() ? "" : cat(" (", join(reasons, "; "), ")")));
    }
    for (const Plan& body : s.bodies) find_refused(body, out);
  }
}

void refuse_reference_steps(const Plan& plan) {
  std::vector<std::string> refused;
  find_refused(plan, refused);
  if (!refused.empty())
    throw invalid(
        "build: ", join(refused, "; "),
        "; built programs have kernels only: write it with operators and types that docs/coverage.md lists with one");
}

// ---- the plan ----

class PlanWriter {
 public:
  PlanWriter(const ir::Graph& graph, const Plan& plan, const runtime::Prepared& prepared,
             const backend::Executable& program, const backend::Grouping* joins, DataFile& data)
      : graph_(graph),
        plan_(plan),
        prepared_(prepared),
        program_(program),
        joins_(joins),
        bodies_(joins, data),
        data_(data) {}

  BuiltPlan run() {
    name_buffers();
    std::string buffers, steps, calls;
    for (size_t b = 0; b < plan_.buffers.size(); ++b) {
      if (!names_[b].empty()) buffers += buffer_line(b);
    }
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      steps += step_function(s);
      calls += cat(s % 12 == 0 ? "\n      " : " ", "step_", s, ",");
    }
    std::string all = "enum Buffer : int {";
    for (size_t b = 0, k = 0; b < names_.size(); ++b) {
      if (!names_[b].empty()) all += cat(k++ % 8 == 0 ? "\n  " : " ", names_[b], ",");
    }
    all += "\n};\n\nvoid add_buffers(Program& p) {\n" + buffers + "}\n\n" + bodies_.text() + steps +
           "void add_steps(Program& p) {\n";
    if (!calls.empty())
      all += "  for (void (*step)(Program&) : {" + calls + "\n       }) {\n    step(p);\n  }\n";
    all += "}\n";
    return {.graph = plan_.graph,
            .families = families_.text(),
            .text = std::move(all),
            .summary = cat(plan_.steps.size(), " steps, arena ", plan_.arena_bytes, " bytes"),
            .arena_bytes = plan_.arena_bytes};
  }

 private:
  // What took the place of another one has no buffer any more.
  void name_buffers() {
    int number = 0;
    for (const Plan::Buffer& b : plan_.buffers) {
      const bool in_arena = b.kind == BufferKind::activation || b.kind == BufferKind::workspace;
      names_.push_back(in_arena && b.last < 0 ? "" : cpp_name(cat("b", number++), b.name));
    }
    for (const ir::Node* n : graph_.nodes()) {
      if (n->is<ir::Constant>()) constants_.push_back(n->as<ir::Constant>().value);
      if (n->is<ir::Full>())
        constants_.push_back(Literal::full(Shape::scalar(n->shapes[0].dtype()), n->as<ir::Full>().value));
    }
  }

  std::string buffer_line(size_t i) {
    const Plan::Buffer& b = plan_.buffers[i];
    const std::string head = cat("(", names_[i], ", ", cpp_text(b.name), ", ");
    switch (b.kind) {
      case BufferKind::leaf:
        return leaf_lines(b, names_[i], head);
      case BufferKind::output:
        return cat("  p.output", head, b.bytes, ", ", b.index, ");\n");
      case BufferKind::constant:
        return cat("  p.constant", head, cpp_literal(constants_[size_t(b.index)], data_), ");\n");
      case BufferKind::activation:
        return cat("  p.activation", head, b.bytes, ", ", b.offset, ");\n");
      case BufferKind::workspace:
        return cat("  p.workspace(", names_[i], ", ", b.bytes, ", ", b.offset, ");\n");
    }
    return {};
  }

  std::string leaf_lines(const Plan::Buffer& b, const std::string& name, const std::string& head) {
    const ir::Node& leaf = graph_.node(graph_.leaves()[size_t(b.index)]);
    if (!leaf.is<ir::Param>()) return cat("  p.input", head, b.bytes, ");\n");
    const auto value = prepared_.weights.find(b.name);
    std::string out = cat("  p.weight", head, b.bytes, ", ",
                          value == prepared_.weights.end() ? "nullptr" : data_.add(value->second), ");  // ",
                          leaf.shapes[0], "\n");
    for (const StoredForm& f : prepared_.forms) {
      const auto asked = program_.packings();
      const bool used = std::any_of(asked.begin(), asked.end(), [&](const auto& w) {
        return size_t(w.leaf) == f.leaf && w.packing.form == f.form;
      });
      if (used && f.leaf == size_t(b.index))
        out += cat("  p.form(", name, ", ", cpp_text(f.form), ", {", data_.add(f.bytes, f.owner), ", ",
                   f.bytes.size(), "});\n");
    }
    return out;
  }

  std::string place(const Plan::Place& p) const {
    const std::string offset = p.offset == 0 ? "" : cat(", ", p.offset);
    const bool straight =
        p.layout.is_row_major(p.shape.dims()) && p.layout == backend::Layout::row_major(p.shape.dims());
    return straight ? cat("at(", names_[size_t(p.buffer)], ", ", cpp_type(p.shape), offset, ")")
                    : cat("strided(", names_[size_t(p.buffer)], ", ", cpp_type(p.shape), ", ",
                          cpp_integers(p.layout.strides), offset, ")");
  }

  std::string places(const std::vector<Plan::Place>& list) const {
    std::vector<std::string> words;
    for (const Plan::Place& p : list) words.push_back(place(p));
    return cat("{", join(words), "}");
  }

  std::string step_function(size_t i) {
    const Plan::Step& s = plan_.steps[i];
    std::vector<std::string> in, out, about;
    for (size_t k = 0; k < s.in.size(); ++k)
      in.push_back(cat(plan_.buffers[size_t(s.in[k].buffer)].name, s.packed[k] ? " packed" : ""));
    for (const Plan::Place& p : s.out) out.push_back(plan_.buffers[size_t(p.buffer)].name);
    for (const std::string& word : {s.note, s.origin}) {
      if (!word.empty()) about.push_back(word);
    }
    const std::string line = cat(i, ": ", join(out), " = ", s.op, "(", join(in), ")",
                                 about.empty() ? "" : "; ", join(about, "; "));
    std::string text = cat("// ", cpp_comment(line), "\nvoid step_", i, "(Program& p) {\n");
    if (s.node == ir::kNoNode)
      return text + cat("  p.copy(", place(s.in[0]), ", ", place(s.out[0]), ");\n}\n\n");
    const ir::Node& n = graph_.node(s.node);
    families_.add(*n.op, s.kernel);
    if (!s.bodies.empty()) families_.add_bodies(n, joins_);
    const std::string workspace = s.workspace < 0 ? "-1" : names_[size_t(s.workspace)];
    const std::string last = !s.origin.empty()  ? cat(", ", workspace, ", ", cpp_text(s.origin))
                             : s.workspace >= 0 ? cat(", ", workspace)
                                                : "";
    return text + cat("  p.step(", cpp_text(s.name), ", ", cpp_text(s.kernel), ", ", bodies_.call(n),
                      ",\n         ", places(s.in), ",\n         ", places(s.out), last, ");\n}\n\n");
  }

  const ir::Graph& graph_;
  const Plan& plan_;
  const runtime::Prepared& prepared_;
  const backend::Executable& program_;
  const backend::Grouping* joins_;
  BodyWriter bodies_;
  DataFile& data_;
  Families families_;
  std::vector<std::string> names_;  // of buffers; empty: not written
  std::vector<Literal> constants_;
};

}  // namespace

BuiltPlan built_plan(CompiledGraph& f, DataFile& data) {
  runtime::Core& core = f.core();
  RLX_CHECK(core.options().device == "cpu", "device ", core.options().device);
  const runtime::Prepared prepared = core.prepared();
  RLX_CHECK(prepared.programs.size() == 1, prepared.programs.size(), " programs");
  const ir::Graph& optimised = prepared.programs[0].second;
  const backend::Builder& builder = core.builder();
  // As the builder joins it, so that steps name nodes of it.
  const auto* const joins = dynamic_cast<const backend::Grouping*>(&builder.backend());
  const std::optional<ir::Graph> joined = joins ? joins->grouped(optimised) : std::nullopt;
  const ir::Graph& graph = joined ? *joined : optimised;
  backend::Interface interface;
  for (const ir::NodeId id : graph.leaves()) interface.fixed.push_back(graph.node(id).is<ir::Param>());
  const auto program = builder.build(graph, interface);
  refuse_reference_steps(program->plan());
  BuiltPlan out = PlanWriter(graph, program->plan(), prepared, *program, joins, data).run();
  out.threads = builder.threads();
  return out;
}

}  // namespace rlx::cli
