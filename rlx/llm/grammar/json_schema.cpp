#include "rlx/llm/grammar/json_schema.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "rlx/base/error.h"
#include "rlx/base/json_write.h"
#include "rlx/llm/grammar/json_keywords.h"
#include "rlx/llm/grammar/json_text.h"

namespace rlx::llm {

namespace {

// Each schema is a rule, so that schemas may hold each other. What must hold at once (allOf, a reference and what stands beside
// it) is a list of schemas; a choice (anyOf) makes several such lists.
class Compiler {
 public:
  explicit Compiler(JsonView document) : document_(document) {}

  RuleSet compile() {
    space_ = call_rule(rules_.add("space", json_space()));
    const ExpressionPtr root = value({document_});
    rules_.root = rules_.add("root", root);
    return std::move(rules_);
  }

 private:
  ExpressionPtr value(const Schemas& schemas) {
    std::string key;
    for (const JsonView& s : schemas) key += s.place() + "\n";
    const auto [found, fresh] = known_.try_emplace(key, 0);
    if (!fresh) return call_rule(found->second);
    const int rule = found->second = rules_.add(schemas.empty() ? "value" : schemas[0].place());
    std::vector<ExpressionPtr> ways;
    for (const Schemas& all : alternatives(document_, schemas))
      ways.push_back(of_keywords(collect_keywords(all)));
    rules_.rules[size_t(rule)].body = any_of(std::move(ways));
    return call_rule(rule);
  }

  ExpressionPtr of_keywords(const Keywords& k) {
    if (k.values) return one_of_values(k);
    std::vector<ExpressionPtr> ways;
    if (k.types & kNull) ways.push_back(text_of("null"));
    if (k.types & kBoolean) ways.push_back(any_of({text_of("true"), text_of("false")}));
    if (k.types & kNumber)
      ways.push_back(number(k));
    else if (k.types & kInteger)
      ways.push_back(integer(k));
    if (k.types & kString) ways.push_back(in_sequence({text_of("\""), string_inside(k), text_of("\"")}));
    if (k.types & kArray) ways.push_back(array(k));
    if (k.types & kObject) ways.push_back(object(k));
    return any_of(std::move(ways));
  }

  // Values listed: those that the other keywords allow as well.
  ExpressionPtr one_of_values(const Keywords& k) {
    std::vector<ExpressionPtr> ways;
    for (const JsonView& v : *k.values)
      if (allows(k, v) && parts_fit(k, v)) ways.push_back(text_of(v.text()));
    return any_of(std::move(ways));
  }

  bool fits(const Schemas& schemas, JsonView v) {
    for (const Schemas& all : alternatives(document_, schemas)) {
      const Keywords k = collect_keywords(all);
      if (allows(k, v) && parts_fit(k, v)) return true;
    }
    return false;
  }
  bool name_fits(const Schemas& schemas, std::string_view name) {
    return fits(schemas, Json::parse(json_quote(name), "the name of a member"));
  }

  // Elements and members of a value whose type fits.
  bool parts_fit(const Keywords& k, JsonView v) {
    if (v.is_array()) return elements_fit(k, v);
    return !v.is_object() || members_fit(k, v);
  }

  bool elements_fit(const Keywords& k, JsonView v) {
    const auto n = int64_t(v.size());
    if (n < k.least_items || (k.most_items && n > *k.most_items)) return false;
    for (size_t i = 0; i < v.size(); ++i) {
      if (!fits(i < k.prefix.size() ? k.prefix[i] : k.items, v.at(i))) return false;
      for (size_t j = 0; k.unique && j < i; ++j)
        if (v.at(i).text() == v.at(j).text()) return false;
    }
    return true;
  }

  bool members_fit(const Keywords& k, JsonView v) {
    const auto n = int64_t(v.size());
    if (n < k.least_members || (k.most_members && n > *k.most_members)) return false;
    for (const Property& p : k.properties)
      if (p.required && !has_member(v, p.name)) return false;
    for (const auto [name, value] : v.members()) {
      if (k.further_names && !name_fits(*k.further_names, name)) return false;
      const auto property = std::find_if(k.properties.begin(), k.properties.end(),
                                         [&, wanted = name](const Property& p) { return p.name == wanted; });
      if (property != k.properties.end()) {
        if (!fits(property->schemas, value)) return false;
      } else if (k.further_closed || std::find(k.refused.begin(), k.refused.end(), name) != k.refused.end() ||
                 !fits(k.further, value)) {
        return false;
      }
    }
    return true;
  }
  static bool has_member(JsonView object, std::string_view name) {
    for (const auto [key, value] : object.members())
      if (key == name) return true;
    return false;
  }

