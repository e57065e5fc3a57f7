#include <algorithm>
#include <charconv>

#include "rlx/base/error.h"
#include "rlx/llm/grammar/json_keywords.h"

namespace rlx::llm {

namespace {

constexpr size_t kMaxAlternatives = 512;
constexpr int kMaxSteps = 2000;

// A reference is a URI, in which %20 may stand for a space.
std::string without_percents(std::string_view target) {
  std::string out;
  for (size_t i = 0; i < target.size(); ++i) {
    unsigned byte = 0;
    const std::string_view code = target.substr(std::min(i + 1, target.size()), 2);
    const bool spelled = target[i] == '%' && code.size() == 2 &&
                         std::from_chars(code.data(), code.data() + 2, byte, 16).ptr == code.data() + 2;
    out += spelled ? char(byte) : target[i];
    if (spelled) i += 2;
  }
  return out;
}

// "#/a/b~1c" as a place of the document; "#name" by $anchor.
JsonView resolve(JsonView document, JsonView reference) {
  const std::string target = without_percents(reference.string());
  if (target == "#") return document;
  if (!target.starts_with("#"))
    throw reference.error("'", target, "' is not inside of this document; '#/...' expected");
  if (!target.starts_with("#/")) throw reference.error("'", target, "' is an anchor; '#/...' expected");
  JsonView at = document;
  for (size_t i = 1; i < target.size();) {
    const size_t end = std::min(target.find('/', i + 1), target.size());
    std::string part;
    for (size_t j = i + 1; j < end; ++j) {
      if (target[j] == '~' && j + 1 < end)
        part += target[++j] == '1' ? '/' : '~';
      else
        part += target[j];
    }
    std::optional<JsonView> next;
    if (at.is_object()) {
      next = at.find(part);
    } else if (at.is_array() && !part.empty() && part.find_first_not_of("0123456789") == part.npos &&
               part.size() < 9) {
      const size_t index = size_t(std::stoul(part));
      if (index < at.size()) next = at.at(index);
    }
    if (!next) throw reference.error("'", target, "' is nothing in this document");
    at = *next;
    i = end;
  }
  return at;
}

class Spread {
 public:
  /// What choices hold in turn is checked where it is spread itself: `check` false spreads it for a look from outside.
  explicit Spread(JsonView document, bool check = true) : document_(document), check_(check) {}

  void walk(Schemas todo, Schemas done) {
    if (++steps_ > kMaxSteps)
      throw document_.error("refers to itself without an end, or has too many choices");
    while (!todo.empty()) {
      const JsonView s = todo.back();
      todo.pop_back();
      if (s.kind() == JsonKind::boolean) {
        if (!s.boolean()) return;
        continue;
      }
      if (!s.is_object()) throw s.error("is no schema; an object or a truth value expected");
      if (++steps_ > kMaxSteps)
        throw document_.error("refers to itself without an end, or has too many choices");
      done.push_back(s);
      if (const auto all = s.find("allOf")) {  // the last first: the list is read from its end
        Schemas parts;
        for (const JsonView& part : all->items()) parts.push_back(part);
        todo.insert(todo.end(), parts.rbegin(), parts.rend());
      }
      if (const auto ref = s.find("$ref")) todo.push_back(resolve(document_, *ref));
      const auto any = s.find("anyOf"), one = s.find("oneOf");
      if (!any && !one) continue;
      if (one && check_) require_disjoint(*one, done);
      if (any && one) {
        choose(*any, [&](const JsonView& a) {
          choose(*one, [&](const JsonView& b) { walk(with(with(todo, a), b), done); });
        });
      } else {
        choose(any ? *any : *one, [&](const JsonView& part) { walk(with(todo, part), done); });
      }
      return;
    }
    if (found.size() >= kMaxAlternatives)
      throw document_.error("has more than ", kMaxAlternatives, " choices at once");
    found.push_back(std::move(done));
  }

  std::vector<Schemas> found;

 private:
  static Schemas with(Schemas list, JsonView one) {
    list.push_back(one);
    return list;
  }
  template <class Each>
  static void choose(const JsonView& list, Each each) {
    if (list.size() == 0) throw list.error("must not be empty");
    for (const JsonView& part : list.items()) each(part);
  }

