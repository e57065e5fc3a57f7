#include <unordered_map>

#include "rlx/base/base64.h"
#include "rlx/base/json_write.h"
#include "rlx/ir/bodies.h"
#include "rlx/ir/json.h"

namespace rlx::ir {
namespace {

// The origins that nodes refer to by number. Builders make one object per call, so equal ones are merged.
class OriginTable {
 public:
  /// The number of an origin; none for a node that has none.
  std::optional<size_t> number(const OriginRef& origin) {
    if (origin == nullptr) return std::nullopt;
    const auto [seen, is_new] = of_object_.try_emplace(origin.get());
    if (is_new) seen->second = number_of_contents(*origin);
    return seen->second;
  }
  bool is_empty() const { return list_.empty(); }
  void write(JsonWriter& out) const {
    out.begin_array();
    for (const Origin* o : list_) write(out, *o);
    out.end_array();
  }

 private:
  std::optional<size_t> number_of_contents(const Origin& o) {
    if (o.file == nullptr && o.label.empty() && o.block.empty() && o.notes.empty()) return std::nullopt;
    JsonWriter out({.replace_invalid = true});
    write(out, o);
    const auto [it, is_new] = of_contents_.emplace(out.take(), list_.size());
    if (is_new) list_.push_back(&o);
    return it->second;
  }

  // Files are known by their name alone: the same program saved from another folder gives the same bytes.
  static void write(JsonWriter& out, const Origin& o) {
    out.begin_object();
    if (o.file != nullptr) {
      out.member("file", o.file_name());
      out.member("line", o.line);
    }
    if (!o.label.empty()) out.member("label", o.label);
    if (!o.block.empty()) out.member("block", o.block);
    if (!o.notes.empty()) out.member("notes", o.notes);
    out.end_object();
  }

  std::vector<const Origin*> list_;  // kept alive by the graph
  std::unordered_map<const Origin*, std::optional<size_t>> of_object_;
  std::unordered_map<std::string, size_t> of_contents_;
};

class GraphWriter {
 public:
  GraphWriter(JsonWriter& out, OriginTable& origins) : out_(out), origins_(origins) {}

  void write(const Graph& g) {
    out_.begin_object();
    out_.member("name", g.name());
    out_.key("nodes");
    out_.begin_array();
    for (const Node* n : g.nodes()) node(*n);
    out_.end_array();
    out_.key("outputs");
    out_.begin_array();
    const auto names = g.output_names();
    for (size_t i = 0; i < names.size(); ++i) {
      out_.begin_object();
      out_.key("value");
      value(g.outputs()[i]);
      out_.member("name", names[i]);
      out_.end_object();
    }
    out_.end_array();
    sizes(g);
    out_.end_object();
  }

  void operator()(std::monostate) { out_.null(); }
  void operator()(DType v) { out_.value(cat(v)); }
  void operator()(Dim v) { v.is_symbolic() ? out_.value(cat(v)) : out_.value(v.rep()); }
  void operator()(const Dims& v) {
    out_.begin_array();
    for (const Dim d : v) (*this)(d);
    out_.end_array();
  }
  void operator()(const Shape& v) { out_.value(cat(v)); }
  void operator()(const Literal& v) {
    out_.begin_object();
    out_.member("type", cat(v.shape()));
    out_.member("base64", encode_base64(v.bytes()));
    out_.end_object();
  }
  void operator()(const GraphRef& v) { v ? write(*v) : out_.null(); }
  void operator()(const auto& v) { out_.value(v); }

 private:
  // What the graph itself says of its sizes; the equations of nodes come back with the nodes.
  void sizes(const Graph& g) {
    std::vector<Dims> equations;
    for (const auto& [name, value] : g.solved_symbols()) equations.push_back({Dim::symbol(name), value});
    for (const Constraint& c : g.constraints()) {
      if (c.node == kNoNode) equations.push_back({c.a, c.b});
    }
    if (equations.empty()) return;
    out_.key("sizes");
    out_.begin_array();
    for (const Dims& sides : equations) (*this)(sides);
    out_.end_array();
  }
  void value(Value v) {
    out_.begin_array();
    out_.value(v.node);
    out_.value(v.index);
    out_.end_array();
  }

  void node(const Node& n) {
    out_.begin_object();
    out_.member("id", n.id);
    out_.member("op", n.op->name);
    if (const auto origin = origins_.number(n.origin)) out_.member("origin", *origin);
    if (!n.inputs.empty()) {
      out_.key("inputs");
      out_.begin_array();
      for (const Value v : n.inputs) value(v);
      out_.end_array();
    }
    attrs(n);
    if (!n.op->traits.leaf) {
      out_.key("types");
      out_.begin_array();
      for (const Shape& s : n.shapes) out_.value(cat(s));
      out_.end_array();
      if (!n.name.empty()) out_.member("name", n.name);
    }
    out_.end_object();
  }

  void attrs(const Node& n) {
    bool any = false;
    for (const FieldInfo& f : n.op->fields) {
      const AttrValue v = f.get(n.attrs.get());
      if (same_value(v, f.default_value)) continue;
      if (!any) out_.key("attrs"), out_.begin_object();
      any = true;
      out_.key(f.name);
      std::visit(*this, v);
    }
    if (any) out_.end_object();
  }

  JsonWriter& out_;
  OriginTable& origins_;
};

}  // namespace

std::string to_json(const Graph& g, int indent) {
  JsonWriter out({.indent = indent});
  OriginTable origins;
  out.begin_object();
  out.member("format", kJsonFormat);
  out.member("version", kJsonVersion);
  out.key("graph");
  try {
    GraphWriter(out, origins).write(g);
  } catch (const Error& e) {
    throw invalid("to_json: graph '", g.name(), "' has a name that is not UTF-8: ", e.message());
  }
  if (!origins.is_empty()) {
    out.key("origins");
    origins.write(out);
  }
  out.end_object();
  return out.take();
}

std::string origins_to_json(const Graph& g) {
  OriginTable origins;
  std::vector<int64_t> nodes;
  for_each_node(g, [&](const Node& n) {
    const auto number = origins.number(n.origin);
    nodes.push_back(number ? int64_t(*number) : -1);
  });
  if (origins.is_empty()) return {};
  JsonWriter out({.replace_invalid = true});
  out.begin_object();
  out.key("origins");
  origins.write(out);
  out.member("nodes", nodes);
  out.end_object();
  return out.take();
}

}  // namespace rlx::ir
