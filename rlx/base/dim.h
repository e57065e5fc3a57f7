// One extent of a tensor: a number, or an expression over named symbols kept in canonical form.
//
// Expressions are polynomials with integer coefficients over atoms; an atom is a symbol or one of
// floordiv(a, b), mod(a, b), max(a, b), min(a, b). Two expressions that simplify to the same polynomial
// are the same Dim, so == is one comparison. Expressions live in a process-wide table that only grows;
// a Dim is eight bytes and cheap to copy.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

class Dim {
 public:
  constexpr Dim() = default;
  /// A number >= 0, or -1 for "to be inferred" where an operator allows it.
  Dim(int64_t value);  // NOLINT: implicit on purpose, shapes are written {2, Dim::seq(), 8}

  /// A named unknown extent; the name is an identifier.
  static Dim symbol(std::string_view name);
  // The symbols that most models have, and -1 for "to be inferred".
  static Dim batch() { return symbol("batch"); }
  static Dim seq() { return symbol("seq"); }
  static Dim rows() { return symbol("rows"); }
  static Dim past_seq() { return symbol("past_seq"); }
  static constexpr Dim inferred() { return from_rep(-1); }

  bool is_static() const { return rep_ >= 0; }
  bool is_inferred() const { return rep_ == -1; }
  bool is_symbolic() const { return rep_ < -1; }
  /// The symbol's name if this is one symbol and nothing else.
  std::optional<std::string> symbol_name() const;
  /// The number; an error naming the expression when it is not one.
  int64_t value() const;

  friend bool operator==(Dim, Dim) = default;
  friend auto operator<=>(Dim, Dim) = default;  // some order, for maps

  // Kept in canonical form.
  friend Dim operator+(Dim, Dim);
  friend Dim operator-(Dim, Dim);
  friend Dim operator*(Dim, Dim);

  // The number, or the place in the table of expressions: what a Dim is stored as.
  int64_t rep() const { return rep_; }
  static constexpr Dim from_rep(int64_t rep) {
    Dim d;
    d.rep_ = rep;
    return d;
  }

 private:
  int64_t rep_ = 0;  // >= 0 the number; -1 inferred; below: -2 - index into the expression table
};

using Dims = std::vector<Dim>;

Dim floordiv(Dim a, Dim b);  // rounds down; b must not be zero
/// Rounds up; b must not be zero.
Dim ceildiv(Dim a, Dim b);
/// What floordiv leaves.
Dim mod(Dim a, Dim b);
Dim max(Dim a, Dim b);
Dim min(Dim a, Dim b);
/// a / b when b divides a as polynomials, else nothing.
std::optional<Dim> exact_div(Dim a, Dim b);

/// Whether two extents are equal for every binding (true), for none (false), or it depends (nothing).
std::optional<bool> decide_equal(Dim a, Dim b);

/// Product of all extents; 1 for none. A number that does not fit 64 bits is an error.
Dim product(const Dims&);

/// Values for symbols.
class DimBinding {
 public:
  DimBinding() = default;
  DimBinding(std::initializer_list<std::pair<std::string, int64_t>> pairs);
  static DimBinding batch_seq(int64_t batch, int64_t seq);  // also rows = batch * seq
  /// The symbols batch and past_seq.
  static DimBinding batch_past_seq(int64_t batch, int64_t past);

  /// A symbol's value; set again, the later one counts.
  void set(const std::string& symbol, int64_t value);
  /// The value; nothing for a symbol that has none.
  std::optional<int64_t> get(const std::string& symbol) const;
  size_t len() const { return values_.size(); }
  bool empty() const { return values_.empty(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

 private:
  std::map<std::string, int64_t> values_;
};

/// The expression with known symbols replaced; unknown ones stay. A negative result is an error.
Dim bind(Dim, const DimBinding&);
Dims bind(const Dims&, const DimBinding&);

/// Adds the names of the symbols in `d` to `names`, sorted and unique.
void collect_symbols(Dim d, std::vector<std::string>& names);

void append_text(std::string& out, Dim);

/// Parses an expression at `pos` and moves `pos` behind it: `2*seq+1`, `floordiv(n, 2)`, `-1`.
Dim parse_dim(std::string_view text, size_t& pos);

bool is_identifier(std::string_view);

}  // namespace rlx
