#include "rlx/text/template/pretty_print.h"

#include <algorithm>
#include <vector>

#include "rlx/base/text.h"
#include "rlx/text/unicode.h"

namespace rlx::text::jinja {

namespace {

constexpr size_t kWidth = 80;

class Printer {
 public:
  Printer(Place place, Budget& budget) : place_(place), budget_(budget) {}

  // `indent` columns stand before the value, `allowance` characters after it.
  void print(const Value& v, size_t indent, size_t allowance) {
    const std::string flat = one_line(v);
    if (indent + count_characters(flat) + allowance <= kWidth || !(v.is_list() || v.is_dict())) {
      append(flat);
    } else if (v.is_dict()) {
      print_dict(sorted_items(v.as_dict()), indent, allowance);
    } else {
      print_list(v, indent, allowance);
    }
  }
  std::string take() { return std::move(out_); }

 private:
  using Items = std::vector<std::pair<Value, Value>>;

  void append(std::string_view text) {
    out_.append(text);
    budget_.text(place_, out_.size());
  }

  Items sorted_items(const Dict& dict) const {
    Items items(dict.begin(), dict.end());
    const auto rank = [](const Value& key) { return key.is_string() ? 1 : 0; };
    std::stable_sort(items.begin(), items.end(), [&](const auto& a, const auto& b) {
      if (rank(a.first) != rank(b.first)) return rank(a.first) < rank(b.first);
      return order(a.first, b.first, place_, budget_) < 0;
    });
    return items;
  }

  std::string one_line(const Value& v) {
    budget_.step(place_);
    std::string out;
    if (v.is_dict()) {
      for (const auto& [key, value] : sorted_items(v.as_dict()))
        out += cat(out.empty() ? "" : ", ", one_line(key), ": ", one_line(value));
      return "{" + out + "}";
    }
    if (!v.is_list()) return to_repr(v, place_, budget_);
    for (const Value& x : v.as_list()) {
      if (!out.empty()) out.append(", ");
      out.append(one_line(x));
      budget_.text(place_, out.size());
    }
    if (v.is_tuple()) return "(" + out + (v.as_list().size() == 1 ? ",)" : ")");
    return "[" + out + "]";
  }

  void new_line(size_t indent) {
    append(",\n");
    append(std::string(indent, ' '));
  }

  void print_dict(const Items& items, size_t indent, size_t allowance) {
    append("{");
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) new_line(indent + 1);
      const std::string key = one_line(items[i].first) + ": ";
      append(key);
      print(items[i].second, indent + 1 + count_characters(key), i + 1 < items.size() ? 1 : allowance + 1);
    }
    append("}");
  }

  void print_list(const Value& v, size_t indent, size_t allowance) {
    const List& list = v.as_list();
    append(v.is_tuple() ? "(" : "[");
    for (size_t i = 0; i < list.size(); ++i) {
      if (i > 0) new_line(indent + 1);
      print(list[i], indent + 1, i + 1 < list.size() ? 1 : allowance + 1);
    }
    append(v.is_tuple() ? (list.size() == 1 ? ",)" : ")") : "]");
  }

  Place place_;
  Budget& budget_;
  std::string out_;
};

}  // namespace

std::string pretty_printed(const Value& v, Place place, Budget& budget) {
  Printer printer(place, budget);
  printer.print(v, 0, 0);
  return printer.take();
}

}  // namespace rlx::text::jinja
