#include "rlx/base/dim_solve.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "rlx/base/dim_polynomial.h"
#include "rlx/base/error.h"

namespace rlx {
namespace {

using Kind = DimSolution::Kind;

Polynomial difference(Dim a, Dim b) {
  Polynomial p = sum(polynomial_of(a), polynomial_of(b), -1);
  erase_zeros(p);
  return p;
}

int64_t constant_of(const Polynomial& p) {
  const auto it = p.find({});
  return it == p.end() ? 0 : it->second;
}

// Divides p by what its terms but the constant have in common; that must divide the constant. False when it
// does not, or when all terms pull to one side of zero: then p == 0 has no solution.
bool reduce_content(Polynomial& p) {
  uint64_t common = 0;
  bool positive = true, negative = true;  // all terms
  for (const auto& [monomial, coefficient] : p) {
    if (!monomial.empty())
      common =
          std::gcd(common, coefficient < 0 ? uint64_t(0) - uint64_t(coefficient) : uint64_t(coefficient));
    positive = positive && coefficient > 0;
    negative = negative && coefficient < 0;
  }
  const int64_t constant = constant_of(p);
  if (constant != 0 && (positive || negative)) return false;
  if (common <= 1 || common > uint64_t(INT64_MAX)) return true;
  if (constant % int64_t(common) != 0) return false;
  for (auto& [monomial, coefficient] : p) coefficient /= int64_t(common);
  return true;
}

// always or never where that is plain; open says nothing. p is divided by what its terms share.
Kind judge(Polynomial& p) {
  if (p.empty()) return Kind::always;
  if (p.size() == 1 && p.begin()->first.empty()) return Kind::never;
  return reduce_content(p) ? Kind::open : Kind::never;
}

bool mentions(const Polynomial& p, const std::string& symbol) {
  std::vector<std::string> names;
  for (const auto& [monomial, coefficient] : p) {
    for (const auto& [index, power] : monomial) {
      const Atom& a = atom(index);
      if (a.kind == AtomKind::symbol) {
        if (a.symbol == symbol) return true;
      } else {
        collect_symbols(a.a, names);
        collect_symbols(a.b, names);
      }
    }
  }
  return std::binary_search(names.begin(), names.end(), symbol);
}

// c * s^k + constant == 0 for one symbol s and k > 1, c = +-1.
std::optional<DimSolution> solve_power(const Polynomial& p) {
  if (p.size() > 2) return std::nullopt;
  const auto& [monomial, coefficient] = *p.rbegin();
  if (monomial.size() != 1 || monomial[0].second < 2 || (coefficient != 1 && coefficient != -1))
    return std::nullopt;
  if (p.size() == 2 && !p.begin()->first.empty()) return std::nullopt;
  const Atom& a = atom(monomial[0].first);
  if (a.kind != AtomKind::symbol) return std::nullopt;
  const int64_t wanted = coefficient > 0 ? -constant_of(p) : constant_of(p);
  int64_t low = 0, high = int64_t(1) << 31;  // k > 1: a larger root does not fit
  while (low < high) {                       // the least root whose power reaches `wanted`
    const int64_t middle = low + (high - low) / 2;
    __int128 power = 1;
    for (uint32_t i = 0; i < monomial[0].second && power <= wanted; ++i) power *= middle;
    power < wanted ? low = middle + 1 : high = middle;
  }
  __int128 power = 1;
  for (uint32_t i = 0; i < monomial[0].second && power <= wanted; ++i) power *= low;
  if (power != wanted) return DimSolution{Kind::never, {}, {}};
  return DimSolution{Kind::unique, a.symbol, low};
}

}  // namespace

std::optional<bool> decide_equal(Dim a, Dim b) {
  if (a == b) return true;
  if (a.is_static() && b.is_static()) return false;
  Polynomial p = difference(a, b);
  const Kind kind = judge(p);
  if (kind == Kind::open) return std::nullopt;
  return kind == Kind::always;
}

DimSolution solve_equal(Dim a, Dim b, const std::function<size_t(const std::string&)>& age) {
  if (a == b) return {Kind::always, {}, {}};
  Polynomial p = difference(a, b);
  if (const Kind kind = judge(p); kind != Kind::open) return {kind, {}, {}};
  if (const auto root = solve_power(p)) return *root;

  DimSolution best{Kind::open, {}, {}};
  std::tuple<bool, size_t, std::string> best_rank;
  for (const auto& [monomial, coefficient] : p) {
    if (monomial.size() != 1 || monomial[0].second != 1 || (coefficient != 1 && coefficient != -1)) continue;
    const Atom& candidate = atom(monomial[0].first);
    if (candidate.kind != AtomKind::symbol) continue;
    Polynomial rest = p;
    rest.erase(monomial);
    if (mentions(rest, candidate.symbol)) continue;
    const Polynomial value = sum({}, rest, -coefficient);
    const bool sums_only =
        std::all_of(value.begin(), value.end(), [](const auto& t) { return t.second > 0; });
    const std::tuple<bool, size_t, std::string> rank{sums_only, age(candidate.symbol), candidate.symbol};
    if (best.kind == Kind::unique && rank <= best_rank) continue;
    best = {Kind::unique, candidate.symbol, intern(value)};
    best_rank = rank;
  }
  return best;
}

}  // namespace rlx
