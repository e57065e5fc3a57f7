#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "rlx/base/base64.h"
#include "rlx/base/json.h"
#include "rlx/ir/graph_parser.h"
#include "rlx/ir/json.h"

namespace rlx::ir {
namespace {

[[noreturn]] void fail(JsonView at, std::string_view what) { throw invalid(at.place(), ": ", what); }

void only(JsonView in, std::initializer_list<std::string_view> known) {
  for (const auto [key, value] : in.members()) {
    if (std::find(known.begin(), known.end(), key) == known.end())
      fail(value, cat("unknown key; known: ", join(known)));
  }
}

// Runs `read` and gives its user errors this place. Those of the document have theirs.
template <class Read>
auto guarded(JsonView at, Read read) {
  try {
    return read();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::user || e.message().starts_with("json: ")) throw;
    fail(at, e.message());
  }
}

double real(JsonView in) {
  if (!in.is_string()) return in.real();
  const std::string_view word = in.string();
  if (word == "nan") return NAN;
  if (word == "inf") return INFINITY;
  if (word == "-inf") return -INFINITY;
  fail(in, cat("'", word, "' is not a number, \"nan\", \"inf\" or \"-inf\""));
}

Dim dim(JsonView in) {
  if (!in.is_string()) return Dim(in.integer());
  const std::string_view text = in.string();
  size_t pos = 0;
  const Dim d = parse_dim(text, pos);
  if (pos != text.size()) fail(in, cat("'", text, "' is not an extent"));
  return d;
}

template <class T, class Item>
std::vector<T> list(JsonView in, Item item) {
  std::vector<T> out;
  for (const JsonView v : in.items()) out.push_back(item(v));
  return out;
}

using Origins = std::vector<OriginRef>;

Origins read_origins(JsonView in) {
  Origins out;
  for (const JsonView o : in.items()) {
    only(o, {"file", "line", "label", "block", "notes"});
    Origin origin;
    if (const auto file = o.find("file")) {
      origin.file_owner = std::make_shared<const std::string>(file->string());
      origin.file = origin.file_owner->c_str();
      const int64_t line = o.at("line").integer();
      if (line < 0 || line > int64_t(UINT32_MAX)) fail(o.at("line"), cat(line, " is not a line number"));
      origin.line = uint32_t(line);
    }
    if (const auto label = o.find("label")) origin.label = label->string();
    if (const auto block = o.find("block")) origin.block = block->string();
    if (const auto notes = o.find("notes")) {
      for (const JsonView note : notes->items()) origin.notes.emplace_back(note.string());
    }
    out.push_back(std::make_shared<const Origin>(std::move(origin)));
  }
  return out;
}

const OriginRef& origin_at(const Origins& origins, JsonView in) {
  const int64_t i = in.integer();
  if (i < 0 || uint64_t(i) >= origins.size())
    fail(in, cat("there is no origin ", i, "; the document has ", origins.size()));
  return origins[size_t(i)];
}

// What a document and all its bodies have in common.
struct Document {
  const OpTable& ops;
  Origins origins;
  size_t holes;  // ids that may still be left unused: memory follows the text
};

class GraphReader {
 public:
  GraphReader(Document& document, int depth) : document_(document), depth_(depth) {}

  Graph read(JsonView in) {
    if (depth_ > kMaxParseDepth) fail(in, cat("bodies nest deeper than ", kMaxParseDepth));
    only(in, {"name", "nodes", "outputs", "sizes"});
    g_.set_name(std::string(in.at("name").string()));
    if (const auto equations = in.find("sizes")) {
      for (const JsonView e : equations->items()) {
        const auto sides = list<Dim>(e, [](JsonView v) { return dim(v); });
        if (sides.size() != 2) fail(e, "an equation is [extent, extent]");
        guarded(e, [&] { g_.assume_equal(sides[0], sides[1]); });
      }
    }
    for (const JsonView n : in.at("nodes").items()) node(n);
    Values outputs;
    std::vector<std::string> names;
    for (const JsonView o : in.at("outputs").items()) {
      only(o, {"value", "name"});
      outputs.push_back(value(o.at("value")));
      const auto name = o.find("name");
      names.emplace_back(name ? name->string() : std::string_view());
    }
    guarded(in.at("outputs"), [&] { g_.set_outputs(std::move(outputs), std::move(names)); });
    return std::move(g_);
  }

 private:
  void node(JsonView in) {
    only(in, {"id", "op", "inputs", "attrs", "types", "name", "origin"});
    const JsonView op_place = in.at("op");
    const OpDef& op = *guarded(op_place, [&] { return &document_.ops.at(op_place.string()); });
    std::shared_ptr<void> attrs = op.copy_attrs(nullptr);
    if (const auto given = in.find("attrs")) {
      for (const auto [key, v] : given->members()) {
        const FieldInfo* f = op.find_field(key);
        if (f == nullptr) fail(v, cat(op.name, " has no such attribute"));
        guarded(v, [&, v = v] { f->set(attrs.get(), attr(*f, v)); });
      }
    }
    Values operands;
    if (const auto inputs = in.find("inputs"))
      operands = list<Value>(*inputs, [&](JsonView v) { return value(v); });
    const auto name = in.find("name");
    const int64_t label = new_label(in.at("id"));
    NodeId made = kNoNode;
    guarded(in, [&] {
      reserve(NodeId(label));
      made = g_.append(op, std::move(attrs), operands,
                       name && !op.traits.leaf ? std::string(name->string()) : std::string());
    });
    node_of_.emplace(label, made);
    if (const auto origin = in.find("origin")) g_.set_origin(made, origin_at(document_.origins, *origin));
    if (const auto types = in.find("types")) check_types(*types, g_.node(made));
  }

