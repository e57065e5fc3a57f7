#include "rlx/ir/json.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "rlx/base/base64.h"
#include "rlx/ir/leaves.h"

namespace rlx::ir {
namespace {

using Document = nlohmann::ordered_json;

// Limits that turn a hostile document into an error instead of a deep stack or a huge table.
constexpr int kMaxDepth = 48;
constexpr uint64_t kIdSlack = 1 << 16;
constexpr std::string_view kFormat = "rlx.graph";

// The origins that nodes refer to by number. Builders make one object per call, so equal ones are merged.
class OriginTable {
 public:
  /// The number of an origin; none for a node that has none.
  std::optional<size_t> number(const OriginRef& origin) {
    if (origin == nullptr) return std::nullopt;
    Document written = write(*origin);
    if (written.empty()) return std::nullopt;
    const auto [it, is_new] = number_of_.emplace(written.dump(-1, ' ', false, kReplace), list_.size());
    if (is_new) list_.push_back(std::move(written));
    return it->second;
  }
  const Document& list() const { return list_; }

  static constexpr auto kReplace = Document::error_handler_t::replace;

 private:
  // Files are known by their name alone: the same program saved from another folder gives the same bytes.
  static Document write(const Origin& o) {
    Document out = Document::object();
    if (o.file != nullptr) out["file"] = std::string(o.file_name()), out["line"] = o.line;
    if (!o.label.empty()) out["label"] = o.label;
    if (!o.block.empty()) out["block"] = o.block;
    if (!o.notes.empty()) out["notes"] = o.notes;
    return out;
  }

  Document list_ = Document::array();
  std::unordered_map<std::string, size_t> number_of_;
};

Document write_graph(const Graph& g, OriginTable& origins);

Document write_real(double v) {
  if (std::isfinite(v)) return v;
  return cat(v);
}

Document write_dim(Dim d) {
  if (d.is_symbolic()) return cat(d);
  return d.rep();
}

struct WriteAttr {
  OriginTable& origins;

  Document operator()(std::monostate) const { return nullptr; }
  Document operator()(bool v) const { return v; }
  Document operator()(int64_t v) const { return v; }
  Document operator()(double v) const { return write_real(v); }
  Document operator()(const std::string& v) const { return v; }
  Document operator()(DType v) const { return cat(v); }
  Document operator()(const std::vector<int64_t>& v) const { return v; }
  Document operator()(const std::vector<double>& v) const {
    Document out = Document::array();
    for (const double x : v) out.push_back(write_real(x));
    return out;
  }
  Document operator()(Dim v) const { return write_dim(v); }
  Document operator()(const Dims& v) const {
    Document out = Document::array();
    for (const Dim d : v) out.push_back(write_dim(d));
    return out;
  }
  Document operator()(const Shape& v) const { return cat(v); }
  Document operator()(const Literal& v) const {
    return {{"type", cat(v.shape())}, {"base64", encode_base64(v.bytes())}};
  }
  Document operator()(const GraphRef& v) const { return v ? write_graph(*v, origins) : Document(nullptr); }
};

Document write_node(const Node& n, OriginTable& origins) {
  Document out = {{"id", n.id}, {"op", std::string(n.op->name)}};
  if (const auto origin = origins.number(n.origin)) out["origin"] = *origin;
  if (!n.inputs.empty()) {
    Document inputs = Document::array();
    for (const Value v : n.inputs) inputs.push_back({v.node, v.index});
    out["inputs"] = std::move(inputs);
  }
  Document attrs = Document::object();
  for (const FieldInfo& f : n.op->fields) {
    const AttrValue v = f.get(n.attrs.get());
    if (!same_value(v, f.default_value)) attrs[std::string(f.name)] = std::visit(WriteAttr{origins}, v);
  }
  if (!attrs.empty()) out["attrs"] = std::move(attrs);
  if (n.op->traits.leaf) return out;
  Document types = Document::array();
  for (const Shape& s : n.shapes) types.push_back(cat(s));
  out["types"] = std::move(types);
  if (!n.name.empty()) out["name"] = n.name;
  return out;
}

Document write_graph(const Graph& g, OriginTable& origins) {
  Document nodes = Document::array(), outputs = Document::array();
  for (const Node* n : g.nodes()) nodes.push_back(write_node(*n, origins));
  const auto names = g.output_names();
  for (size_t i = 0; i < names.size(); ++i) {
    const Value v = g.outputs()[i];
    outputs.push_back({{"value", {v.node, v.index}}, {"name", names[i]}});
  }
  return {{"name", g.name()}, {"nodes", std::move(nodes)}, {"outputs", std::move(outputs)}};
}

// A value of the document and the way to it, for messages.
class Place {
 public:
  Place(const Document& value, std::string path) : value_(value), path_(std::move(path)) {}