  ExpressionPtr integer(const Keywords& k) {
    if (!k.multiple_of) return json_integer(k.range);
    const auto step = int64_t(*k.multiple_of);
    if (double(step) != *k.multiple_of || step < 1)
      throw k.multiple_place.error("must be a whole number from 1 on for integers");
    return multiples(k, step);
  }

  // Few multiples are listed; without bounds an automaton counts the remainder: from r, digit d leads to (10 r + d) mod step.
  ExpressionPtr multiples(const Keywords& k, int64_t step) {
    if (step == 1) return json_integer(k.range);
    const NumberRange& r = k.range;
    if (r.least && r.most && (*r.most - *r.least) / double(step) <= 4096) {
      std::vector<ExpressionPtr> ways;
      for (int64_t m = int64_t(std::ceil(*r.least / double(step))) * step; double(m) <= *r.most; m += step)
        if (!(r.above && double(m) == *r.least) && !(r.below && double(m) == *r.most))
          ways.push_back(text_of(std::to_string(m)));
      return any_of(std::move(ways));
    }
    if (r.most || (r.least && (*r.least != 0 || r.above)) || step > 1000)
      throw k.multiple_place.error("with these bounds is more than a grammar of reasonable size can count");
    std::vector<int> states;
    for (int64_t i = 0; i < step; ++i) states.push_back(rules_.add("remainder " + std::to_string(i)));
    const auto digit = [&](int64_t remainder, int from) {
      std::vector<ExpressionPtr> ways;
      for (int d = from; d < 10; ++d)
        ways.push_back(in_sequence(
            {text_of(std::to_string(d)), call_rule(states[size_t((remainder * 10 + d) % step)])}));
      return ways;
    };
    for (int64_t i = 0; i < step; ++i) {
      std::vector<ExpressionPtr> ways = digit(i, 0);
      if (i == 0) ways.push_back(text_of(""));
      rules_.rules[size_t(states[size_t(i)])].body = any_of(std::move(ways));
    }
    const ExpressionPtr above_zero = any_of(digit(0, 1));
    return any_of({text_of("0"), in_sequence({r.least ? text_of("") : optional(text_of("-")), above_zero})});
  }

  ExpressionPtr number(const Keywords& k) {
    if (!k.multiple_of) return json_number(k.range);
    double unit = 1;
    for (int places = 0; places <= 16; ++places, unit /= 10)
      if (std::fabs(*k.multiple_of - unit) <= 1e-12 * unit) return json_decimal(k.range, places);
    const auto step = int64_t(*k.multiple_of);
    if (double(step) == *k.multiple_of && step >= 1) return multiples(k, step);
    throw k.multiple_place.error("must be a whole number, or 0.1, 0.01, ... for a grammar");
  }

  // Sequences of `open` (part ("," part)*)? `close` with white space.
  ExpressionPtr comma() { return in_sequence({text_of(","), space_}); }

  ExpressionPtr array(const Keywords& k) {
    if (k.unique && (!k.most_items || *k.most_items > 1))
      throw k.unique_place.error("is more than a grammar can check; leave it out or set maxItems to 1");
    if (k.most_items && *k.most_items < k.least_items) return any_of({});
    const int64_t prefix = int64_t(k.prefix.size());
    const bool more = !k.items_closed;
    const int64_t most = k.most_items.value_or(-1);
    // Elements behind the prefix, each after a comma; the first of an empty prefix has none.
    const auto tail = [&](int64_t before) -> ExpressionPtr {
      const int64_t least = std::max<int64_t>(0, k.least_items - before),
                    limit = most < 0 ? -1 : most - before;
      if (!more || limit == 0) return least > 0 ? any_of({}) : text_of("");
      const ExpressionPtr item = value(k.items), next = in_sequence({comma(), item});
      if (before > 0) return repeated(next, least, limit);
      const ExpressionPtr some =
          in_sequence({item, repeated(next, std::max<int64_t>(0, least - 1), limit < 0 ? -1 : limit - 1)});
      return least > 0 ? some : optional(some);
    };
    ExpressionPtr rest;
    if (most >= 0 && most < prefix)
      rest = text_of("");
    else
      rest = tail(prefix);
    const int64_t last = most < 0 ? prefix : std::min(prefix, most);
    for (int64_t i = last; i-- > 0;) {
      const ExpressionPtr item = value(k.prefix[size_t(i)]);
      rest = in_sequence({i > 0 ? comma() : text_of(""), item, rest});
      if (i >= k.least_items) rest = optional(rest);
    }
    if (k.least_items > last && !more) return any_of({});
    return in_sequence({text_of("["), space_, rest, space_, text_of("]")});
  }

