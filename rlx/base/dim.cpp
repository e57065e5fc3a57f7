#include "rlx/base/dim.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "rlx/base/checked.h"
#include "rlx/base/dim_polynomial.h"
#include "rlx/base/dim_solve.h"
#include "rlx/base/dim_sum.h"
#include "rlx/base/error.h"

namespace rlx {
namespace {

// Hostile text could multiply sums until the machine gives up; real shapes have a handful of terms.
constexpr size_t kMaxTerms = 128, kMaxText = 4096, kMaxName = 256;
constexpr uint32_t kMaxDegree = 16;
// The table below never shrinks; this is where a process that reads foreign graphs all day stops.
constexpr size_t kMaxTableBytes = size_t(64) << 20;

constexpr std::string_view kAtomNames[] = {"", "floordiv", "mod", "max", "min"};

struct Expression {
  Polynomial polynomial;
  std::string text;
};

// Deques keep references valid while the tables grow.
struct Table {
  std::shared_mutex mutex;
  std::deque<Atom> atoms;
  std::unordered_map<std::string, uint32_t> atom_of_text;
  std::deque<Expression> expressions;
  std::unordered_map<std::string, int64_t> rep_of_text;
  size_t bytes = 0;  // of both, about

  // With the mutex held, before something of that size is added.
  void grow(size_t more) {
    if (bytes + more > kMaxTableBytes)
      throw invalid("dim: ", expressions.size(), " different symbolic sizes fill the ", kMaxTableBytes >> 20,
                    " MiB a process keeps for them; use fewer symbols");
    bytes += more;
  }
};

Table& table() {
  static Table* t = new Table;  // never destroyed: Dims may outlive static destruction
  return *t;
}

const Expression& expression(Dim d) {
  std::shared_lock lock(table().mutex);
  return table().expressions[size_t(-2 - d.rep())];
}

Error too_large() {
  return invalid("dim: the expression is too large; at most ", kMaxTerms, " terms and ", kMaxText,
                 " letters");
}

}  // namespace

const Atom& atom(uint32_t index) {
  std::shared_lock lock(table().mutex);
  return table().atoms[index];
}

Polynomial polynomial_of(Dim d) {
  if (d.is_inferred())
    throw invalid("dim: -1 has no value here; it is only allowed where a size is inferred");
  if (d.is_symbolic()) return expression(d).polynomial;
  Polynomial p;
  if (d.value() != 0) p[{}] = d.value();
  return p;
}

void erase_zeros(Polynomial& p) {
  std::erase_if(p, [](const auto& term) { return term.second == 0; });
}

namespace {

// Factors sorted by their text: indices of atoms depend on what the process met before.
std::string monomial_text(const Monomial& m) {
  std::vector<std::string> factors;
  for (const auto& [index, power] : m) factors.insert(factors.end(), power, atom(index).text);
  std::sort(factors.begin(), factors.end());
  return join(factors, "*");
}

// Terms sorted by their text with the constant last: the same for every order of construction.
std::string polynomial_text(const Polynomial& p) {
  std::vector<std::pair<std::string, int64_t>> terms;
  int64_t constant = 0;
  for (const auto& [monomial, coefficient] : p) {
    if (monomial.empty()) {
      constant = coefficient;
    } else {
      terms.emplace_back(monomial_text(monomial), coefficient);
    }
  }
  std::sort(terms.begin(), terms.end());
  std::string out;
  for (const auto& [text, coefficient] : terms) {
    if (coefficient < 0) {
      out.push_back('-');
    } else if (!out.empty()) {
      out.push_back('+');
    }
    const uint64_t magnitude = coefficient < 0 ? 0 - uint64_t(coefficient) : uint64_t(coefficient);
    if (magnitude != 1) out += cat(magnitude, "*");
    out += text;
  }
  if (constant > 0 && !out.empty()) out.push_back('+');
  if (constant != 0 || out.empty()) append_text(out, constant);
  return out;
}

}  // namespace

Dim intern(Polynomial p) {
  erase_zeros(p);
  if (p.empty()) return Dim(0);
  if (p.size() == 1 && p.begin()->first.empty()) {
    const int64_t value = p.begin()->second;
    if (value < 0) throw invalid("dim: a size became ", value, "; sizes are not negative");
    return Dim(value);
  }
  if (p.size() > kMaxTerms) throw too_large();
  std::string text = polynomial_text(p);
  if (text.size() > kMaxText) throw too_large();
  Table& t = table();
  std::unique_lock lock(t.mutex);
  if (const auto it = t.rep_of_text.find(text); it != t.rep_of_text.end()) return Dim::from_rep(it->second);
  size_t bytes = 2 * (sizeof(std::string) + text.size()) + 64;
  for (const auto& [monomial, coefficient] : p) bytes += 96 + 8 * monomial.size();
  t.grow(bytes);
  const int64_t rep = -2 - int64_t(t.expressions.size());
  t.expressions.push_back({std::move(p), text});
  t.rep_of_text.emplace(std::move(text), rep);
  return Dim::from_rep(rep);
}

Polynomial sum(const Polynomial& a, const Polynomial& b, int64_t factor) {
  Polynomial out = a;
  for (const auto& [monomial, coefficient] : b) {
    int64_t& slot = out[monomial];
    slot = checked_add(slot, checked_mul(coefficient, factor));
  }
  return out;
}

namespace {

Dim intern_atom(Atom a) {
  uint32_t index;
  {
    Table& t = table();
    std::unique_lock lock(t.mutex);
    if (const auto it = t.atom_of_text.find(a.text); it != t.atom_of_text.end()) {
      index = it->second;
    } else {
      t.grow(sizeof(Atom) + a.symbol.size() + 2 * a.text.size() + 64);
      index = uint32_t(t.atoms.size());
      t.atom_of_text.emplace(a.text, index);
      t.atoms.push_back(std::move(a));
    }
  }
  return intern({{Monomial{{index, 1}}, 1}});
}

Dim binary_atom(AtomKind kind, Dim a, Dim b) {
  std::string text = cat(kAtomNames[size_t(kind)], "(", a, ", ", b, ")");
  if (text.size() > kMaxText) throw too_large();
  return intern_atom({kind, "", a, b, std::move(text)});
}

Monomial multiply(const Monomial& a, const Monomial& b) {
  std::map<uint32_t, uint32_t> powers(a.begin(), a.end());
  uint32_t degree = 0;
  for (const auto& [index, power] : b) powers[index] += power;
  for (const auto& [index, power] : powers) degree += power;
  if (degree > kMaxDegree) throw invalid("dim: a product of more than ", kMaxDegree, " symbols");
  return {powers.begin(), powers.end()};
}

// a / b if every atom of b occurs in a often enough.
std::optional<Monomial> divide(const Monomial& a, const Monomial& b) {
  std::map<uint32_t, uint32_t> powers(a.begin(), a.end());
  for (const auto& [index, power] : b) {
    const auto it = powers.find(index);
    if (it == powers.end() || it->second < power) return std::nullopt;
    if ((it->second -= power) == 0) powers.erase(it);
  }
  return Monomial(powers.begin(), powers.end());
}

}  // namespace

Dim::Dim(int64_t value) : rep_(value) {
  if (value < -1) throw invalid("dim: ", value, " is not a size; sizes are not negative, -1 means inferred");
}

Dim Dim::symbol(std::string_view name) {
  if (!is_identifier(name))
    throw invalid("dim: '", name, "' is not a symbol name; letters, digits and _ only");
  if (name.size() > kMaxName)
    throw invalid("dim: a symbol name of ", name.size(), " letters; at most ", kMaxName);
  return intern_atom({AtomKind::symbol, std::string(name), {}, {}, std::string(name)});
}

std::optional<std::string> Dim::symbol_name() const {
  if (!is_symbolic()) return std::nullopt;
  const Polynomial& p = expression(*this).polynomial;
  if (p.size() != 1 || p.begin()->second != 1) return std::nullopt;
  const Monomial& m = p.begin()->first;
  if (m.size() != 1 || m[0].second != 1 || atom(m[0].first).kind != AtomKind::symbol) return std::nullopt;
  return atom(m[0].first).symbol;
}

int64_t Dim::value() const {
  if (!is_static()) throw invalid("dim: ", *this, " has no value yet; bind its symbols first");
  return rep_;
}

Dim operator+(Dim a, Dim b) { return intern(sum(polynomial_of(a), polynomial_of(b), 1)); }
Dim operator-(Dim a, Dim b) { return intern(sum(polynomial_of(a), polynomial_of(b), -1)); }

Dim sum_of(const std::vector<SignedDim>& terms) {
  Polynomial total;
  for (const SignedDim& term : terms) {
    total = sum(total, polynomial_of(term.dim), term.negative ? -1 : 1);
    if (total.size() > 2 * kMaxTerms) throw too_large();
  }
  return intern(std::move(total));
}

Dim operator*(Dim a, Dim b) {
  if (a.is_static() && b.is_static()) return Dim(checked_mul(a.value(), b.value()));
  const Polynomial pa = polynomial_of(a), pb = polynomial_of(b);
  if (pa.size() * pb.size() > kMaxTerms * 4) throw too_large();
  Polynomial out;
  for (const auto& [ma, ca] : pa) {
    for (const auto& [mb, cb] : pb) {
      int64_t& slot = out[multiply(ma, mb)];
      slot = checked_add(slot, checked_mul(ca, cb));
    }
  }
  return intern(std::move(out));
}

std::optional<Dim> exact_div(Dim a, Dim b) {
  if (b == Dim(0)) return std::nullopt;
  if (a.is_static() && b.is_static()) {
    if (a.value() % b.value() != 0) return std::nullopt;
    return Dim(a.value() / b.value());
  }
  if (a == b) return Dim(1);
  // Long division by the leading term; with one variable order it either comes out even or it does not.
  Polynomial rest = polynomial_of(a), quotient;
  const Polynomial divisor = polynomial_of(b);
  const auto& [lead, lead_coefficient] = *divisor.rbegin();
  for (size_t step = 0; !rest.empty(); ++step) {
    if (step > kMaxTerms) return std::nullopt;
    const auto& [top, coefficient] = *rest.rbegin();
    const auto monomial = divide(top, lead);
    if (!monomial || coefficient % lead_coefficient != 0) return std::nullopt;
    const int64_t factor = coefficient / lead_coefficient;
    quotient[*monomial] = factor;
    Polynomial scaled;
    for (const auto& [m, c] : divisor) scaled[multiply(m, *monomial)] = checked_mul(c, factor);
    rest = sum(rest, scaled, -1);
    erase_zeros(rest);
  }
  return intern(std::move(quotient));
}

Dim floordiv(Dim a, Dim b) {
  if (b == Dim(0)) throw invalid("dim: division of ", a, " by zero");
  if (a.is_static() && b.is_static()) return Dim(a.value() / b.value());
  if (const auto exact = exact_div(a, b)) return *exact;
  return binary_atom(AtomKind::floordiv, a, b);
}

Dim ceildiv(Dim a, Dim b) { return floordiv(a + b - Dim(1), b); }

Dim mod(Dim a, Dim b) {
  if (b == Dim(0)) throw invalid("dim: ", a, " modulo zero");
  if (a.is_static() && b.is_static()) return Dim(a.value() % b.value());
  if (exact_div(a, b)) return Dim(0);
  return binary_atom(AtomKind::mod, a, b);
}

Dim max(Dim a, Dim b) {
  if (a == b) return a;
  if (a.is_static() && b.is_static()) return Dim(std::max(a.value(), b.value()));
  if (cat(b) < cat(a)) std::swap(a, b);  // commutative: one spelling
  return binary_atom(AtomKind::max, a, b);
}

Dim min(Dim a, Dim b) {
  if (a == b) return a;
  if (a.is_static() && b.is_static()) return Dim(std::min(a.value(), b.value()));
  if (cat(b) < cat(a)) std::swap(a, b);
  return binary_atom(AtomKind::min, a, b);
}

Dim product(const Dims& dims) {
  Dim out = 1;
  for (const Dim d : dims) out = out * d;
  return out;
}

DimBinding::DimBinding(std::initializer_list<std::pair<std::string, int64_t>> pairs) {
  for (const auto& [symbol, value] : pairs) set(symbol, value);
}

DimBinding DimBinding::batch_seq(int64_t batch, int64_t seq) {
  return {{"batch", batch}, {"seq", seq}, {"rows", checked_mul(batch, seq)}};
}

DimBinding DimBinding::batch_past_seq(int64_t batch, int64_t past) {
  return {{"batch", batch}, {"past_seq", past}};
}

void DimBinding::set(const std::string& symbol, int64_t value) {
  if (value < 0) throw invalid("bind: ", symbol, " = ", value, "; sizes are not negative");
  values_[symbol] = value;
}

std::optional<int64_t> DimBinding::get(const std::string& symbol) const {
  const auto it = values_.find(symbol);
  if (it == values_.end()) return std::nullopt;
  return it->second;
}

namespace {

// The extent that takes the place of a symbol; nothing leaves the symbol.
using Place = std::function<std::optional<Dim>(const std::string& symbol)>;

Dim replaced(Dim d, const Place& place);

Dim replaced_atom(const Atom& a, const Place& place) {
  switch (a.kind) {
    case AtomKind::symbol:
      if (const auto value = place(a.symbol)) return *value;
      return Dim::symbol(a.symbol);
    case AtomKind::floordiv:
      return floordiv(replaced(a.a, place), replaced(a.b, place));
    case AtomKind::mod:
      return mod(replaced(a.a, place), replaced(a.b, place));
    case AtomKind::max:
      return max(replaced(a.a, place), replaced(a.b, place));
    case AtomKind::min:
      return min(replaced(a.a, place), replaced(a.b, place));
  }
  return {};
}

Dim replaced(Dim d, const Place& place) {
  if (!d.is_symbolic()) return d;
  // Partial sums may be negative while the whole is not, so polynomials are added, not Dims.
  Polynomial total;
  for (const auto& [monomial, coefficient] : polynomial_of(d)) {
    Dim term = 1;
    for (const auto& [index, power] : monomial) {
      const Dim value = replaced_atom(atom(index), place);
      for (uint32_t i = 0; i < power; ++i) term = term * value;
    }
    total = sum(total, polynomial_of(term), coefficient);
  }
  return intern(std::move(total));
}

}  // namespace

Dim bind(Dim d, const DimBinding& binding) {
  try {
    return replaced(d, [&](const std::string& symbol) -> std::optional<Dim> { return binding.get(symbol); });
  } catch (const Error& e) {
    throw invalid("bind: ", d, ": ", e.message());
  }
}

Dim substitute(Dim d, const DimSubstitution& values) {
  return replaced(d, [&](const std::string& symbol) -> std::optional<Dim> {
    const auto it = values.find(symbol);
    if (it == values.end()) return std::nullopt;
    return it->second;
  });
}

Dims bind(const Dims& dims, const DimBinding& binding) {
  Dims out;
  out.reserve(dims.size());
  for (const Dim d : dims) out.push_back(bind(d, binding));
  return out;
}

Dims substitute(const Dims& dims, const DimSubstitution& values) {
  Dims out;
  out.reserve(dims.size());
  for (const Dim d : dims) out.push_back(substitute(d, values));
  return out;
}

void collect_symbols(Dim d, std::vector<std::string>& names) {
  if (!d.is_symbolic()) return;
  for (const auto& [monomial, coefficient] : expression(d).polynomial) {
    for (const auto& [index, power] : monomial) {
      const Atom& a = atom(index);
      if (a.kind != AtomKind::symbol) {
        collect_symbols(a.a, names);
        collect_symbols(a.b, names);
        continue;
      }
      const auto it = std::lower_bound(names.begin(), names.end(), a.symbol);
      if (it == names.end() || *it != a.symbol) names.insert(it, a.symbol);
    }
  }
}

void append_text(std::string& out, Dim d) {
  if (d.is_symbolic()) {
    out += expression(d).text;
  } else {
    append_text(out, d.rep());
  }
}

bool is_identifier(std::string_view s) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (s.empty() || !letter(s[0])) return false;
  return std::all_of(s.begin(), s.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace rlx
