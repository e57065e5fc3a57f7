#include "rlx/ir/attr.h"

#include <cmath>
#include <limits>

#include "rlx/ir/graph.h"

namespace rlx::ir {
namespace {

bool same_real(double a, double b) { return a == b ? std::signbit(a) == std::signbit(b) : a != a && b != b; }

}  // namespace

int narrow_integer(int64_t value) {
  constexpr int64_t kLow = std::numeric_limits<int>::min(), kHigh = std::numeric_limits<int>::max();
  if (value < kLow || value > kHigh) throw invalid(value, " is out of range; ", kLow, " to ", kHigh);
  return int(value);
}

bool same_value(const AttrValue& a, const AttrValue& b) {
  if (a.index() != b.index()) return false;
  if (const auto* x = std::get_if<double>(&a)) return same_real(*x, std::get<double>(b));
  if (const auto* x = std::get_if<std::vector<double>>(&a)) {
    const auto& y = std::get<std::vector<double>>(b);
    return std::equal(x->begin(), x->end(), y.begin(), y.end(), same_real);
  }
  if (const auto* x = std::get_if<GraphRef>(&a)) {
    const auto& y = std::get<GraphRef>(b);
    return *x == y || (*x && y && **x == *y);
  }
  return a == b;
}

}  // namespace rlx::ir