  // A value of oneOf must fit one of the schemas and no other. A grammar cannot subtract, so no text of one may fit another.
  void require_disjoint(JsonView one, const Schemas& done) {
    struct Part {
      Keywords texts, fitting;
    };
    std::vector<std::vector<Part>> parts;
    for (const JsonView& part : one.items()) {
      Spread alone(document_, false);
      Schemas others;
      for (const JsonView& s : done)
        if (!s.find("oneOf") && !s.find("anyOf") && !s.find("$ref") && !s.find("allOf")) others.push_back(s);
      alone.steps_ = steps_ + 1;
      alone.walk({part}, {});
      std::vector<Part>& list = parts.emplace_back();
      for (const Schemas& all : alone.found) {
        Schemas joined = others;
        joined.insert(joined.end(), all.begin(), all.end());
        list.push_back({collect_keywords(joined), collect_keywords(joined, false)});
      }
    }
    for (size_t i = 0; i < parts.size(); ++i)
      for (size_t j = i + 1; j < parts.size(); ++j)
        for (const Part& a : parts[i])
          for (const Part& b : parts[j])
            if (may_overlap(a.texts, b.fitting, 0) || may_overlap(a.fitting, b.texts, 0))
              throw one.error(
                  "has choices ", i, " and ", j,
                  " that one value may fit both; write anyOf, or tell them apart by a type or a const");
  }

  static unsigned kinds(unsigned types) { return types & kNumber ? types | kInteger : types; }

  bool may_overlap(const Keywords& a, const Keywords& b, int depth) {
    if (!(kinds(a.types) & kinds(b.types))) return false;
    if (a.values && b.values)
      return std::any_of(a.values->begin(), a.values->end(), [&](const JsonView& v) {
        return std::any_of(b.values->begin(), b.values->end(),
                           [&](const JsonView& w) { return v.text() == w.text(); });
      });
    if (a.values || b.values) {
      const Keywords &list = a.values ? a : b, &other = a.values ? b : a;
      return std::any_of(list.values->begin(), list.values->end(),
                         [&](const JsonView& v) { return allows(other, v); });
    }
    const unsigned common = kinds(a.types) & kinds(b.types);
    if (common & ~unsigned(kObject | kInteger | kNumber)) return true;
    if (common & (kInteger | kNumber)) {
      const NumberRange &x = a.range, &y = b.range;
      const bool apart =
          (x.most && y.least && (*x.most < *y.least || (*x.most == *y.least && (x.below || y.above)))) ||
          (y.most && x.least && (*y.most < *x.least || (*y.most == *x.least && (y.below || x.above))));
      if (!apart) return true;
    }
    return (common & kObject) && depth < 4 && objects_may_overlap(a, b, depth);
  }

  bool objects_may_overlap(const Keywords& a, const Keywords& b, int depth) {
    const auto lacks = [](const Keywords& x, const Keywords& y) {  // a member that x needs and y refuses
      return y.further_closed &&
             std::any_of(x.properties.begin(), x.properties.end(), [&](const Property& p) {
               return p.required && std::none_of(y.properties.begin(), y.properties.end(),
                                                 [&](const Property& q) { return q.name == p.name; });
             });
    };
    if (lacks(a, b) || lacks(b, a)) return false;
    for (const Property& p : a.properties)
      for (const Property& q : b.properties) {
        if (p.name != q.name || !(p.required || q.required)) continue;
        bool overlap = false;
        Spread first(document_, false), second(document_, false);
        first.walk(p.schemas, {});
        second.walk(q.schemas, {});
        for (const Schemas& x : first.found)
          for (const Schemas& y : second.found)
            overlap |= may_overlap(collect_keywords(x), collect_keywords(y), depth + 1);
        if (!overlap && p.required && q.required) return false;
      }
    return true;
  }

  JsonView document_;
  bool check_;
  int steps_ = 0;
};

}  // namespace

std::vector<Schemas> alternatives(JsonView document, const Schemas& schemas) {
  Spread spread(document);
  spread.walk({schemas.rbegin(), schemas.rend()}, {});
  return std::move(spread.found);
}

}  // namespace rlx::llm
