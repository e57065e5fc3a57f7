// The parser of graph texts, for rlx/ir/parse.cpp. It throws the first error, or collects all of them: then
// it goes on behind what it cannot read, and whatever depends on that is unknown and silent.
#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "rlx/ir/cursor.h"
#include "rlx/ir/text.h"

namespace rlx::ir {

// Limit that turns a hostile text into an error instead of a deep stack.
inline constexpr int kMaxParseDepth = 48;

/// What a text and all its bodies have in common.
struct Reading {
  Reading(std::string_view text, const OpTable& table) : in(text), ops(table), holes(65536 + text.size()) {}

  Cursor in;
  const OpTable& ops;
  const FetchLiteral* fetch = nullptr;      // constants kept beside the text
  std::span<const OriginRef> origins = {};  // of the nodes, in the order they are made
  std::vector<VerifyError>* errors = nullptr;
  size_t nodes = 0;  // made so far, in all bodies
  size_t holes;      // ids that numbered nodes may still leave unused: memory follows the text

  OriginRef next_origin() {
    const size_t i = nodes++;
    return i < origins.size() ? origins[i] : nullptr;
  }
  /// Runs `action`; true when it went well. While errors are collected, its user error is put there instead
  /// of being thrown.
  template <class Action>
  bool attempt(Action action) {
    try {
      action();
      return true;
    } catch (const Error& e) {
      if (errors == nullptr || e.kind() != ErrorKind::user) throw;
      collect(e);
    } catch (const Abandoned&) {
    }
    return false;
  }
  /// Something was reported already and the rest of the statement makes no sense.
  struct Abandoned {};
  /// A hundred errors are enough.
  struct TooMany {};

 private:
  void collect(const Error&);
};

class GraphParser {
 public:
  GraphParser(Reading& reading, int depth) : reading_(reading), in_(reading.in), depth_(depth) {}

  Graph parse();
  /// False when errors were collected: the graph has parts only.
  bool is_complete() const { return complete_; }
  /// A value of the parsed graph by its name in the text; nothing when it is unknown.
  std::optional<Value> named_value();
  /// `word = value` of an operator, or false when something else comes.
  bool attribute(const OpDef* op, void* attrs, std::vector<std::string_view>& seen);

 private:
  struct Named {
    std::optional<Value> first;
    uint64_t count = 1;
  };

  void header();
  void sizes();
  void leaf();
  void statements();
  void statement();
  void returns();
  std::optional<NodeId> call(int depth);
  std::optional<Value> operand(int depth);
  bool argument(const OpDef* op, void* attrs, std::vector<std::string_view>& seen, Values& operands,
                int depth);
  std::optional<NodeId> append(const OpDef& op, std::shared_ptr<void> attrs, const Values& operands,
                               size_t start, std::optional<NodeId> id);
  void declared_types(std::optional<NodeId> id, uint64_t count);
  void define(const std::string& name, std::optional<Value> first, uint64_t count, size_t start);

  void collect_numbers();
  void reserve(std::optional<NodeId> wanted);

  // Over what could not be read.
  void skip_argument(size_t start);
  void skip_statement(size_t start);
  void skip_to_end();

  // Values of attributes: rlx/ir/attr_parser.cpp. Nothing: a body that was reported already.
  std::optional<AttrValue> value(const FieldInfo& f);
  AttrValue plain_value(const FieldInfo& f);
  AttrValue choice(const FieldInfo& f);
  std::optional<AttrValue> body();
  DType dtype();
  Literal literal();
  Dim dim();
  int64_t integer();
  double real();
  /// Sizes stand in (2,n), numbers in [2,3].
  template <class Item>
  auto list(const FieldInfo& f, std::string_view open, std::string_view close, Item item) {
    std::vector<decltype(item())> out;
    if (!in_.accept(open))
      in_.fail(
          cat("attribute '", f.name, "' is a list, written ", open, "2,3", close, "; found ", in_.found()));
    while (!in_.accept(close)) {
      if (!out.empty()) in_.expect(",");
      out.push_back(item());
    }
    return out;
  }

  /// Errors of the graph get the place of what caused them.
  template <class Action>
  void guarded(size_t start, Action action) {
    try {
      action();
    } catch (const Error& e) {
      if (!e.origin().empty() || e.kind() != ErrorKind::user) throw;
      in_.fail_at(start, e.message());
    }
  }

  Reading& reading_;
  Cursor& in_;
  int depth_;
  Graph g_;
  bool complete_ = true;
  std::optional<NodeId> pending_id_;
  std::unordered_map<std::string, Named> values_;
  std::unordered_set<std::string> reported_;  // names missed once
  std::vector<NodeId> numbers_;               // that statements of this graph ask for, sorted
  size_t next_number_ = 0;
  NodeId next_id_ = 0;
};

}  // namespace rlx::ir