  ExpressionPtr member(const std::string& name, const Schemas& schemas) {
    return in_sequence({text_of(json_quote(name)), text_of(":"), space_, value(schemas)});
  }

  // Names that propertyNames refuses are those of no property.
  ExpressionPtr object(Keywords k) {
    for (const Property& p : k.properties)
      if (k.further_names && !name_fits(*k.further_names, p.name)) {
        if (p.required) return any_of({});
        k.refused.push_back(p.name);
      }
    std::erase_if(k.properties, [&](const Property& p) {
      return std::find(k.refused.begin(), k.refused.end(), p.name) != k.refused.end();
    });
    std::map<std::pair<size_t, int64_t>, int> rules;
    const ExpressionPtr further = further_member(k);
    const ExpressionPtr members = members_from(k, further, 0, 0, rules);
    return in_sequence({text_of("{"), space_, members, space_, text_of("}")});
  }

  // Members i, i + 1, ... and further ones when `count` have been written. Without limits of their number it is enough to know
  // whether there was one.
  ExpressionPtr members_from(const Keywords& k, const ExpressionPtr& further, size_t i, int64_t count,
                             std::map<std::pair<size_t, int64_t>, int>& rules) {
    const bool counted = k.least_members > 0 || k.most_members;
    if (!counted) count = std::min<int64_t>(count, 1);
    if (i == k.properties.size()) return further_members(k, further, count);
    const auto [found, fresh] = rules.try_emplace({i, count}, 0);
    if (!fresh) return call_rule(found->second);
    const int rule = found->second = rules_.add("members");
    const Property& p = k.properties[i];
    std::vector<ExpressionPtr> ways;
    if (!k.most_members || count < *k.most_members)
      ways.push_back(in_sequence({count > 0 ? comma() : text_of(""), member(p.name, p.schemas),
                                  members_from(k, further, i + 1, count + 1, rules)}));
    if (!p.required) ways.push_back(members_from(k, further, i + 1, count, rules));
    rules_.rules[size_t(rule)].body = any_of(std::move(ways));
    return call_rule(rule);
  }

  ExpressionPtr further_members(const Keywords& k, const ExpressionPtr& further, int64_t count) {
    const int64_t least = std::max<int64_t>(0, k.least_members - count);
    const int64_t most = k.most_members ? *k.most_members - count : -1;
    if (!further || most == 0) return least > 0 ? any_of({}) : text_of("");
    // Further members may repeat a name, which makes one of two: only the first is sure to count.
    if (least > 1)
      throw k.place.error("asks with minProperties for ", least,
                          " members that have no name; name them as required");
    const ExpressionPtr next = in_sequence({comma(), further});
    if (count > 0) return repeated(next, least, most);
    const ExpressionPtr some = in_sequence({further, repeated(next, 0, most < 0 ? -1 : most - 1)});
    return least > 0 ? some : optional(some);
  }

  // A member that is not named in the schema; null when there may be none.
  ExpressionPtr further_member(const Keywords& k) {
    if (k.further_closed) return {};
    std::vector<std::string> names = k.refused;
    for (const Property& p : k.properties) names.push_back(p.name);
    ExpressionPtr key = json_string_except(names);
    if (k.further_names) {
      if (!names.empty()) return {};
      key = value(*k.further_names);
    }
    return in_sequence({key, text_of(":"), space_, value(k.further)});
  }

  JsonView document_;
  RuleSet rules_;
  ExpressionPtr space_;
  std::map<std::string, int> known_;
};

}  // namespace

RuleSet json_schema_rules(JsonView schema) { return Compiler(schema).compile(); }

}  // namespace rlx::llm
