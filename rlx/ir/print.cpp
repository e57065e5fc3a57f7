#include <unordered_map>

#include "rlx/ir/leaves.h"
#include "rlx/ir/text.h"

namespace rlx::ir {
namespace {

bool is_word(std::string_view s) {
  if (s.empty() || s.ends_with('.') || s.find("..") != std::string_view::npos) return false;
  std::string plain(s);
  for (char& c : plain) c = c == '.' ? '_' : c;
  return is_identifier(plain) && s[0] != '.';
}

// Words with a meaning of their own at the start of a statement or leaf.
bool is_reserved(std::string_view s) { return s == "return" || s == "param" || s == "graph" || s == "none"; }

class Printer {
 public:
  Printer(const Graph& g, bool annotated, const StoreLiteral* store)
      : g_(g), annotated_(annotated), store_(store) {
    std::unordered_map<std::string, int> count;
    for (const Node* n : g_.nodes()) ++count[n->name];
    for (const Node* n : g_.nodes()) {
      const bool leaf = n->op->traits.leaf;
      const std::string& name = leaf ? leaf_name(*n) : n->name;
      // A leaf is always known by its own name; another node only if nobody else has it.
      const bool usable = leaf || (!name.empty() && count[name] == 1 && is_word(name) && !is_reserved(name) &&
                                   !g_.find_leaf(name));
      names_[n->id] = usable ? quote_name(name) : cat("%", n->id);
    }
  }

  void print(std::string& out, int indent, bool with_name) {
    out += "graph";
    if (with_name) out += cat(" @", quote_name(g_.name()));
    out += "(";
    bool first = true;
    for (const Node* n : g_.nodes()) {
      if (!n->op->traits.leaf) continue;
      if (!first) out += ", ";
      first = false;
      if (n->is<Param>()) out += "param ";
      out += cat(names_[n->id], ": ", n->shapes[0]);
    }
    out += ")";
    print_sizes(out);
    out += " {\n";
    const std::string margin(size_t(indent) + 2, ' ');
    for (const Node* n : g_.nodes()) {
      if (n->op->traits.leaf) continue;
      out += margin;
      statement(out, *n, indent + 2);
      out += "\n";
    }
    out += margin + "return";
    const auto output_names = g_.output_names();
    for (size_t i = 0; i < g_.outputs().size(); ++i) {
      out += i ? ", " : " ";
      // An output name is printed unless parsing would give the same one anyway.
      const Value v = g_.outputs()[i];
      const Node& n = g_.node(v);
      const bool implied = output_names[i] == cat("output", i)
                               ? names_[v.node][0] == '%' || n.shapes.size() > 1
                               : quote_name(output_names[i]) == names_[v.node] && n.shapes.size() == 1;
      if (!implied) out += quote_name(output_names[i]) + "=";
      out += reference(v);
    }
    out += "\n" + std::string(size_t(indent), ' ') + "}";
  }

  /// How a text names the value.
  std::string reference(Value v) const {
    return v.index == 0 ? names_.at(v.node) : cat(names_.at(v.node), "#", v.index);
  }

 private:
  // What the graph itself says of its sizes; the equations of nodes come back with the nodes.
  void print_sizes(std::string& out) const {
    std::string_view before = " where ";
    const auto print_one = [&](const auto& a, Dim b) {
      out += cat(before, a, " = ", b);
      before = ", ";
    };
    for (const auto& [name, value] : g_.solved_symbols()) print_one(name, value);
    for (const Constraint& c : g_.constraints()) {
      if (c.node == kNoNode) print_one(c.a, c.b);
    }
  }

  void statement(std::string& out, const Node& n, int indent) {
    out += names_[n.id];
    if (n.shapes.size() != 1) out += cat(":", n.shapes.size());
    out += cat(" = ", n.op->name, "(");
    bool first = true;
    for (const Value v : n.inputs) {
      if (!first) out += ", ";
      first = false;
      out += reference(v);
    }
    for (const FieldInfo& f : n.op->fields) {
      const AttrValue v = f.get(n.attrs.get());
      if (same_value(v, f.default_value)) continue;
      if (!first) out += ", ";
      first = false;
      out += cat(f.name, "=");
      append(out, f, v, indent);
    }
    out += ")";
    if (!n.shapes.empty()) out += " : " + join(n.shapes);
    if (annotated_ && n.origin) {
      const std::string where = n.origin->text();
      if (!where.empty()) out += "  // " + where;
    }
  }

