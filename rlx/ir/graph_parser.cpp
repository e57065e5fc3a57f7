#include "rlx/ir/graph_parser.h"

#include <algorithm>
#include <utility>

#include "rlx/ir/leaves.h"

namespace rlx::ir {

void Reading::collect(const Error& e) {
  constexpr size_t kEnough = 100;
  errors->push_back({std::nullopt, "text", e.message(), e.origin()});
  if (errors->size() >= kEnough) throw TooMany{};
}

Graph GraphParser::parse() {
  if (depth_ > kMaxParseDepth) in_.fail(cat("bodies nest deeper than ", kMaxParseDepth));
  if (!in_.accept_word("graph")) in_.fail(cat("expected 'graph', found ", in_.found()));
  if (in_.accept("@")) g_.set_name(in_.name("the graph's name"));
  collect_numbers();
  header();
  if (in_.accept_word("where")) sizes();
  in_.expect("{");
  statements();
  if (!reading_.attempt([&] { in_.expect("}"); })) {
    complete_ = false;
    skip_to_end();
    in_.accept("}");
  }
  return std::move(g_);
}

void GraphParser::header() {
  in_.expect("(");
  for (bool first = true; !in_.accept(")"); first = false) {
    if (!first) in_.expect(",");
    const size_t start = in_.pos();
    if (reading_.attempt([&] { leaf(); })) continue;
    complete_ = false;
    skip_argument(start);
  }
}

void GraphParser::sizes() {
  do {
    in_.skip();
    const size_t start = in_.pos();
    const Dim a = dim();
    in_.expect("=");
    const Dim b = dim();
    guarded(start, [&] { g_.assume_equal(a, b); });
  } while (in_.accept(","));
}

void GraphParser::leaf() {
  const bool param = in_.accept_word("param");
  in_.skip();
  const size_t start = in_.pos();
  const std::string name = in_.name("the name of an input");
  const auto type = [&] {
    in_.expect(":");
    return in_.read([](auto t, auto& p) { return parse_shape(t, p); });
  };
  std::optional<Shape> shape;
  if (!reading_.attempt([&] { shape = type(); })) {
    define(name, std::nullopt, 1, start);
    throw Reading::Abandoned{};
  }
  guarded(start, [&] {
    reserve(std::nullopt);
    const Value leaf = param ? g_.param(name, *shape) : g_.input(name, *shape);
    g_.set_origin(leaf.node, reading_.next_origin());
    define(name, leaf, 1, start);
  });
}

void GraphParser::statements() {
  while (!in_.accept_word("return")) {
    if (in_.peek() == '}' && !complete_) return;  // it may be in what was skipped
    if (in_.at_end() || in_.peek() == '}')
      in_.fail(cat("expected a statement or 'return', found ", in_.found()));
    const size_t start = in_.pos();
    if (reading_.attempt([&] { statement(); })) continue;
    complete_ = false;
    skip_statement(start);
  }
  if (reading_.attempt([&] { returns(); })) return;
  complete_ = false;
  skip_to_end();
}

// A numbered node keeps its number, so that a text and the graph made from it speak of the same %7.
void GraphParser::statement() {
  const size_t start = in_.pos();
  std::string name;
  std::optional<NodeId> id;
  if (in_.accept("%")) {
    const uint64_t number = in_.number("a node number");
    if (number >= kNoNode) in_.fail_at(start, cat("node number ", number, " is too large"));
    id = NodeId(number);
    name = cat("%", number);
  } else {
    name = in_.name("a statement");
  }
  const uint64_t count = in_.accept(":") ? in_.number("the number of results") : 1;
  std::optional<NodeId> made;
  const bool read = reading_.attempt([&] {
    in_.expect("=");
    const size_t call_start = in_.pos();
    pending_id_ = id;
    made = call(0);
    pending_id_.reset();
    if (!made) return;
    const Node& n = g_.node(*made);
    if (n.shapes.size() != count) {
      made.reset();
      in_.fail_at(call_start,
                  cat(n.op->name, " has ", n.shapes.size(), " results; the statement names ", count));
    }
    if (!id) g_.set_name(*made, name);
  });
  define(name, made ? std::optional(g_.value(*made)) : std::nullopt, count, start);
  if (!read) throw Reading::Abandoned{};
  if (in_.accept(":")) declared_types(made, count);
}

void GraphParser::declared_types(std::optional<NodeId> id, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    if (i) in_.expect(",");
    const size_t start = in_.pos();
    const Shape declared = in_.read([](auto t, auto& p) { return parse_shape(t, p); });
    if (!id) continue;
    const Node& n = g_.node(*id);
    if (g_.resolve(declared) != n.shapes[i])
      in_.fail_at(start, cat(n.op->name, ": declared ", declared, ", its operands give ", n.shapes[i]));
  }
}

