// Equations between extents: putting extents in the place of symbols, and solving for a symbol.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "rlx/base/dim.h"

namespace rlx {

/// Extents that take the place of symbols.
using DimSubstitution = std::map<std::string, Dim, std::less<>>;

/// The expression with these symbols replaced, all at once. A result that is a negative number is an error.
Dim substitute(Dim, const DimSubstitution&);
Dims substitute(const Dims&, const DimSubstitution&);

/// What `a == b` says. Symbols and all that is made of them are whole numbers >= 0.
struct DimSolution {
  enum class Kind {
    always,  // true for every binding
    never,   // false for every binding
    unique,  // true exactly where `symbol` is `value`, which does not mention it
    open     // none of these, as far as this solver sees: n*m == 6, floordiv(n, 2) == 3
  };
  Kind kind;
  std::string symbol;
  Dim value;
};

/// Solves for a symbol that occurs once, with a factor that divides the rest (2*n == 2*m, n+1 == m, p == n*m),
/// or alone in a power (n*n == 9). Among several, one whose value needs no subtraction, then the youngest:
/// `age` grows with youth.
DimSolution solve_equal(Dim a, Dim b, const std::function<size_t(const std::string& symbol)>& age);

}  // namespace rlx
