#include "rlx/passes/algebra.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "rlx/ir/leaves.h"
#include "rlx/ops/all.h"
#include "rlx/passes/edit.h"

namespace rlx::passes {
namespace {

using Numbers = Rule::Numbers;

constexpr Rule kRules[] = {
    {"neg_neg", "neg(neg(x))", "x"},
    {"abs_neg", "abs(neg(x))", "abs(x)", Numbers::with_sign},
    {"abs_abs", "abs(abs(x))", "abs(x)"},
    {"relu_relu", "relu(relu(x))", "relu(x)"},
    {"floor_floor", "floor(floor(x))", "floor(x)"},
    {"ceil_ceil", "ceil(ceil(x))", "ceil(x)"},
    {"round_round", "round(round(x))", "round(x)"},
    {"stop_gradient", "stop_gradient(x)", "x"},
    {"mul_one", "mul(x, 1)", "x", Numbers::real},  // of complex ones, infinity times the 0 of 1 + 0i is NaN
    {"div_one", "div(x, 1)", "x", Numbers::real},
    {"sub_zero", "sub(x, 0)", "x"},                        // x + 0 would turn -0 into 0
    {"add_minus_zero", "add(x, -0)", "x", Numbers::real},  // the other part of a complex -0 is +0
    {"pow_one", "pow(x, 1)", "x"},
    {"sub_neg", "sub(x, neg(y))", "add(x, y)"},
    {"add_neg", "add(x, neg(y))", "sub(x, y)"},
    {"mul_neg_neg", "mul(neg(x), neg(y))", "mul(x, y)"},
    {"div_neg_neg", "div(neg(x), neg(y))", "div(x, y)",
     Numbers::floats},  // the least integer is its own negative
    {"max_self", "max(x, x)", "x"},
    {"min_self", "min(x, x)", "x"},
    {"where_same", "where(c, x, x)", "x"},
};

bool is_one_of(DType t, Numbers numbers) {
  switch (numbers) {
    case Numbers::all:
      return true;
    case Numbers::real:
      return !is_complex(t);
    case Numbers::with_sign:
      return t != DType::bool_ && t != DType::u8 && t != DType::u32;
    case Numbers::floats:
      return is_float(t);
  }
  return false;
}

/// A call, a name or a number.
struct Pattern {
  const ir::OpDef* op = nullptr;
  std::string name;
  double number = 0;
  bool is_number = false;
  std::vector<Pattern> operands;
};

Pattern parse(std::string_view text, size_t& at) {
  const auto skip = [&] {
    while (at < text.size() && text[at] == ' ') ++at;
  };
  skip();
  Pattern p;
  const size_t begin = at;
  while (at < text.size() &&
         (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_' || text[at] == '-'))
    ++at;
  p.name = text.substr(begin, at - begin);
  RLX_CHECK(!p.name.empty(), "rule '", text, "' at ", at);
  p.is_number = p.name[0] == '-' || std::isdigit(static_cast<unsigned char>(p.name[0]));
  if (p.is_number) {
    const auto [end, error] = std::from_chars(p.name.data(), p.name.data() + p.name.size(), p.number);
    RLX_CHECK(error == std::errc() && end == p.name.data() + p.name.size(), "rule '", text, "': ", p.name);
  }
  skip();
  if (at == text.size() || text[at] != '(') return p;
  p.op = &ops::table().at(p.name);
  do {
    ++at;  // '(' or ','
    p.operands.push_back(parse(text, at));
    skip();
  } while (text[at] == ',');
  RLX_CHECK(text[at] == ')', "rule '", text, "' at ", at);
  ++at;
  return p;
}

Pattern parse(std::string_view text) {
  size_t at = 0;
  Pattern p = parse(text, at);
  RLX_CHECK(at == text.size(), "rule '", text, "' at ", at);
  return p;
}

struct ParsedRule {
  const Rule* rule;
  Pattern from, to;
};

const std::multimap<const ir::OpDef*, ParsedRule>& rules_by_operator() {
  static const auto* const all = [] {
    auto* out = new std::multimap<const ir::OpDef*, ParsedRule>();
    for (const Rule& r : kRules) {
      Pattern from = parse(r.from);
      const ir::OpDef* op = from.op;
      out->emplace(op, ParsedRule{&r, std::move(from), parse(r.to)});
    }
    return out;
  }();
  return *all;
}

using Bound = std::map<std::string, ir::Value>;

// Whether every element is `number`, sign of zero included.
bool holds(const ir::Node& n, double number) {
  const auto same = [&](double v) { return v == number && std::signbit(v) == std::signbit(number); };
  if (n.is<ir::Full>()) return same(n.as<ir::Full>().value);
  if (!n.is<ir::Constant>()) return false;
  const Literal& l = n.as<ir::Constant>().value;
  if (is_complex(l.dtype()) || l.elements() == 0 || l.elements() > 4096) return false;
  for (int64_t i = 0; i < l.elements(); ++i) {
    if (!same(l.real_at(i))) return false;
  }
  return true;
}

bool match(const ir::Graph& g, const Pattern& p, ir::Value v, Bound& bound);

bool match_operands(const ir::Graph& g, const Pattern& p, std::span<const ir::Value> operands, Bound& bound) {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!match(g, p.operands[i], operands[i], bound)) return false;
  }
  return true;
}

bool match_call(const ir::Graph& g, const Pattern& p, const ir::OpDef* op,
                std::span<const ir::Value> operands, Bound& bound) {
  if (op != p.op || operands.size() != p.operands.size()) return false;
  const Bound before = bound;
  if (match_operands(g, p, operands, bound)) return true;
  if (!op->traits.commutative || operands.size() != 2) return false;
  bound = before;
  const ir::Value turned[] = {operands[1], operands[0]};
  return match_operands(g, p, turned, bound);
}

bool match(const ir::Graph& g, const Pattern& p, ir::Value v, Bound& bound) {
  const ir::Node& n = g.node(v);
  if (p.is_number) return holds(n, p.number);
  if (p.op == nullptr) {
    const auto [it, fresh] = bound.try_emplace(p.name, v);
    return fresh || it->second == v;
  }
  return match_call(g, p, n.op, n.inputs, bound);
}

ir::Value emit(ir::Graph& g, const Pattern& p, const Bound& bound) {
  if (p.op == nullptr) return bound.at(p.name);
  ir::Values operands;
  for (const Pattern& o : p.operands) operands.push_back(emit(g, o, bound));
  return g.value(g.append(*p.op, nullptr, operands));
}

}  // namespace

std::span<const Rule> algebraic_rules() { return kRules; }

ir::Rewritten simplify(ir::Graph graph) {
  const auto& rules = rules_by_operator();
  return edit(std::move(graph), [&](ir::Graph& g, const ir::Node& n) -> std::optional<ir::Values> {
    const auto [first, last] = rules.equal_range(n.op);
    for (auto it = first; it != last; ++it) {
      const ParsedRule& r = it->second;
      if (!is_one_of(n.shapes[0].dtype(), r.rule->numbers)) continue;
      Bound bound;
      if (!match_call(g, r.from, n.op, n.inputs, bound)) continue;
      if (r.to.op == nullptr) {
        const ir::Value v = bound.at(r.to.name);
        if (g.shape(v) != n.shapes[0]) continue;
        return ir::Values{v};
      }
      const ir::OriginScope scope(g, ir::noted_origin(n, std::string(r.rule->name)));
      const ir::Value v = emit(g, r.to, bound);
      if (g.shape(v) == n.shapes[0]) return ir::Values{v};
    }
    return std::nullopt;
  });
}

ir::Graph side_of(const Rule& rule, bool from, const Shape& type) {
  ir::Graph g(std::string(rule.name));
  Bound bound;
  const Pattern left = parse(rule.from), wanted = from ? left : parse(rule.to);
  const auto declare = [&](const auto& self, const Pattern& p, bool condition) -> void {
    for (size_t i = 0; i < p.operands.size(); ++i) self(self, p.operands[i], p.name == "where" && i == 0);
    if (p.op == nullptr && !p.is_number && !bound.contains(p.name))
      bound[p.name] = g.input(p.name, condition ? type.with_dtype(DType::bool_) : type);
  };
  declare(declare, left, false);
  const auto with_numbers = [&](const auto& self, const Pattern& p) -> ir::Value {
    if (p.is_number) return ir::full(g, type, p.number);
    if (p.op == nullptr) return bound.at(p.name);
    ir::Values operands;
    for (const Pattern& o : p.operands) operands.push_back(self(self, o));
    return g.value(g.append(*p.op, nullptr, operands));
  };
  g.set_outputs({with_numbers(with_numbers, wanted)});
  return g;
}

}  // namespace rlx::passes
