#include <charconv>
#include <unordered_map>
#include <utility>

#include "rlx/ir/leaves.h"
#include "rlx/ir/text.h"

namespace rlx::ir {
namespace {

// Limits that turn a hostile text into an error instead of a deep stack or a huge table.
constexpr int kMaxDepth = 48;
constexpr uint64_t kIdSlack = 1 << 16;

// Characters with their position. Everything above is written against this.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  [[noreturn]] void fail(std::string_view message) const { fail_at(pos_, message); }
  [[noreturn]] void fail_at(size_t pos, std::string_view message) const {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < pos && i < text_.size(); ++i) {
      text_[i] == '\n' ? (++line, column = 1) : ++column;
    }
    Error e = invalid("parse: ", message);
    e.set_origin(cat("line ", line, " column ", column));
    throw e;
  }

  void skip() {
    while (pos_ < text_.size()) {
      const char c = text_[pos_];
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        ++pos_;
      } else if (text_.substr(pos_, 2) == "//") {
        while (pos_ < text_.size() && text_[pos_] != '\n') ++pos_;
      } else {
        return;
      }
    }
  }
  bool at_end() { return skip(), pos_ >= text_.size(); }
  char peek() { return at_end() ? '\0' : text_[pos_]; }
  bool accept(std::string_view token) {
    skip();
    if (text_.substr(pos_, token.size()) != token) return false;
    pos_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail(cat("expected '", token, "', found ", found()));
  }
  std::string found() {
    if (at_end()) return "the end of the text";
    size_t end = pos_ + 1;
    while (end < text_.size() && end - pos_ < 20 && is_word_char(text_[end]) && is_word_char(text_[pos_]))
      ++end;
    return cat("'", text_.substr(pos_, end - pos_), "'");
  }

  static bool is_word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  }
  /// A word without consuming it; empty when the next thing is not one.
  std::string_view peek_word() {
    skip();
    size_t end = pos_;
    if (end < text_.size() && (text_[end] < '0' || text_[end] > '9') && text_[end] != '.') {
      while (end < text_.size() && is_word_char(text_[end])) ++end;
    }
    return text_.substr(pos_, end - pos_);
  }
  bool accept_word(std::string_view word) {
    if (peek_word() != word) return false;
    pos_ += word.size();
    return true;
  }
  /// A word or a quoted string.
  std::string name(std::string_view what) {
    if (peek() == '"') return quoted();
    const std::string_view word = peek_word();
    if (word.empty()) fail(cat("expected ", what, ", found ", found()));
    pos_ += word.size();
    return std::string(word);
  }
  std::string quoted() {
    const size_t start = pos_;
    expect("\"");
    std::string out;
    while (pos_ < text_.size() && text_[pos_] != '"') {
      char c = text_[pos_++];
      if (c == '\n') fail_at(start, "a quoted text must end on its line");
      if (c == '\\') c = escape();
      out.push_back(c);
    }
    if (pos_ >= text_.size()) fail_at(start, "the quoted text has no end");
    ++pos_;
    return out;
  }
  uint64_t number(std::string_view what) {
    skip();
    uint64_t value = 0;
    const char* begin = text_.data() + pos_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) fail(cat("expected ", what, ", found ", found()));
    pos_ += size_t(end - begin);
    return value;
  }
  /// Runs a reader of rlx/base or literals at the cursor and turns its errors into errors of this text.
  template <class Read>
  auto read(Read reader) {
    skip();
    try {
      return reader(text_, pos_);
    } catch (const Error& e) {
      if (!e.origin().empty()) throw;
      fail(e.message());
    }
  }
  size_t pos() const { return pos_; }
  void rewind(size_t pos) { pos_ = pos; }

 private:
  char escape() {
    if (pos_ >= text_.size()) fail("the quoted text has no end");
    const char c = text_[pos_++];
    if (c == '"' || c == '\\') return c;
    if (c == 'n') return '\n';
    unsigned value = 0;
    if (c != 'x' || pos_ + 2 > text_.size() ||
        std::from_chars(text_.data() + pos_, text_.data() + pos_ + 2, value, 16).ptr !=
            text_.data() + pos_ + 2) {
      fail("unknown escape; known: \\\" \\\\ \\n \\xHH");
    }
    pos_ += 2;
    return char(value);
  }

  std::string_view text_;
  size_t pos_ = 0;
};

