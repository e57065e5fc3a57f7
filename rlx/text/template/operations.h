// What template values do, as Python defines it: truth, equality, order, text forms, arithmetic.
#pragma once

#include <string>
#include <string_view>

#include "rlx/text/template/ast.h"
#include "rlx/text/value.h"

namespace rlx::text::jinja {

/// Bounds the work of one rendering; every operation that can grow a value spends here.
class Budget {
 public:
  static constexpr uint64_t kSteps = 10'000'000;
  static constexpr size_t kMaxText = size_t(32) << 20;  // bytes of one string
  static constexpr size_t kMaxItems = 1'000'000;        // of one list

  void step(Place place, uint64_t cost = 1);
  /// Before making a string or a list of this size.
  void text(Place place, size_t bytes);
  void items(Place place, size_t count);

 private:
  uint64_t spent_ = 0;
};

bool truth(const Value& v);
bool equal(const Value& a, const Value& b, Place place, Budget& budget);
/// Negative, zero, positive; throws for values that have no order.
int order(const Value& a, const Value& b, Place place, Budget& budget);
bool contains(const Value& container, const Value& item, Place place, Budget& budget);
/// Spends one step for each value inside `v`; before handing it to code that does not look at the budget.
void spend(const Value& v, Place place, Budget& budget);

/// str() and repr().
std::string to_text(const Value& v, Place place, Budget& budget);
std::string to_repr(const Value& v, Place place, Budget& budget);

Value arithmetic(std::string_view op, const Value& a, const Value& b, Place place, Budget& budget);
Value negated(const Value& v, Place place);

/// The elements a loop sees: of a list, the characters of a string, the keys of a dict; none when undefined.
List elements(const Value& v, Place place, Budget& budget);
int64_t length(const Value& v, Place place);

/// obj[key]; undefined when there is no such item.
Value item(const Value& object, const Value& key, Place place);
/// obj[start:stop:step]; absent ones are none.
Value slice(const Value& object, const Value& start, const Value& stop, const Value& step, Place place,
            Budget& budget);

}  // namespace rlx::text::jinja
