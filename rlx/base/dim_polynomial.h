// The inside of symbolic extents: polynomials over atoms, for the files that compute with them.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "rlx/base/dim.h"

namespace rlx {

/// A product of atoms with powers, atoms ascending by index; empty is the constant 1.
using Monomial = std::vector<std::pair<uint32_t, uint32_t>>;
/// Monomial -> coefficient, none zero in canonical form.
using Polynomial = std::map<Monomial, int64_t>;

enum class AtomKind : uint8_t { symbol, floordiv, mod, max, min };

struct Atom {
  AtomKind kind;
  std::string symbol;
  Dim a, b;  // of the other kinds
  std::string text;
};

/// Valid for the whole run of the program.
const Atom& atom(uint32_t index);

Polynomial polynomial_of(Dim);
/// a + factor * b; terms may be zero.
Polynomial sum(const Polynomial& a, const Polynomial& b, int64_t factor);
void erase_zeros(Polynomial&);
/// The extent of a polynomial; a negative number is an error.
Dim intern(Polynomial);

}  // namespace rlx