// What a saved file keeps beside the text.
struct Beside {
  const FetchLiteral* fetch = nullptr;
  std::span<const OriginRef> origins;
  size_t nodes = 0;  // made so far, in all bodies

  OriginRef next_origin() {
    const size_t i = nodes++;
    return i < origins.size() ? origins[i] : nullptr;
  }
};

class GraphParser {
 public:
  GraphParser(Cursor& in, const OpTable& ops, Beside& beside, int depth)
      : in_(in), ops_(ops), beside_(beside), depth_(depth) {}

  Graph parse() {
    if (depth_ > kMaxDepth) in_.fail(cat("bodies nest deeper than ", kMaxDepth));
    if (!in_.accept_word("graph")) in_.fail(cat("expected 'graph', found ", in_.found()));
    if (in_.accept("@")) g_.set_name(in_.name("the graph's name"));
    header();
    in_.expect("{");
    while (!in_.accept_word("return")) {
      if (in_.at_end() || in_.peek() == '}')
        in_.fail(cat("expected a statement or 'return', found ", in_.found()));
      statement();
    }
    returns();
    in_.expect("}");
    return std::move(g_);
  }

 private:
  void header() {
    in_.expect("(");
    while (!in_.accept(")")) {
      if (!g_.is_empty()) in_.expect(",");
      const bool param = in_.accept_word("param");
      const size_t start = in_.pos();
      const std::string name = in_.name("the name of an input");
      in_.expect(":");
      const Shape shape = in_.read([](auto t, auto& p) { return parse_shape(t, p); });
      guarded(start, [&] {
        const Value leaf = param ? g_.param(name, shape) : g_.input(name, shape);
        g_.set_origin(leaf.node, beside_.next_origin());
        define(name, leaf, 1, start);
      });
    }
  }

  // Leaves take the lowest ids; a numbered node keeps its number when it is free, so that a text and the
  // graph made from it speak of the same %7.
  void statement() {
    const size_t start = in_.pos();
    std::string name;
    std::optional<NodeId> id;
    if (in_.accept("%")) {
      const uint64_t number = in_.number("a node number");
      if (number > uint64_t(g_.len()) * 4 + kIdSlack)
        in_.fail_at(start, cat("node number ", number, " is too large"));
      id = NodeId(number);
      name = cat("%", number);
    } else {
      name = in_.name("a statement");
    }
    const uint64_t count = in_.accept(":") ? in_.number("the number of results") : 1;
    in_.expect("=");
    const size_t call_start = in_.pos();
    if (id && !g_.contains(*id)) pending_id_ = id;
    const NodeId made = call(0);
    pending_id_.reset();
    const Node& n = g_.node(made);
    if (n.shapes.size() != count) {
      in_.fail_at(call_start,
                  cat(n.op->name, " has ", n.shapes.size(), " results; the statement names ", count));
    }
    if (!id) g_.set_name(made, name);
    define(name, g_.value(made), count, start);
    if (in_.accept(":")) declared_types(made);
  }

  void declared_types(NodeId id) {
    for (size_t i = 0; i < g_.node(id).shapes.size(); ++i) {
      if (i) in_.expect(",");
      const size_t start = in_.pos();
      const Shape declared = in_.read([](auto t, auto& p) { return parse_shape(t, p); });
      const Shape& inferred = g_.node(id).shapes[i];
      if (declared != inferred) {
        in_.fail_at(start,
                    cat(g_.node(id).op->name, ": declared ", declared, ", its operands give ", inferred));
      }
    }
  }

  NodeId call(int depth) {
    if (depth > kMaxDepth) in_.fail(cat("calls nest deeper than ", kMaxDepth));
    in_.skip();
    const size_t start = in_.pos();
    const auto id = std::exchange(pending_id_, std::nullopt);
    const std::string op_name = in_.name("an operator");
    const OpDef* op = nullptr;
    guarded(start, [&] { op = &ops_.at(op_name); });
    if (op->traits.leaf) in_.fail_at(start, cat("'", op_name, "' belongs into the header of the graph"));
    Values operands;
    std::shared_ptr<void> attrs = op->copy_attrs(nullptr);
    std::vector<std::string_view> seen;
    in_.expect("(");
    for (bool first = true; !in_.accept(")"); first = false) {
      if (!first) in_.expect(",");
      if (!attribute(*op, attrs.get(), seen)) operands.push_back(operand(depth));
    }
    NodeId made = kNoNode;
    guarded(start, [&] {
      if (id && !g_.contains(*id)) g_.reserve_id(*id);
      made = g_.append(*op, std::move(attrs), operands);
    });
    g_.set_origin(made, beside_.next_origin());
    return made;
  }