  [[noreturn]] void fail(std::string_view what) const { throw invalid("json: ", path_, ": ", what); }
  [[noreturn]] void expected(std::string_view what) const {
    fail(cat("it is ", value_.type_name(), "; ", what, " expected"));
  }

  bool is_null() const { return value_.is_null(); }
  bool is_string() const { return value_.is_string(); }
  const std::string& string() const {
    if (!value_.is_string()) expected("a string");
    return value_.get_ref<const std::string&>();
  }
  int64_t integer() const {
    if (!value_.is_number_integer()) expected("a whole number");
    if (value_.is_number_unsigned() && value_.get<uint64_t>() > uint64_t(INT64_MAX))
      fail("the number does not fit 64 bits");
    return value_.get<int64_t>();
  }
  bool boolean() const {
    if (!value_.is_boolean()) expected("true or false");
    return value_.get<bool>();
  }
  double real() const {
    if (value_.is_number()) return value_.get<double>();
    if (value_.is_string()) {
      const std::string& word = string();
      if (word == "nan") return NAN;
      if (word == "inf") return INFINITY;
      if (word == "-inf") return -INFINITY;
    }
    expected("a number, \"nan\", \"inf\" or \"-inf\"");
  }
  std::vector<Place> items() const {
    if (!value_.is_array()) expected("an array");
    std::vector<Place> out;
    out.reserve(value_.size());
    for (size_t i = 0; i < value_.size(); ++i) out.emplace_back(value_[i], cat(path_, "[", i, "]"));
    return out;
  }
  std::vector<std::pair<std::string, Place>> members() const {
    if (!value_.is_object()) expected("an object");
    std::vector<std::pair<std::string, Place>> out;
    for (const auto& [key, value] : value_.items()) out.emplace_back(key, Place(value, cat(path_, ".", key)));
    return out;
  }
  std::optional<Place> find(const std::string& key) const {
    if (!value_.is_object()) expected("an object");
    const auto it = value_.find(key);
    if (it == value_.end()) return std::nullopt;
    return Place(*it, cat(path_, ".", key));
  }
  Place at(const std::string& key) const {
    if (auto found = find(key)) return *found;
    fail(cat("the key '", key, "' is missing"));
  }
  void only(std::initializer_list<std::string_view> known) const {
    for (const auto& [key, value] : members()) {
      if (std::find(known.begin(), known.end(), key) == known.end())
        value.fail(cat("unknown key; known: ", join(known)));
    }
  }
  /// Runs `read` and gives its user errors this place.
  template <class Read>
  auto guarded(Read read) const {
    try {
      return read();
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::user || e.message().starts_with("json: ")) throw;
      fail(e.message());
    }
  }

 private:
  const Document& value_;
  std::string path_;
};

using Origins = std::vector<OriginRef>;

Origins read_origins(const Place& in) {
  Origins out;
  for (const Place& o : in.items()) {
    o.only({"file", "line", "label", "block", "notes"});
    Origin origin;
    if (const auto file = o.find("file")) {
      origin.file_owner = std::make_shared<const std::string>(file->string());
      origin.file = origin.file_owner->c_str();
      const int64_t line = o.at("line").integer();
      if (line < 0 || line > int64_t(UINT32_MAX)) o.at("line").fail(cat(line, " is not a line number"));
      origin.line = uint32_t(line);
    }
    if (const auto label = o.find("label")) origin.label = label->string();
    if (const auto block = o.find("block")) origin.block = block->string();
    if (const auto notes = o.find("notes")) {
      for (const Place& note : notes->items()) origin.notes.push_back(note.string());
    }
    out.push_back(std::make_shared<const Origin>(std::move(origin)));
  }
  return out;
}

const OriginRef& origin_at(const Origins& origins, const Place& in) {
  const int64_t i = in.integer();
  if (i < 0 || uint64_t(i) >= origins.size())
    in.fail(cat("there is no origin ", i, "; the document has ", origins.size()));
  return origins[size_t(i)];
}

class GraphReader {
 public:
  GraphReader(const OpTable& ops, const Origins& origins, int depth)
      : ops_(ops), origins_(origins), depth_(depth) {}