std::optional<NodeId> GraphParser::call(int depth) {
  if (depth > kMaxParseDepth) in_.fail(cat("calls nest deeper than ", kMaxParseDepth));
  in_.skip();
  const size_t start = in_.pos();
  const auto id = std::exchange(pending_id_, std::nullopt);
  const std::string op_name = in_.name("an operator");
  const OpDef* op = nullptr;
  reading_.attempt([&] {
    guarded(start, [&] { op = &reading_.ops.at(op_name); });
    if (!op->traits.leaf) return;
    op = nullptr;
    in_.fail_at(start, cat("'", op_name, "' belongs into the header of the graph"));
  });
  bool known = op != nullptr;
  Values operands;
  std::shared_ptr<void> attrs = known ? op->copy_attrs(nullptr) : nullptr;
  std::vector<std::string_view> seen;
  in_.expect("(");
  for (bool first = true; !in_.accept(")"); first = false) {
    if (!first) in_.expect(",");
    in_.skip();
    const size_t argument_start = in_.pos();
    const bool read = reading_.attempt([&] { known &= argument(op, attrs.get(), seen, operands, depth); });
    if (read) continue;
    known = false;
    skip_argument(argument_start);
  }
  if (!known) {
    complete_ = false;
    return std::nullopt;
  }
  return append(*op, std::move(attrs), operands, start, id);
}

// False when it is well formed but speaks of something that was reported before.
bool GraphParser::argument(const OpDef* op, void* attrs, std::vector<std::string_view>& seen,
                           Values& operands, int depth) {
  const size_t before = reading_.errors ? reading_.errors->size() : 0;
  if (attribute(op, attrs, seen)) return reading_.errors == nullptr || reading_.errors->size() == before;
  const auto v = operand(depth);
  if (v) operands.push_back(*v);
  return v.has_value();
}

std::optional<NodeId> GraphParser::append(const OpDef& op, std::shared_ptr<void> attrs,
                                          const Values& operands, size_t start, std::optional<NodeId> id) {
  NodeId made = kNoNode;
  guarded(start, [&] {
    reserve(id);
    made = g_.append(op, std::move(attrs), operands);
  });
  g_.set_origin(made, reading_.next_origin());
  return made;
}

// `word =` starts an attribute; anything else is an operand. Those of an unknown operator are skipped.
bool GraphParser::attribute(const OpDef* op, void* attrs, std::vector<std::string_view>& seen) {
  in_.skip();
  const size_t start = in_.pos();
  const std::string word(in_.peek_word());
  if (word.empty() || !in_.accept_word(word) || !in_.accept("=")) {
    in_.rewind(start);
    return false;
  }
  if (op == nullptr) {
    skip_argument(start);
    return true;
  }
  const FieldInfo* f = op->find_field(word);
  if (f == nullptr) {
    std::vector<std::string> known;
    for (const FieldInfo& field : op->fields) known.emplace_back(field.name);
    in_.fail_at(start, cat(op->name, " has no attribute '", word, "'; it has ",
                           known.empty() ? "none" : join(known)));
  }
  if (std::find(seen.begin(), seen.end(), f->name) != seen.end())
    in_.fail_at(start, cat("attribute '", word, "' is given twice"));
  seen.push_back(f->name);
  in_.skip();
  const size_t value_start = in_.pos();
  const auto v = value(*f);
  if (!v) return true;
  try {
    f->set(attrs, *v);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::user) throw;
    in_.fail_at(value_start, cat(op->name, ": attribute '", word, "': ", e.message()));
  }
  return true;
}

std::optional<Value> GraphParser::operand(int depth) {
  in_.skip();
  const size_t start = in_.pos();
  if (in_.peek() == '"' || !in_.peek_word().empty()) {
    const std::string name = in_.name("an operand");
    const bool is_call = in_.peek() == '(';
    in_.rewind(start);
    if (is_call) {
      const auto id = call(depth + 1);
      if (!id) return std::nullopt;
      if (g_.node(*id).shapes.size() != 1)
        in_.fail_at(start, cat("'", name, "' has several results; name them first"));
      return g_.value(*id);
    }
  }
  return named_value();
}

std::optional<Value> GraphParser::named_value() {
  in_.skip();
  const size_t start = in_.pos();
  const std::string name = in_.accept("%") ? cat("%", in_.number("a node number")) : in_.name("an operand");
  const auto it = values_.find(name);
  if (it == values_.end() && reported_.insert(name).second)
    in_.fail_at(start, cat("'", name, "' is not defined before its use"));
  uint64_t index = 0;
  if (in_.accept("#")) index = in_.number("a result number");
  if (it == values_.end()) return std::nullopt;
  const auto& [first, count] = it->second;
  if (index >= count) in_.fail_at(start, cat("'", name, "' has ", count, " results; there is no #", index));
  if (!first) return std::nullopt;
  return Value{first->node, uint16_t(index), first->tag};
}