  // `word =` starts an attribute; anything else is an operand.
  bool attribute(const OpDef& op, void* attrs, std::vector<std::string_view>& seen) {
    in_.skip();
    const size_t start = in_.pos();
    const std::string word(in_.peek_word());
    if (word.empty() || !in_.accept_word(word) || !in_.accept("=")) {
      in_.rewind(start);
      return false;
    }
    const FieldInfo* f = op.find_field(word);
    if (f == nullptr) {
      std::vector<std::string> known;
      for (const FieldInfo& field : op.fields) known.emplace_back(field.name);
      in_.fail_at(start, cat(op.name, " has no attribute '", word, "'; it has ",
                             known.empty() ? "none" : join(known)));
    }
    for (const std::string_view s : seen) {
      if (s == f->name) in_.fail_at(start, cat("attribute '", word, "' is given twice"));
    }
    seen.push_back(f->name);
    in_.skip();
    const size_t value_start = in_.pos();
    const AttrValue v = value(*f);
    guarded(value_start, [&] { f->set(attrs, v); });
    return true;
  }

  Value operand(int depth) {
    in_.skip();
    const size_t start = in_.pos();
    std::string name;
    if (in_.accept("%")) {
      name = cat("%", in_.number("a node number"));
    } else {
      name = in_.name("an operand");
      if (in_.peek() == '(') {
        in_.rewind(start);
        const NodeId id = call(depth + 1);
        if (g_.node(id).shapes.size() != 1)
          in_.fail_at(start, cat("'", name, "' has several results; name them first"));
        return g_.value(id);
      }
    }
    const auto it = values_.find(name);
    if (it == values_.end()) in_.fail_at(start, cat("'", name, "' is not defined before its use"));
    uint64_t index = 0;
    if (in_.accept("#")) index = in_.number("a result number");
    if (index >= it->second.second) {
      in_.fail_at(start, cat("'", name, "' has ", it->second.second, " results; there is no #", index));
    }
    return g_.value(it->second.first.node, uint32_t(index));
  }

  void returns() {
    Values outputs;
    std::vector<std::string> names;
    const size_t start = in_.pos();
    while (in_.peek() != '}') {
      if (!outputs.empty()) in_.expect(",");
      in_.skip();
      const size_t item = in_.pos();
      std::string name;
      if (in_.peek() == '"' || !in_.peek_word().empty()) name = in_.name("an output");
      if (name.empty() || !in_.accept("=")) {
        name.clear();
        in_.rewind(item);
      }
      names.push_back(name);
      outputs.push_back(operand(0));
    }
    guarded(start, [&] { g_.set_outputs(std::move(outputs), std::move(names)); });
  }

  void define(const std::string& name, Value v, uint64_t count, size_t start) {
    if (!values_.emplace(name, std::pair(v, count)).second)
      in_.fail_at(start, cat("'", name, "' is defined twice"));
  }

