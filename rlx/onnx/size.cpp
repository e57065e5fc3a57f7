#include "rlx/onnx/size.h"

#include <algorithm>

#include "rlx/base/error.h"

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

bool fits(const Size& a) { return a.dim().has_value() && !a.dim()->is_inferred(); }

}  // namespace

Size::Size(Dim dim) {
  if (dim.is_symbolic()) {
    value_ = dim;
  } else {
    value_ = dim.is_inferred() ? -1 : dim.value();
  }
}

std::optional<int64_t> Size::number() const {
  if (!is_number()) return std::nullopt;
  return std::get<int64_t>(value_);
}

std::optional<Dim> Size::dim() const {
  if (!is_number()) return std::get<Dim>(value_);
  const int64_t n = std::get<int64_t>(value_);
  if (n < -1) return std::nullopt;
  return n == -1 ? Dim::inferred() : Dim(n);
}

std::optional<Size> plus(const Size& a, const Size& b) {
  if (a.number() && b.number()) return Size(int64_t(uint64_t(*a.number()) + uint64_t(*b.number())));
  if (b.number() && *b.number() < 0) return minus(a, Size(-*b.number()));
  if (a.number() && *a.number() < 0) return minus(b, Size(-*a.number()));
  return made([&] { return *a.dim() + *b.dim(); });
}

std::optional<Size> minus(const Size& a, const Size& b) {
  if (a.number() && b.number()) return Size(int64_t(uint64_t(*a.number()) - uint64_t(*b.number())));
  if (b.number() && *b.number() < 0) return plus(a, Size(-*b.number()));
  if (a.number() && *a.number() < 0) return std::nullopt;
  return made([&] { return *a.dim() - *b.dim(); });
}

std::optional<Size> times(const Size& a, const Size& b) {
  if (a.number() && b.number()) return Size(int64_t(uint64_t(*a.number()) * uint64_t(*b.number())));
  if ((a.number() && *a.number() < 0) || (b.number() && *b.number() < 0)) return std::nullopt;
  return made([&] { return *a.dim() * *b.dim(); });
}

std::optional<Size> quotient(const Size& a, const Size& b) {
  if (b.number() && *b.number() == 0) return std::nullopt;
  if (a.number() && b.number()) return Size(*b.number() == -1 ? -*a.number() : *a.number() / *b.number());
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
  if (const auto known = less(a, b)) return *known ? b : a;
  if (!fits(a) || !fits(b)) return std::nullopt;
  return made([&] { return max(*a.dim(), *b.dim()); });
}

std::optional<Size> smaller(const Size& a, const Size& b) {
  if (const auto known = less(a, b)) return *known ? a : b;
  if (!fits(a) || !fits(b)) return std::nullopt;
  return made([&] { return min(*a.dim(), *b.dim()); });
}

std::optional<bool> equal(const Size& a, const Size& b) {
  if (a.number() && b.number()) return *a.number() == *b.number();
  // A size is not negative, whatever its symbols are.
  if ((a.number() && *a.number() < 0) || (b.number() && *b.number() < 0)) return false;
  return decide_equal(*a.dim(), *b.dim());
}

std::optional<bool> less(const Size& a, const Size& b) {
  if (a.number() && b.number()) return *a.number() < *b.number();
  if (a == b) return false;
  if (a.number() && *a.number() < 0) return true;
  if (b.number() && *b.number() <= 0) return false;
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