  int64_t new_label(JsonView in) const {
    const int64_t label = in.integer();
    if (label < 0 || label >= int64_t(kNoNode)) fail(in, cat(label, " is out of range"));
    if (node_of_.contains(label)) fail(in, cat("there are two nodes ", label));
    return label;
  }

  // A node keeps its id unless that is taken or too far off; the document knows it by its label in any case.
  void reserve(NodeId wanted) {
    const NodeId end = g_.next_id();
    const size_t gap = wanted > end ? wanted - end : 0;
    if (g_.contains(wanted) || gap > document_.holes) return;
    document_.holes -= gap;
    g_.reserve_id(wanted);
  }

  void check_types(JsonView in, const Node& n) {
    std::string given, inferred = join(n.shapes);
    for (const JsonView t : in.items()) {
      const Shape declared = guarded(t, [&] { return g_.resolve(parse_shape(t.string())); });
      given += cat(given.empty() ? "" : ", ", declared);
    }
    if (given != inferred) fail(in, cat(n.op->name, ": declared ", given, ", its operands give ", inferred));
  }

  Value value(JsonView in) const {
    const auto pair = list<int64_t>(in, [](JsonView v) { return v.integer(); });
    if (pair.size() != 2) fail(in, "a value is [node id, result number]");
    const auto it = node_of_.find(pair[0]);
    if (it == node_of_.end()) fail(in, cat("node ", pair[0], " is not defined before its use"));
    const size_t results = g_.node(it->second).shapes.size();
    if (pair[1] < 0 || uint64_t(pair[1]) >= results)
      fail(in, cat("node ", pair[0], " has ", results, " results"));
    return g_.value(it->second, uint32_t(pair[1]));
  }

  AttrValue attr(const FieldInfo& f, JsonView in) const {
    if (in.is_null()) {
      if (f.optional) return AttrValue();
      if (f.kind == AttrKind::graph) return GraphRef();
      fail(in, "it cannot be null");
    }
    switch (f.kind) {
      case AttrKind::boolean:
        return in.boolean();
      case AttrKind::integer:
        return in.integer();
      case AttrKind::real:
        return real(in);
      case AttrKind::string:
        return std::string(in.string());
      case AttrKind::choice:
        if (std::find(f.choices.begin(), f.choices.end(), in.string()) == f.choices.end())
          fail(in, cat("'", in.string(), "' is not a choice; known: ", join(f.choices)));
        return std::string(in.string());
      case AttrKind::dtype:
        if (const auto t = dtype_from_name(in.string())) return *t;
        fail(in, cat("'", in.string(), "' is not a dtype"));
      case AttrKind::integers:
        return list<int64_t>(in, [](JsonView v) { return v.integer(); });
      case AttrKind::reals:
        return list<double>(in, real);
      case AttrKind::dim:
        return dim(in);
      case AttrKind::dims:
        return list<Dim>(in, dim);
      case AttrKind::shape:
        return parse_shape(in.string());
      case AttrKind::literal:
        return literal(in);
      case AttrKind::graph:
        return std::make_shared<const Graph>(GraphReader(document_, depth_ + 1).read(in));
    }
    fail(in, "unknown kind of attribute");
  }

  static Literal literal(JsonView in) {
    only(in, {"type", "base64"});
    const Shape shape = parse_shape(in.at("type").string());
    if (!shape.is_static()) fail(in, cat(shape, " is not a static shape"));
    return Literal::copy_of(shape, decode_base64(in.at("base64").string()));
  }

  Document& document_;
  int depth_;
  Graph g_;
  std::unordered_map<int64_t, NodeId> node_of_;
};

}  // namespace

Graph graph_from_json(std::string_view text, const OpTable& ops) {
  const Json root = Json::parse_in_place(text, "json");
  only(root, {"format", "version", "graph", "origins"});
  if (const JsonView format = root.at("format"); format.string() != kJsonFormat)
    fail(format, cat("'", format.string(), "' is not '", kJsonFormat, "'"));
  if (const JsonView version = root.at("version"); version.integer() != kJsonVersion)
    fail(version, cat("version ", version.integer(), " is unknown; this program reads ", kJsonVersion));
  const auto listed = root.find("origins");
  Document document{ops, listed ? read_origins(*listed) : Origins(), 65536 + text.size()};
  return GraphReader(document, 0).read(root.at("graph"));
}

std::vector<OriginRef> origins_from_json(std::string_view text) {
  const Json root = Json::parse_in_place(text, "origins");
  only(root, {"origins", "nodes"});
  const Origins origins = read_origins(root.at("origins"));
  std::vector<OriginRef> out;
  for (const JsonView n : root.at("nodes").items())
    out.push_back(n.integer() == -1 ? nullptr : origin_at(origins, n));
  return out;
}

}  // namespace rlx::ir