  AttrValue value(const FieldInfo& f) {
    if (in_.accept_word("none")) {
      if (!f.optional && f.kind != AttrKind::graph) in_.fail(cat("attribute '", f.name, "' cannot be none"));
      return f.kind == AttrKind::graph && !f.optional ? AttrValue(GraphRef()) : AttrValue();
    }
    switch (f.kind) {
      case AttrKind::boolean:
        if (in_.accept_word("true")) return true;
        if (in_.accept_word("false")) return false;
        in_.fail(cat("expected true or false, found ", in_.found()));
      case AttrKind::integer:
        return integer();
      case AttrKind::real:
        return real();
      case AttrKind::string:
        return in_.quoted();
      case AttrKind::choice: {
        const size_t start = in_.pos();
        std::string word = in_.name("a choice");
        for (const std::string_view c : f.choices) {
          if (c == word) return word;
        }
        in_.fail_at(start, cat("'", word, "' is not a choice for '", f.name, "'; known: ", join(f.choices)));
      }
      case AttrKind::dtype: {
        const size_t start = in_.pos();
        const std::string word = in_.name("a dtype");
        if (const auto t = dtype_from_name(word)) return *t;
        in_.fail_at(start, cat("'", word, "' is not a dtype"));
      }
      case AttrKind::integers:
        return list<int64_t>("[", "]", [&] { return integer(); });
      case AttrKind::reals:
        return list<double>("[", "]", [&] { return real(); });
      case AttrKind::dim:
        return dim();
      case AttrKind::dims:
        return list<Dim>("(", ")", [&] { return dim(); });
      case AttrKind::shape:
        return in_.read([](auto t, auto& p) { return parse_shape(t, p); });
      case AttrKind::literal:
        return literal();
      case AttrKind::graph:
        return std::make_shared<const Graph>(GraphParser(in_, ops_, beside_, depth_ + 1).parse());
    }
    in_.fail("unknown kind of attribute");
  }

  // The contents, or the name under which they are kept elsewhere.
  Literal literal() {
    in_.skip();
    const size_t start = in_.pos();
    const Shape shape = in_.read([](auto t, auto& p) { return parse_shape(t, p); });
    if (!in_.accept("@")) {
      in_.rewind(start);
      return in_.read([](auto t, auto& p) { return parse_literal(t, p); });
    }
    const std::string name = in_.name("the name of a stored constant");
    if (beside_.fetch == nullptr)
      in_.fail_at(start, cat("'", name, "' is kept outside of this text; load its file"));
    Literal value;
    guarded(start, [&] { value = (*beside_.fetch)(name); });
    if (value.shape() != shape) in_.fail_at(start, cat("'", name, "' is ", value.shape(), ", not ", shape));
    return value;
  }

  template <class T, class Item>
  std::vector<T> list(std::string_view open, std::string_view close, Item item) {
    std::vector<T> out;
    in_.expect(open);
    while (!in_.accept(close)) {
      if (!out.empty()) in_.expect(",");
      out.push_back(item());
    }
    return out;
  }
  Dim dim() {
    return in_.read([](auto t, auto& p) { return parse_dim(t, p); });
  }
  int64_t integer() {
    return in_.read([](std::string_view t, size_t& p) {
      int64_t v = 0;
      const auto [end, error] = std::from_chars(t.data() + p, t.data() + t.size(), v);
      if (error != std::errc()) throw invalid("expected a whole number that fits 64 bits");
      p = size_t(end - t.data());
      return v;
    });
  }
  double real() {
    return in_.read([](std::string_view t, size_t& p) {
      double v = 0;
      const auto [end, error] = std::from_chars(t.data() + p, t.data() + t.size(), v);
      if (error == std::errc::invalid_argument) throw invalid("expected a number");
      p = size_t(end - t.data());
      return v;
    });
  }

  // Errors of the graph get the position of the statement that caused them.
  template <class Action>
  void guarded(size_t start, Action action) {
    try {
      action();
    } catch (const Error& e) {
      if (!e.origin().empty() || e.kind() != ErrorKind::user) throw;
      in_.fail_at(start, e.message());
    }
  }

  Cursor& in_;
  const OpTable& ops_;
  Beside& beside_;
  int depth_;
  Graph g_;
  std::optional<NodeId> pending_id_;
  std::unordered_map<std::string, std::pair<Value, uint64_t>> values_;
};

Graph parse(std::string_view text, const OpTable& ops, Beside beside) {
  Cursor in(text);
  Graph g = GraphParser(in, ops, beside, 0).parse();
  if (!in.at_end()) in.fail(cat("expected the end of the text, found ", in.found()));
  if (!beside.origins.empty() && beside.origins.size() != beside.nodes)
    throw invalid("parse: ", beside.origins.size(), " origins for ", beside.nodes, " nodes");
  return g;
}

}  // namespace

Graph parse_graph(std::string_view text, const OpTable& ops) { return parse(text, ops, {}); }
Graph parse_graph(std::string_view text, const OpTable& ops, const FetchLiteral& fetch,
                  std::span<const OriginRef> origins) {
  return parse(text, ops, {&fetch, origins});
}

}  // namespace rlx::ir