  void append(std::string& out, const FieldInfo& f, const AttrValue& v, int indent);

  const Graph& g_;
  bool annotated_;
  const StoreLiteral* store_;
  std::unordered_map<NodeId, std::string> names_;
};

struct AppendAttr {
  std::string& out;
  const FieldInfo& field;
  int indent;
  const StoreLiteral* store;

  void operator()(std::monostate) const { out += "none"; }
  // A choice called none is quoted where none also means that there is no value.
  void operator()(const std::string& v) const {
    const bool bare = field.kind == AttrKind::choice && !(field.optional && v == "none");
    out += bare ? v : quote(v);
  }
  void operator()(const GraphRef& v) const {
    if (v == nullptr) {
      out += "none";
    } else {
      Printer(*v, false, store).print(out, indent, v->name() != "main");
    }
  }
  // In parentheses, so that a list of numbers and a list of extents never look alike.
  void operator()(const Dims& v) const { out += cat("(", join(v), ")"); }
  void operator()(const Literal& v) const {
    const std::string stored = store ? (*store)(v) : std::string();
    out += stored.empty() ? cat(v) : cat(v.shape(), "@", quote(stored));
  }
  void operator()(const auto& v) const { out += cat(v); }
};

void Printer::append(std::string& out, const FieldInfo& f, const AttrValue& v, int indent) {
  std::visit(AppendAttr{out, f, indent, store_}, v);
}

void append_plan(std::string& out, const std::vector<PlanStatement>& plan, const Printer& printer) {
  out += "plan {\n";
  for (const PlanStatement& s : plan) {
    std::vector<std::string> arguments;
    for (const Value v : s.operands) arguments.push_back(printer.reference(v));
    for (const auto& [name, value] : s.attrs) {
      arguments.push_back(cat(name, "="));
      const FieldInfo text{.name = name, .doc = {}, .kind = AttrKind::string};
      std::visit(AppendAttr{arguments.back(), text, 0, nullptr}, value);
    }
    out += cat("  ", quote_name(s.name), "(", join(arguments), ")\n");
  }
  out += "}\n";
}

std::string module_text(const Module& m, const StoreLiteral* store) {
  std::string out = m.named ? cat("module ", m.words(), "\n") : std::string();
  Printer printer(m.graph, false, store);
  printer.print(out, 0, true);
  out += "\n";
  if (!m.plan.empty()) append_plan(out, m.plan, printer);
  return out;
}

}  // namespace

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto u = uint8_t(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (u < 0x20 || u == 0x7f) {
      constexpr char kHex[] = "0123456789abcdef";
      out += {'\\', 'x', kHex[u >> 4], kHex[u & 15]};
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string quote_name(std::string_view name) {
  return is_word(name) && !is_reserved(name) ? std::string(name) : quote(name);
}

void append_attr(std::string& out, const FieldInfo& f, const AttrValue& v, int indent) {
  std::visit(AppendAttr{out, f, indent, nullptr}, v);
}

std::string to_text(const Graph& g) {
  std::string out;
  Printer(g, false, nullptr).print(out, 0, true);
  return out + "\n";
}

std::string to_text(const Graph& g, const StoreLiteral& store) {
  std::string out;
  Printer(g, false, &store).print(out, 0, true);
  return out + "\n";
}

std::string to_text(const Module& m) { return module_text(m, nullptr); }
std::string to_text(const Module& m, const StoreLiteral& store) { return module_text(m, &store); }

std::string to_annotated_text(const Graph& g) {
  std::string out;
  Printer(g, true, nullptr).print(out, 0, true);
  return out + "\n";
}

void append_text(std::string& out, const Graph& g) { out += to_text(g); }

}  // namespace rlx::ir