  Graph read(const Place& in) {
    if (depth_ > kMaxDepth) in.fail(cat("bodies nest deeper than ", kMaxDepth));
    in.only({"name", "nodes", "outputs"});
    g_.set_name(in.at("name").string());
    const auto nodes = in.at("nodes").items();
    for (const Place& n : nodes) node(n, nodes.size());
    Values outputs;
    std::vector<std::string> names;
    for (const Place& o : in.at("outputs").items()) {
      o.only({"value", "name"});
      outputs.push_back(value(o.at("value")));
      const auto name = o.find("name");
      names.push_back(name ? name->string() : "");
    }
    in.at("outputs").guarded([&] { g_.set_outputs(std::move(outputs), std::move(names)); });
    return std::move(g_);
  }

 private:
  void node(const Place& in, size_t count) {
    in.only({"id", "op", "inputs", "attrs", "types", "name", "origin"});
    const int64_t id = in.at("id").integer();
    if (id < 0 || uint64_t(id) > uint64_t(count) * 4 + kIdSlack)
      in.at("id").fail(cat(id, " is out of range"));
    if (g_.contains(NodeId(id))) in.at("id").fail(cat("there are two nodes ", id));
    const Place op_place = in.at("op");
    const OpDef& op = *op_place.guarded([&] { return &ops_.at(op_place.string()); });

    std::shared_ptr<void> attrs = op.copy_attrs(nullptr);
    if (const auto given = in.find("attrs")) {
      for (const auto& [key, v] : given->members()) {
        const FieldInfo* f = op.find_field(key);
        if (f == nullptr) v.fail(cat(op.name, " has no such attribute"));
        v.guarded([&] { f->set(attrs.get(), attr(*f, v)); });
      }
    }
    Values operands;
    if (const auto inputs = in.find("inputs")) {
      for (const Place& v : inputs->items()) operands.push_back(value(v));
    }
    const auto name = in.find("name");
    in.guarded([&] {
      g_.reserve_id(NodeId(id));
      g_.append(op, std::move(attrs), operands, name && !op.traits.leaf ? name->string() : "");
    });
    if (const auto origin = in.find("origin")) g_.set_origin(NodeId(id), origin_at(origins_, *origin));
    if (const auto types = in.find("types")) check_types(*types, g_.node(NodeId(id)));
  }

  void check_types(const Place& in, const Node& n) {
    std::string given, inferred = join(n.shapes);
    for (const Place& t : in.items()) given += cat(given.empty() ? "" : ", ", t.string());
    if (given != inferred) in.fail(cat(n.op->name, ": declared ", given, ", its operands give ", inferred));
  }

  Value value(const Place& in) const {
    const auto pair = in.items();
    if (pair.size() != 2) in.fail("a value is [node id, result number]");
    const int64_t id = pair[0].integer(), index = pair[1].integer();
    if (id < 0 || id >= int64_t(kNoNode) || !g_.contains(NodeId(id)))
      in.fail(cat("node ", id, " is not defined before its use"));
    const size_t results = g_.node(NodeId(id)).shapes.size();
    if (index < 0 || uint64_t(index) >= results) in.fail(cat("node ", id, " has ", results, " results"));
    return g_.value(NodeId(id), uint32_t(index));
  }

  AttrValue attr(const FieldInfo& f, const Place& in) const {
    if (in.is_null()) {
      if (f.optional) return AttrValue();
      if (f.kind == AttrKind::graph) return GraphRef();
      in.fail("it cannot be null");
    }
    switch (f.kind) {
      case AttrKind::boolean:
        return in.boolean();
      case AttrKind::integer:
        return in.integer();
      case AttrKind::real:
        return in.real();
      case AttrKind::string:
        return in.string();
      case AttrKind::choice:
        if (std::find(f.choices.begin(), f.choices.end(), in.string()) == f.choices.end())
          in.fail(cat("'", in.string(), "' is not a choice; known: ", join(f.choices)));
        return in.string();
      case AttrKind::dtype:
        if (const auto t = dtype_from_name(in.string())) return *t;
        in.fail(cat("'", in.string(), "' is not a dtype"));
      case AttrKind::integers:
        return list<int64_t>(in, [](const Place& p) { return p.integer(); });
      case AttrKind::reals:
        return list<double>(in, [](const Place& p) { return p.real(); });
      case AttrKind::dim:
        return dim(in);
      case AttrKind::dims:
        return list<Dim>(in, [](const Place& p) { return dim(p); });
      case AttrKind::shape:
        return parse_shape(in.string());
      case AttrKind::literal: {
        in.only({"type", "base64"});
        const Shape shape = parse_shape(in.at("type").string());
        if (!shape.is_static()) in.fail(cat(shape, " is not a static shape"));
        return Literal::copy_of(shape, decode_base64(in.at("base64").string()));
      }
      case AttrKind::graph:
        return std::make_shared<const Graph>(GraphReader(ops_, origins_, depth_ + 1).read(in));
    }
    in.fail("unknown kind of attribute");
  }

