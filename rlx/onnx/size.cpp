#include "rlx/onnx/size.h"

#include <algorithm>
#include <limits>

#include "rlx/base/dim_polynomial.h"
#include "rlx/base/error.h"
#include "rlx/lang/operators.h"
#include "rlx/ops/index/indices.h"

namespace rlx::onnx {
namespace {

// Expressions that become too large, or negative for sure, have no form.
template <class Make>
std::optional<Size> made(Make make) {
  try {
    return Size(make());
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool any_counted(const Size& a, const Size& b) { return a.is_counted() || b.is_counted(); }

Size most_of(const Size& a) { return a.is_counted() ? Size(a.most()) : a; }

// Of numbers of which data decides one: computed by the graph, bounded by `most`.
template <class Make>
std::optional<Size> counted_of(const Size& a, const Size& b, const std::optional<Size>& most, bool is_signed,
                               Make make) {
  const auto bound = most ? larger(*most, Size(0)) : std::nullopt;
  if (!bound || !bound->dim()) return std::nullopt;
  ir::Graph& g = (a.is_counted() ? a : b).count().graph();
  return Size::counted(*bound->dim(), make(value_of(g, a), value_of(g, b)), is_signed);
}

bool may_be_negative(const Size& a) { return a.may_be_negative(); }

bool either_may_be_negative(const Size& a, const Size& b) {
  return a.may_be_negative() || b.may_be_negative();
}

// The number whose negative is no number.
bool is_least(const Size& a) { return a.number() == std::numeric_limits<int64_t>::min(); }

bool fits(const Size& a) { return a.dim().has_value() && !a.dim()->is_inferred(); }

}  // namespace

Size::Size(Dim dim) {
  if (dim.is_symbolic()) {
    value_ = dim;
  } else {
    value_ = dim.is_inferred() ? -1 : dim.value();
  }
}

bool Size::may_be_negative() const {
  if (is_counted()) return signed_;
  return number() ? *number() < 0 : offset_of(*this).has_value();
}

Size Size::counted(Dim most, Tensor count, bool may_be_negative) {
  Size out;
  out.signed_ = may_be_negative;
  out.value_ = most;
  out.count_ = std::move(count);
  return out;
}

bool operator==(const Size& a, const Size& b) {
  if (a.value_ != b.value_ || a.is_counted() != b.is_counted()) return false;
  return !a.is_counted() || (&a.count_.graph() == &b.count_.graph() && Value(a.count_) == Value(b.count_));
}

Tensor value_of(ir::Graph& g, const Size& a) {
  if (a.is_counted()) return a.count();
  if (a.number()) return ir::Expr{&g, g.constant(Literal::of<int64_t>({}, {*a.number()}))};
  // A size is not negative; a number computed from one may be.
  const auto offset = offset_of(a);
  Tensor value(ops::dim_value(g, offset ? offset->rest : *a.dim()));
  if (offset && offset->falls) value = rlx::neg(value);
  return offset ? value + double(offset->number) : value;
}

std::optional<int64_t> Size::number() const {
  if (!is_number()) return std::nullopt;
  return std::get<int64_t>(value_);
}

std::optional<Dim> Size::dim() const {
  if (is_counted()) return std::nullopt;
  if (!is_number()) return std::get<Dim>(value_);
  const int64_t n = std::get<int64_t>(value_);
  if (n < -1) return std::nullopt;
  return n == -1 ? Dim::inferred() : Dim(n);
}

std::optional<Offset> offset_of(const Size& a) {
  if (a.is_number() || a.is_counted()) return std::nullopt;
  Polynomial terms = polynomial_of(*a.dim());
  const auto constant = terms.find(Monomial{});
  const int64_t number = constant == terms.end() ? 0 : constant->second;
  terms.erase(Monomial{});
  const auto is_negative = [](const auto& term) { return term.second < 0; };
  const bool falls = std::all_of(terms.begin(), terms.end(), is_negative);
  if (!falls && std::any_of(terms.begin(), terms.end(), is_negative)) return std::nullopt;
  if (falls) {
    for (auto& [monomial, factor] : terms) factor = -factor;
    return Offset{number, intern(terms), true};
  }
  if (number >= 0) return std::nullopt;
  const Dim rest = intern(terms);
  std::vector<std::string> names;
  collect_symbols(rest, names);
  DimBinding ones;
  for (const std::string& name : names) ones.set(name, 1);
  try {
    if (const Dim least = bind(rest, ones); least.is_static() && least.value() >= -number)
      return std::nullopt;  // no symbol is 0
  } catch (const Error&) {
    return std::nullopt;  // a part of it is no size where symbols are 1
  }
  return Offset{number, rest, false};
}

std::optional<Size> plus(const Size& a, const Size& b) {
  if (any_counted(a, b))
    return counted_of(a, b, plus(most_of(a), most_of(b)), either_may_be_negative(a, b),
                      [](const Tensor& x, const Tensor& y) { return x + y; });
  if (a.number() && b.number()) return Size(int64_t(uint64_t(*a.number()) + uint64_t(*b.number())));
  if (is_least(a) || is_least(b)) return std::nullopt;
  if (b.number() && *b.number() < 0) return minus(a, Size(-*b.number()));
  if (a.number() && *a.number() < 0) return minus(b, Size(-*a.number()));
  return made([&] { return *a.dim() + *b.dim(); });
}

std::optional<Size> minus(const Size& a, const Size& b) {
  // What is taken away may be as little as 0.
  if (any_counted(a, b))
    return counted_of(a, b, b.is_counted() ? std::optional(most_of(a)) : minus(most_of(a), b), true,
                      [](const Tensor& x, const Tensor& y) { return x - y; });
  if (a.number() && b.number()) return Size(int64_t(uint64_t(*a.number()) - uint64_t(*b.number())));
  if (is_least(b)) return std::nullopt;
  if (b.number() && *b.number() < 0) return plus(a, Size(-*b.number()));
  if (a.number() && *a.number() < 0) return std::nullopt;
  return made([&] { return *a.dim() - *b.dim(); });
}

std::optional<Size> times(const Size& a, const Size& b) {
  if (any_counted(a, b))
    return counted_of(a, b, times(most_of(a), most_of(b)), either_may_be_negative(a, b),
                      [](const Tensor& x, const Tensor& y) { return x * y; });
  if (a.number() && b.number()) return Size(int64_t(uint64_t(*a.number()) * uint64_t(*b.number())));
  if ((a.number() && *a.number() < 0) || (b.number() && *b.number() < 0)) return std::nullopt;
  return made([&] { return *a.dim() * *b.dim(); });
}

std::optional<Size> quotient(const Size& a, const Size& b) {
  if (a.is_counted() && b.number() && *b.number() > 0)
    return counted_of(a, b, quotient(most_of(a), b), may_be_negative(a),
                      [](const Tensor& x, const Tensor& y) { return rlx::div(x, y); });
  if (b.number() && *b.number() == 0) return std::nullopt;
  if (a.number() && b.number())
    return Size(*b.number() == -1 ? int64_t(0 - uint64_t(*a.number())) : *a.number() / *b.number());
  if (!fits(a) || !fits(b)) return std::nullopt;
  return made([&] { return floordiv(*a.dim(), *b.dim()); });
}

std::optional<Size> remainder(const Size& a, const Size& b) {
  if (b.number() && *b.number() == 0) return std::nullopt;
  if (a.number() && b.number()) return Size(*b.number() == -1 ? 0 : *a.number() % *b.number());
  if (!fits(a) || !fits(b)) return std::nullopt;
  return made([&] { return mod(*a.dim(), *b.dim()); });
}

std::optional<Size> larger(const Size& a, const Size& b) {
  if (any_counted(a, b))
    return counted_of(a, b, larger(most_of(a), most_of(b)), may_be_negative(a) && may_be_negative(b),
                      [](const Tensor& x, const Tensor& y) { return x.max(y); });
  if (const auto known = less(a, b)) return *known ? b : a;
  if (!fits(a) || !fits(b)) return std::nullopt;
  if (a.number() && !b.number()) return larger(b, a);
  if (const auto o = offset_of(a); o && b.number()) {
    if (!o->falls) return made([&] { return max(o->rest, *b.dim() + Dim(-o->number)) - Dim(-o->number); });
    if (o->number >= *b.number())
      return made([&] { return Dim(o->number) - min(o->rest, Dim(o->number - *b.number())); });
  }
  return made([&] { return max(*a.dim(), *b.dim()); });
}

std::optional<Size> smaller(const Size& a, const Size& b) {
  if (any_counted(a, b))
    return counted_of(a, b, smaller(most_of(a), most_of(b)), either_may_be_negative(a, b),
                      [](const Tensor& x, const Tensor& y) { return x.min(y); });
  if (const auto known = less(a, b)) return *known ? a : b;
  if (!fits(a) || !fits(b)) return std::nullopt;
  return made([&] { return min(*a.dim(), *b.dim()); });
}

std::optional<bool> equal(const Size& a, const Size& b) {
  if (a.is_counted() && b.number() && *b.number() < 0 && !may_be_negative(a)) return false;
  if (b.is_counted()) return a.is_counted() ? std::nullopt : equal(b, a);
  if (a.is_counted()) return std::nullopt;
  if (a.number() && b.number()) return *a.number() == *b.number();
  if ((a.number() && *a.number() < 0) || (b.number() && *b.number() < 0)) {
    if (may_be_negative(a) && may_be_negative(b)) return std::nullopt;
    return false;
  }
  return decide_equal(*a.dim(), *b.dim());
}

std::optional<bool> less(const Size& a, const Size& b) {
  if (a.is_counted() && b.number() && *b.number() <= 0 && !may_be_negative(a)) return false;
  if (b.is_counted() && a.number() && *a.number() < 0 && !may_be_negative(b)) return true;
  if (any_counted(a, b)) return std::nullopt;
  if (a.number() && b.number()) return *a.number() < *b.number();
  if (a == b) return false;
  if (a.number() && *a.number() < 0) return may_be_negative(b) ? std::nullopt : std::optional(true);
  if (b.number() && *b.number() <= 0) return may_be_negative(a) ? std::nullopt : std::optional(false);
  if (!fits(a) || !fits(b)) return std::nullopt;
  // a - b is decided where it is a number.
  if (const auto d = minus(a, b); d && d->number()) return *d->number() < 0;
  if (const auto d = minus(b, a); d && d->number()) return *d->number() > 0;
  return std::nullopt;
}

bool Sizes::all_numbers() const {
  return std::all_of(values.begin(), values.end(), [](const Size& s) { return s.is_number(); });
}

}  // namespace rlx::onnx
