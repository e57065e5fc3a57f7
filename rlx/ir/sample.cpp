#include "rlx/ir/sample.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <numeric>

#include "rlx/base/philox.h"

namespace rlx::ir {
namespace {

class Stream {
 public:
  explicit Stream(uint64_t seed) : seed_(seed) {}
  double uniform() { return (double(word()) + 0.5) * 0x1p-32; }
  double normal() {
    const double r = std::sqrt(-2 * std::log(uniform()));
    return r * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  uint32_t word() {
    if (next_ == 4) block_ = philox_block(seed_, 0x5a17, index_++), next_ = 0;
    return block_[next_++];
  }
  uint64_t seed_, index_ = 0;
  PhiloxBlock block_{};
  size_t next_ = 4;
};

double number(std::string_view text) {
  double v = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  RLX_CHECK(error == std::errc() && end == text.data() + text.size(), "sample: bad number '", text, "'");
  return v;
}

using Complex = std::complex<double>;

double conj_of(double x) { return x; }
Complex conj_of(Complex x) { return std::conj(x); }

// Applies `fix` to each matrix of the last two axes.
template <class T, class Fix>
void each_matrix(const Shape& s, std::vector<T>& v, Fix fix) {
  const auto n = size_t(s.dim(-1).value());
  RLX_CHECK(s.dim(-2).value() == int64_t(n), "sample: ", s, " is not square");
  for (size_t at = 0; n > 0 && at < v.size(); at += n * n) fix(v.data() + at, n);
}

template <class T>
void make_spd(T* a, size_t n) {
  std::vector<T> b(a, a + n * n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      T sum = i == j ? double(n) : 0;
      for (size_t k = 0; k < n; ++k) sum += b[i * n + k] * conj_of(b[j * n + k]);
      a[i * n + j] = sum;
    }
  }
}

template <class T>
void make_lower(T* a, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) a[i * n + j] = 0;
    a[i * n + i] = 1.5 + std::abs(a[i * n + i]);
  }
}

template <class T>
void make_solvable(T* a, size_t n) {
  for (size_t i = 0; i < n; ++i) a[i * n + i] += std::real(a[i * n + i]) < 0 ? -double(n) : double(n);
}

// Fills that give matrices a property; the values are normal before.
template <class T>
void shape_matrices(const Shape& s, std::string_view fill, std::vector<T>& v) {
  const auto fix = fill == "spd"        ? make_spd<T>
                   : fill == "lower"    ? make_lower<T>
                   : fill == "solvable" ? make_solvable<T>
                                        : nullptr;
  RLX_CHECK(fix != nullptr, "sample: unknown fill '", fill, "'");
  each_matrix(s, v, fix);
}

std::vector<double> fill_reals(const Shape& s, std::string_view fill, Stream& r) {
  std::vector<double> v(size_t(s.elements()));
  const bool whole = is_integer(s.dtype());
  if (fill.empty()) {
    const double low = s.dtype() == DType::u8 || s.dtype() == DType::u32 ? 0 : -5;
    for (double& x : v)
      x = s.dtype() == DType::bool_ ? double(r.uniform() < 0.5)
          : whole                   ? std::floor(low + r.uniform() * (6 - low))
                                    : r.normal();
  } else if (fill == "positive") {
    for (double& x : v) x = 0.5 + 2 * r.uniform();
  } else if (fill == "unit") {
    for (double& x : v) x = r.uniform();
  } else if (fill == "bytes") {
    for (double& x : v) x = std::floor(r.uniform() * 256);
  } else if (fill.starts_with("<")) {
    const double limit = number(fill.substr(1));
    for (double& x : v) x = std::floor(r.uniform() * limit);
  } else if (fill.starts_with("in ")) {
    const size_t dots = fill.find("..");
    const double low = number(fill.substr(3, dots - 3)), high = number(fill.substr(dots + 2));
    for (double& x : v)
      x = whole ? std::floor(low + r.uniform() * (high + 1 - low)) : low + r.uniform() * (high - low);
  } else if (fill.starts_with("near ")) {
    std::string_view rest = fill.substr(5);
    for (double& x : v) {
      const size_t end = std::min(rest.find(' '), rest.size());
      x = number(rest.substr(0, end)) + 0.01 * r.uniform();
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    RLX_CHECK(rest.empty(), "sample: more values than ", s, " holds in '", fill, "'");
  } else if (fill == "distinct") {
    std::vector<size_t> order(v.size());
    std::iota(order.begin(), order.end(), size_t(0));
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[size_t(r.uniform() * double(i))]);
    for (size_t i = 0; i < v.size(); ++i)
      v[order[i]] = double(i) - double(v.size()) / 2 + (whole ? 0 : 0.3 * r.uniform());
  } else {
    for (double& x : v) x = r.normal();
    shape_matrices(s, fill, v);
  }
  return v;
}

}  // namespace

Literal sample_literal(std::string_view spec, uint64_t seed, std::optional<DType> floats) {
  size_t pos = 0;
  Shape shape = parse_shape(spec, pos);
  while (pos < spec.size() && spec[pos] == ' ') ++pos;
  const std::string_view fill = spec.substr(pos);
  // Floats that carry indices keep their dtype too, but widening them is harmless.
  if (floats && is_float(shape.dtype()) && !is_storage_only(shape.dtype())) shape = shape.with_dtype(*floats);
  Stream r(seed);
  if (is_complex(shape.dtype())) {
    std::vector<std::complex<double>> v(size_t(shape.elements()));
    for (auto& z : v) z = {r.normal(), r.normal()};
    if (!fill.empty()) shape_matrices(shape, fill, v);
    return Literal::complexes(shape, v);
  }
  return Literal::reals(shape, fill_reals(shape, fill, r));
}

}  // namespace rlx::ir
