#include "apps/rlx/build_bodies.h"

#include "rlx/ir/leaves.h"
#include "rlx/ops/control/custom_fn.h"
#include "rlx/ops/control/fused.h"

namespace rlx::cli {

std::string BodyWriter::call(const ir::Node& n) {
  std::string out = cat("Call(record<", cpp_text(n.op->name), ">())");
  for (const ir::FieldInfo& f : n.op->fields) {
    // Of a function with derivatives of its own only the function runs.
    if (n.is<ops::CustomFn>() && f.name != "fwd_body") continue;
    const ir::AttrValue value = f.get(n.attrs.get());
    if (ir::same_value(value, f.default_value)) continue;
    out += cpp_set(f, value, data_,
                   [&](const ir::GraphRef& body) { return function_for(body, !n.is<ops::Fused>()); });
  }
  return out;
}

// A body that is planned when the program is created stands as the backend joins its nodes.
std::string BodyWriter::function_for(const ir::GraphRef& body, bool planned) {
  if (body == nullptr) return "nullptr";
  for (const auto& [known, name] : functions_) {
    if (known == body) return cat(name, "()");
  }
  const std::optional<ir::Graph> joined = planned && joins_ ? joins_->grouped(*body) : std::nullopt;
  const std::string lines = lines_of(joined ? *joined : *body);  // functions that it calls come first
  const std::string name = cat("body_", functions_.size());
  functions_.emplace_back(body, name);
  text_ += cat("rlx::ir::GraphRef ", name, "() {\n  static const rlx::ir::GraphRef made = [] {\n    Body g(",
               cpp_text(body->name()), ");\n", lines, "  }();\n  return made;\n}\n\n");
  return cat(name, "()");
}

std::string BodyWriter::lines_of(const ir::Graph& g) {
  std::string out;
  const auto value = [&](ir::Value v) {
    const std::string node = cat("v", v.node);
    return v.index == 0 ? node : cat("result(", node, ", ", v.index, ")");
  };
  const auto values = [&](const ir::Values& list) {
    std::vector<std::string> words;
    for (const ir::Value v : list) words.push_back(value(v));
    return cat("{", join(words), "}");
  };
  for (const ir::Node* n : g.nodes()) {
    out += cat("    [[maybe_unused]] const Value v", n->id, " = ");
    if (n->op->traits.leaf) {
      out += cat("g.", n->is<ir::Param>() ? "param(" : "input(", cpp_text(ir::leaf_name(*n)), ", ",
                 cpp_type(n->shapes[0]), ");\n");
    } else {
      out += cat("g.add(", call(*n), ", ", values(n->inputs),
                 n->name.empty() ? "" : cat(", ", cpp_text(n->name)), ");\n");
    }
  }
  return out + cat("    return g.done(", values(g.outputs()), ");\n");
}

}  // namespace rlx::cli