void GraphParser::returns() {
  Values outputs;
  std::vector<std::string> names;
  const size_t start = in_.pos();
  bool known = true;
  for (bool first = true; in_.peek() != '}'; first = false) {
    if (!first) in_.expect(",");
    in_.skip();
    const size_t item = in_.pos();
    std::string name;
    if (in_.peek() == '"' || !in_.peek_word().empty()) name = in_.name("an output");
    if (name.empty() || !in_.accept("=")) {
      name.clear();
      in_.rewind(item);
    }
    const bool read = reading_.attempt([&] {
      const auto v = operand(0);
      known &= v.has_value();
      outputs.push_back(v.value_or(Value{}));
      names.push_back(name);
    });
    if (read) continue;
    known = false;
    skip_argument(item);
  }
  if (!known) {
    complete_ = false;
    return;
  }
  guarded(start, [&] { g_.set_outputs(std::move(outputs), std::move(names)); });
}

void GraphParser::define(const std::string& name, std::optional<Value> first, uint64_t count, size_t start) {
  if (!values_.emplace(name, Named{first, count}).second)
    in_.fail_at(start, cat("'", name, "' is defined twice"));
}

// The numbers that statements of this graph carry: nodes without a number keep clear of them.
void GraphParser::collect_numbers() {
  const size_t start = in_.pos();
  for (int braces = 0; !in_.at_end();) {
    const char c = in_.step();
    braces += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (braces <= 0 && c == '}') break;
    if (c != '%' || braces != 1) continue;
    const char digit = in_.peek();
    if (digit < '0' || digit > '9') continue;
    uint64_t number = 0;
    try {
      number = in_.number("a node number");
    } catch (const Error&) {
      break;  // more digits than fit: told when its statement is read
    }
    if (number < kNoNode) numbers_.push_back(NodeId(number));
  }
  in_.rewind(start);
  std::sort(numbers_.begin(), numbers_.end());
  numbers_.erase(std::unique(numbers_.begin(), numbers_.end()), numbers_.end());
}

// The id of the next node: the one wanted, when it is free and not too far off, else the lowest that no
// statement asks for.
void GraphParser::reserve(std::optional<NodeId> wanted) {
  if (wanted && !g_.contains(*wanted)) {
    const NodeId end = g_.next_id();
    const size_t gap = *wanted > end ? *wanted - end : 0;
    if (gap <= reading_.holes) {
      reading_.holes -= gap;
      return g_.reserve_id(*wanted);
    }
  }
  const auto taken = [this] {
    while (next_number_ < numbers_.size() && numbers_[next_number_] < next_id_) ++next_number_;
    return (next_number_ < numbers_.size() && numbers_[next_number_] == next_id_) || g_.contains(next_id_);
  };
  while (taken()) ++next_id_;
  g_.reserve_id(next_id_++);
}

// To the comma or bracket behind an argument. Where a new statement or the end of the graph comes first, a
// bracket is missing and the statement is given up.
void GraphParser::skip_argument(size_t start) {
  in_.rewind(start);
  int brackets = 0, braces = 0;
  while (!in_.at_end()) {
    const char c = in_.peek();
    if (brackets == 0 && braces == 0 && (c == ',' || c == ')' || c == '}')) {
      if (c == '}') break;
      return;
    }
    if (braces == 0 && in_.pos() != start && in_.starts_line() && in_.at_statement()) break;
    in_.step();
    brackets += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    braces += c == '{' ? 1 : c == '}' ? -1 : 0;
  }
  throw Reading::Abandoned{};
}

// To the next statement, `return` or the end of the graph.
void GraphParser::skip_statement(size_t start) {
  in_.rewind(start);
  int brackets = 0, braces = 0;
  for (bool first = true; !in_.at_end(); first = false) {
    const char c = in_.peek();
    if (braces == 0 && c == '}') return;
    const bool may_start = braces == 0 && (brackets <= 0 || in_.starts_line());
    if (!first && may_start && (in_.peek_word() == "return" || in_.at_statement())) return;
    in_.step();
    brackets += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    braces += c == '{' ? 1 : c == '}' ? -1 : 0;
  }
}

void GraphParser::skip_to_end() {
  for (int braces = 0; !in_.at_end(); in_.step()) {
    const char c = in_.peek();
    if (c == '}' && braces-- == 0) return;
    braces += c == '{' ? 1 : 0;
  }
}

}  // namespace rlx::ir
