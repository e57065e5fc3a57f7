#include <charconv>

#include "rlx/ir/graph_parser.h"
#include "rlx/ir/real_text.h"
#include "rlx/ir/text.h"

namespace rlx::ir {
namespace {

class ModuleParser {
 public:
  explicit ModuleParser(Reading& reading) : in_(reading.in), graph_(reading, 0) {}

  Module parse() {
    module_.named = in_.accept_word("module");
    if (module_.named) stage();
    module_.graph = graph_.parse();
    if (!module_.named) module_.stage = stage_of(module_.graph);
    if (module_.stage == Stage::Lir && in_.accept_word("plan")) plan();
    if (!in_.at_end()) in_.fail(cat("expected the end of the text, found ", in_.found()));
    return std::move(module_);
  }
  bool is_complete() const { return graph_.is_complete(); }

 private:
  void stage() {
    in_.skip();
    const size_t start = in_.pos();
    std::string words = in_.name("a stage");
    if (words == "hir") words += cat(" ", in_.name("a policy"));
    try {
      module_.set_words(words);
    } catch (const Error& e) {
      in_.fail_at(start, e.message());
    }
  }

  void plan() {
    in_.expect("{");
    while (!in_.accept("}")) module_.plan.push_back(statement());
  }

  PlanStatement statement() {
    PlanStatement s{in_.name("a statement of the plan"), {}, {}};
    in_.expect("(");
    for (bool first = true; !in_.accept(")"); first = false) {
      if (!first) in_.expect(",");
      in_.skip();
      const size_t start = in_.pos();
      std::string word(in_.peek_word());
      if (!word.empty() && in_.accept_word(word) && in_.accept("=")) {
        s.attrs.emplace_back(std::move(word), value());
        continue;
      }
      in_.rewind(start);
      if (const auto v = graph_.named_value()) s.operands.push_back(*v);
    }
    return s;
  }

  AttrValue value() {
    if (in_.accept_word("true")) return true;
    if (in_.accept_word("false")) return false;
    if (in_.peek() == '"' || !in_.peek_word().empty()) return in_.name("a value");
    if (!in_.accept("[")) return number();
    std::vector<int64_t> list;
    while (!in_.accept("]")) {
      if (!list.empty()) in_.expect(",");
      const AttrValue item = number();
      if (!std::holds_alternative<int64_t>(item)) in_.fail("expected a whole number");
      list.push_back(std::get<int64_t>(item));
    }
    return list;
  }

  // Whole unless it has a point or an exponent.
  AttrValue number() {
    return in_.read([](std::string_view t, size_t& p) -> AttrValue {
      int64_t whole = 0;
      const auto [end, error] = std::from_chars(t.data() + p, t.data() + t.size(), whole);
      const auto at = size_t(end - t.data());
      const char next = at < t.size() ? t[at] : '\0';
      if (error == std::errc() && next != '.' && next != 'e' && next != 'E') return p = at, whole;
      return parse_real(t, p);
    });
  }

  Cursor& in_;
  GraphParser graph_;
  Module module_;
};

Module parse(Reading reading) {
  Module m = ModuleParser(reading).parse();
  if (!reading.origins.empty() && reading.origins.size() != reading.nodes)
    throw invalid("parse: ", reading.origins.size(), " origins for ", reading.nodes, " nodes");
  return m;
}

}  // namespace

Module parse_module(std::string_view text, const OpTable& ops) { return parse(Reading(text, ops)); }

Module parse_module(std::string_view text, const OpTable& ops, const FetchLiteral& fetch,
                    std::span<const OriginRef> origins) {
  Reading reading(text, ops);
  reading.fetch = &fetch;
  reading.origins = origins;
  return parse(reading);
}

Graph parse_graph(std::string_view text, const OpTable& ops) { return parse_module(text, ops).graph; }

std::vector<VerifyError> verify_text(std::string_view text, const OpTable& ops) {
  std::vector<VerifyError> errors;
  Reading reading(text, ops);
  reading.errors = &errors;
  ModuleParser parser(reading);
  try {
    Module m;
    if (reading.attempt([&] { m = parser.parse(); }) && errors.empty()) return m.graph.verify();
  } catch (const Reading::TooMany&) {
  }
  return errors;
}

AttrsRef parse_attrs(std::string_view text, const OpDef& op, const OpTable& ops) {
  Reading reading(text, ops);
  GraphParser parser(reading, 0);
  std::shared_ptr<void> attrs = op.copy_attrs(nullptr);
  std::vector<std::string_view> seen;
  for (bool first = true; !reading.in.at_end(); first = false) {
    if (!first) reading.in.expect(",");
    if (!parser.attribute(&op, attrs.get(), seen))
      reading.in.fail(cat("expected an attribute, found ", reading.in.found()));
  }
  return attrs;
}

}  // namespace rlx::ir
