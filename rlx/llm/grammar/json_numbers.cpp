#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "rlx/base/error.h"
#include "rlx/llm/grammar/json_text.h"

namespace rlx::llm {

namespace {

constexpr int kMostDigits = 16;
constexpr double kLargest = 1e15;

ExpressionPtr digits(int from, int to) { return one_of({{char32_t('0' + from), char32_t('0' + to)}}); }
const ExpressionPtr& nothing() {
  static const ExpressionPtr none = any_of({});
  return none;
}

// A bound that is not negative, as its digits: value = whole . fraction.
struct Decimal {
  std::string whole, fraction;
  bool open = false;  // the bound itself is left out
};

// The shortest decimal digits that read back as this double, without an exponent. At most 1e15, so %.*f is exact enough: the
// digits are those of the shortest form.
Decimal decimal_of(double value, bool open) {
  char text[64];
  for (int places = 0; places <= 24; ++places) {
    std::snprintf(text, sizeof text, "%.*f", places, value);
    if (std::strtod(text, nullptr) == value) break;
  }
  const std::string written = text;
  const size_t point = written.find('.');
  Decimal d{written.substr(0, point), point == written.npos ? "" : written.substr(point + 1), open};
  while (!d.fraction.empty() && d.fraction.back() == '0') d.fraction.pop_back();
  return d;
}

// Decimal numbers without sign between two bounds, digit by digit. `low` and `high` tell whether all digits so far are those of
// the bound; the places of a bound behind its last digit are zeros.
class Between {
 public:
  Between(std::optional<Decimal> least, std::optional<Decimal> most, int most_fraction)
      : least_(std::move(least)), most_(std::move(most)), most_fraction_(most_fraction) {}

  ExpressionPtr build() {
    std::vector<ExpressionPtr> ways;
    const size_t first = least_ ? least_->whole.size() : 1,
                 last = most_ ? most_->whole.size() : size_t(kMostDigits);
    for (size_t width = first; width <= last; ++width) {
      width_ = width;
      known_.clear();
      ways.push_back(at(0, least_ && width == first, most_ && width == last));
    }
    return any_of(std::move(ways));
  }

 private:
  int bound_digit(const Decimal& d, size_t place) const {
    if (place < width_) return d.whole[place] - '0';
    return place - width_ < d.fraction.size() ? d.fraction[place - width_] - '0' : 0;
  }
  // Whether the bound has nothing but zeros from this place on.
  bool rest_is_zero(const Decimal& d, size_t place) const {
    for (; place < width_ + d.fraction.size(); ++place)
      if (bound_digit(d, place) != 0) return false;
    return true;
  }
  // Whether the number may end before this place.
  bool may_stop(size_t place, bool low, bool high) const {
    if (low && (!rest_is_zero(*least_, place) || least_->open)) return false;
    return !(high && rest_is_zero(*most_, place) && most_->open);
  }

  ExpressionPtr at(size_t place, bool low, bool high) {
    ExpressionPtr& known = known_[{place, low, high}];
    if (known) return known;
    ExpressionPtr made;
    if (place < width_)
      made = digit(place, low, high);
    else if (place == width_)
      made = any_of({stop(place, low, high), fraction(place, low, high)});
    else
      made = any_of({stop(place, low, high), digit(place, low, high)});
    return known_[{place, low, high}] = made;
  }
  ExpressionPtr stop(size_t place, bool low, bool high) const {
    return may_stop(place, low, high) ? text_of("") : nothing();
  }
  ExpressionPtr fraction(size_t place, bool low, bool high) {
    return most_fraction_ == 0 ? nothing() : in_sequence({text_of("."), digit(place, low, high)});
  }
  ExpressionPtr digit(size_t place, bool low, bool high) {
    if (place >= width_ + size_t(most_fraction_)) return nothing();
    int from = low ? bound_digit(*least_, place) : 0, to = high ? bound_digit(*most_, place) : 9;
    if (place == 0 && width_ > 1) from = std::max(from, 1);  // no leading zero
    std::vector<ExpressionPtr> ways;
    const auto add = [&](int a, int b, bool still_low, bool still_high) {
      if (a <= b) ways.push_back(in_sequence({digits(a, b), at(place + 1, still_low, still_high)}));
    };
    if (from > to) return nothing();
    const bool from_low = low && from == bound_digit(*least_, place), to_high = high;
    if (from == to) {
      add(from, to, from_low, to_high);
    } else {
      if (from_low) add(from, from, true, false), ++from;
      if (to_high) add(to, to, false, true), --to;
      add(from, to, false, false);
    }
    return any_of(std::move(ways));
  }

  std::optional<Decimal> least_, most_;
  int most_fraction_;
  size_t width_ = 0;
  std::map<std::tuple<size_t, bool, bool>, ExpressionPtr> known_;
};

ExpressionPtr ranged(const NumberRange& range, int most_fraction) {
  for (const auto& bound : {range.least, range.most})
    if (bound && !(std::fabs(*bound) <= kLargest))
      throw invalid("json schema: a bound of ", *bound, " is beyond 1e15, to which numbers are generated");
  std::vector<ExpressionPtr> ways;
  // Numbers from 0 on.
  if (!range.most || *range.most > 0 || (*range.most == 0 && !range.below)) {
    std::optional<Decimal> least, most;
    if (range.least && *range.least >= 0) least = decimal_of(*range.least, range.above);
    if (range.most) most = decimal_of(*range.most, range.below);
    ways.push_back(Between(least, most, most_fraction).build());
  }
  // Below 0: the range mirrored; -0 is left out.
  if (!range.least || *range.least < 0) {
    Decimal least{"0", "", true};
    if (range.most && *range.most < 0) least = decimal_of(-*range.most, range.below);
    std::optional<Decimal> most;
    if (range.least) most = decimal_of(-*range.least, range.above);
    ways.push_back(in_sequence({text_of("-"), Between(least, most, most_fraction).build()}));
  }
  return any_of(std::move(ways));
}

bool unbounded(const NumberRange& r) { return !r.least && !r.most; }

}  // namespace

ExpressionPtr json_integer(const NumberRange& range) { return ranged(range, 0); }

ExpressionPtr json_decimal(const NumberRange& range, int most_digits) { return ranged(range, most_digits); }

ExpressionPtr json_number(const NumberRange& range) {
  if (!unbounded(range)) return ranged(range, kMostDigits);
  const ExpressionPtr digit = digits(0, 9);
  const ExpressionPtr whole =
      any_of({text_of("0"), in_sequence({digits(1, 9), repeated(digit, 0, kMostDigits - 1)})});
  return in_sequence(
      {optional(text_of("-")), whole, optional(in_sequence({text_of("."), repeated(digit, 1, kMostDigits)})),
       optional(in_sequence({one_of({{'e', 'e'}, {'E', 'E'}}), optional(one_of({{'+', '+'}, {'-', '-'}})),
                             repeated(digit, 1, 2)}))});
}

}  // namespace rlx::llm