  template <class T, class Item>
  static std::vector<T> list(const Place& in, Item item) {
    std::vector<T> out;
    for (const Place& p : in.items()) out.push_back(item(p));
    return out;
  }

  static Dim dim(const Place& in) {
    if (!in.is_string()) return Dim(in.integer());
    const std::string& text = in.string();
    size_t pos = 0;
    const Dim d = parse_dim(text, pos);
    if (pos != text.size()) in.fail(cat("'", text, "' is not an extent"));
    return d;
  }

  const OpTable& ops_;
  const Origins& origins_;
  int depth_;
  Graph g_;
};

// Calls visit(node) in the order in which a reader of the text form makes the nodes: the leaves of a graph,
// then the others, each after its bodies.
template <class Visit>
void in_text_order(const Graph& g, Visit visit) {
  for (const Node* n : g.nodes()) {
    if (n->op->traits.leaf) visit(*n);
  }
  for (const Node* n : g.nodes()) {
    if (n->op->traits.leaf) continue;
    for (const FieldInfo& f : n->op->fields) {
      if (f.kind != AttrKind::graph) continue;
      const AttrValue v = f.get(n->attrs.get());
      const auto* body = std::get_if<GraphRef>(&v);
      if (body != nullptr && *body != nullptr && !same_value(v, f.default_value))
        in_text_order(**body, visit);
    }
    visit(*n);
  }
}

Document parse_document(std::string_view text) {
  std::vector<std::set<std::string>> keys;  // of the open objects
  const auto watch = [&keys](int depth, Document::parse_event_t event, Document& value) {
    using Event = Document::parse_event_t;
    if (depth > 8 * kMaxDepth) throw invalid("json: brackets nest deeper than ", 8 * kMaxDepth);
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(value.get<std::string>()).second)
      throw invalid("json: the key '", value.get<std::string>(), "' occurs twice in one object");
    return true;
  };
  try {
    return Document::parse(text.begin(), text.end(), watch);
  } catch (const Document::exception& e) {
    throw invalid("json: malformed: ", e.what());
  }
}

}  // namespace

std::string to_json(const Graph& g, int indent) {
  OriginTable origins;
  Document document = {{"format", kFormat}, {"version", kJsonVersion}, {"graph", write_graph(g, origins)}};
  if (!origins.list().empty()) document["origins"] = origins.list();
  try {
    return document.dump(indent);
  } catch (const Document::exception& e) {
    throw invalid("to_json: graph '", g.name(), "' has a name that is not UTF-8: ", e.what());
  }
}

Graph graph_from_json(std::string_view text, const OpTable& ops) {
  const Document document = parse_document(text);
  const Place root(document, "document");
  root.only({"format", "version", "graph", "origins"});
  if (root.at("format").string() != kFormat)
    root.at("format").fail(cat("'", root.at("format").string(), "' is not '", kFormat, "'"));
  if (const int64_t version = root.at("version").integer(); version != kJsonVersion)
    root.at("version").fail(cat("version ", version, " is unknown; this program reads ", kJsonVersion));
  const auto listed = root.find("origins");
  const Origins origins = listed ? read_origins(*listed) : Origins();
  return GraphReader(ops, origins, 0).read(root.at("graph"));
}

std::string origins_to_json(const Graph& g) {
  OriginTable origins;
  Document nodes = Document::array();
  in_text_order(g, [&](const Node& n) {
    const auto number = origins.number(n.origin);
    nodes.push_back(number ? int64_t(*number) : int64_t(-1));
  });
  if (origins.list().empty()) return {};
  const Document document = {{"origins", origins.list()}, {"nodes", std::move(nodes)}};
  return document.dump(-1, ' ', false, OriginTable::kReplace);
}

std::vector<OriginRef> origins_from_json(std::string_view text) {
  const Document document = parse_document(text);
  const Place root(document, "origins");
  root.only({"origins", "nodes"});
  const Origins origins = read_origins(root.at("origins"));
  std::vector<OriginRef> out;
  for (const Place& n : root.at("nodes").items())
    out.push_back(n.integer() == -1 ? nullptr : origin_at(origins, n));
  return out;
}

}  // namespace rlx::ir
