#include "rlx/ir/literal.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "rlx/base/float16.h"
#include "rlx/ir/cast_elements.h"

namespace rlx {
namespace {

struct IntegerRange {
  int64_t low, high;
};

IntegerRange range_of(DType t) {
  switch (t) {
    case DType::bool_:
      return {0, 1};
    case DType::u8:
      return {0, 255};
    case DType::i8:
      return {-128, 127};
    case DType::i16:
      return {-32768, 32767};
    case DType::i32:
      return {INT32_MIN, INT32_MAX};
    case DType::u32:
      return {0, UINT32_MAX};
    default:
      return {INT64_MIN, INT64_MAX};
  }
}

template <class T>
T load(const std::byte* p, int64_t i) {
  T value;
  std::memcpy(&value, p + size_t(i) * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(std::byte* p, int64_t i, T value) {
  std::memcpy(static_cast<void*>(p + size_t(i) * sizeof(T)), &value, sizeof(T));
}

// A double on its way to a format narrower than f32 must not round twice. Rounding to odd (truncate, then set
// the last bit) keeps on which side of every narrower midpoint the value lies.
float to_f32_keeping_side(double value) {
  const float f = float(value);
  if (double(f) == value || !std::isfinite(f)) return f;
  uint32_t u = std::bit_cast<uint32_t>(f);
  if (std::fabs(double(f)) > std::fabs(value)) u -= 1;
  return std::bit_cast<float>(u | 1u);
}

void store_real(std::byte* p, int64_t i, DType t, double v) {
  switch (t) {
    case DType::bool_:
      store<uint8_t>(p, i, v != 0);
      return;
    case DType::u8:
      store<uint8_t>(p, i, uint8_t(saturate_to(t, v)));
      return;
    case DType::i8:
      store<int8_t>(p, i, int8_t(saturate_to(t, v)));
      return;
    case DType::i16:
      store<int16_t>(p, i, int16_t(saturate_to(t, v)));
      return;
    case DType::i32:
      store<int32_t>(p, i, int32_t(saturate_to(t, v)));
      return;
    case DType::i64:
      store<int64_t>(p, i, saturate_to(t, v));
      return;
    case DType::u32:
      store<uint32_t>(p, i, uint32_t(saturate_to(t, v)));
      return;
    case DType::f16:
      store<uint16_t>(p, i, f32_to_f16(to_f32_keeping_side(v)));
      return;
    case DType::bf16:
      store<uint16_t>(p, i, f32_to_bf16(to_f32_keeping_side(v)));
      return;
    case DType::f32:
      store<float>(p, i, float(v));
      return;
    case DType::f64:
      store<double>(p, i, v);
      return;
    case DType::c64:
      store<complex64>(p, i, complex64(float(v), 0));
      return;
    case DType::f8e4m3:
      store<uint8_t>(p, i, f32_to_f8e4m3(to_f32_keeping_side(v)));
      return;
    case DType::f8e5m2:
      store<uint8_t>(p, i, f32_to_f8e5m2(to_f32_keeping_side(v)));
      return;
  }
}

// Integer arithmetic wraps: the low bits stay.
void store_integer(std::byte* p, int64_t i, DType t, int64_t v) {
  switch (t) {
    case DType::bool_:
      store<uint8_t>(p, i, v != 0);
      return;
    case DType::u8:
      store<uint8_t>(p, i, uint8_t(v));
      return;
    case DType::i8:
      store<int8_t>(p, i, int8_t(v));
      return;
    case DType::i16:
      store<int16_t>(p, i, int16_t(v));
      return;
    case DType::i32:
      store<int32_t>(p, i, int32_t(v));
      return;
    case DType::i64:
      store<int64_t>(p, i, v);
      return;
    case DType::u32:
      store<uint32_t>(p, i, uint32_t(v));
      return;
    default:
      store_real(p, i, t, double(v));
  }
}

double load_real(const std::byte* p, int64_t i, DType t) {
  switch (t) {
    case DType::bool_:
      return load<uint8_t>(p, i) != 0;
    case DType::u8:
      return load<uint8_t>(p, i);
    case DType::i8:
      return load<int8_t>(p, i);
    case DType::i16:
      return load<int16_t>(p, i);
    case DType::i32:
      return load<int32_t>(p, i);
    case DType::i64:
      return double(load<int64_t>(p, i));
    case DType::u32:
      return load<uint32_t>(p, i);
    case DType::f16:
      return f16_to_f32(load<uint16_t>(p, i));
    case DType::bf16:
      return bf16_to_f32(load<uint16_t>(p, i));
    case DType::f32:
      return load<float>(p, i);
    case DType::f64:
      return load<double>(p, i);
    case DType::c64:
      break;
    case DType::f8e4m3:
      return f8e4m3_to_f32(load<uint8_t>(p, i));
    case DType::f8e5m2:
      return f8e5m2_to_f32(load<uint8_t>(p, i));
  }
  throw invalid("literal: a complex element has no real form; complex_at reads it");
}

void check_count(size_t given, const Shape& shape) {
  if (int64_t(given) != shape.elements())
    throw invalid("literal: ", given, " values for ", shape, "; it has ", shape.elements());
}

}  // namespace

int64_t saturate_to(DType t, double value) {
  if (std::isnan(value)) return 0;
  const IntegerRange r = range_of(t);
  const double truncated = std::trunc(value);
  if (truncated <= double(r.low)) return r.low;
  if (truncated >= double(r.high)) return r.high;
  return int64_t(truncated);
}

Literal::Literal(const Shape& shape, std::shared_ptr<const void> owner, const std::byte* data, bool writable)
    : shape_(shape),
      elements_(shape.elements()),
      owner_(std::move(owner)),
      data_(data),
      writable_(writable) {}

Literal Literal::zeros(const Shape& shape) {
  if (!shape.is_static()) throw invalid("literal: ", shape, " has no size yet; bind its symbols first");
  const size_t size = size_t(shape.size_bytes());
  constexpr std::align_val_t kAlignment{64};  // suits every vector unit
  auto* data = static_cast<std::byte*>(::operator new(size + 1, kAlignment, std::nothrow));
  if (data == nullptr) throw environment_error("literal: out of memory, asked ", size, " bytes for ", shape);
  std::memset(data, 0, size + 1);
  std::shared_ptr<const void> owner(
      data, [](const void* p) { ::operator delete(const_cast<void*>(p), kAlignment); });
  return Literal(shape, std::move(owner), data, true);
}

Literal Literal::borrow(const Shape& shape, std::span<const std::byte> bytes,
                        std::shared_ptr<const void> owner) {
  if (int64_t(bytes.size()) != shape.size_bytes()) {
    throw invalid("literal: ", bytes.size(), " bytes for ", shape, "; it has ", shape.size_bytes());
  }
  return Literal(shape, std::move(owner), bytes.data(), false);
}

Literal Literal::copy_of(const Shape& shape, std::span<const std::byte> bytes) {
  Literal out = borrow(shape, bytes, nullptr);
  out.mutable_bytes();
  return out;
}

std::span<std::byte> Literal::mutable_bytes() {
  if (!writable_ || owner_.use_count() != 1) {
    const auto old = bytes();
    Literal fresh = zeros(shape_);
    if (!old.empty()) std::memcpy(const_cast<std::byte*>(fresh.data_), old.data(), old.size());
    *this = std::move(fresh);
  }
  return {const_cast<std::byte*>(data_), size_t(elements_) * dtype_size(dtype())};
}

void Literal::require_dtype(DType asked) const {
  if (asked == dtype()) return;
  throw invalid("literal: elements of ", shape_, " were asked for as ", asked, "; cast(DType::", asked,
                ") converts them");
}

void Literal::require_index(int64_t i) const {
  if (i >= 0 && i < elements_) return;
  throw invalid("literal: element ", i, " of ", shape_, " was asked for; it has ", elements_);
}

Literal Literal::reals(const Shape& shape, std::span<const double> values) {
  Literal out = zeros(shape);
  check_count(values.size(), shape);
  std::byte* p = out.mutable_bytes().data();
  for (int64_t i = 0; i < out.elements_; ++i) store_real(p, i, shape.dtype(), values[size_t(i)]);
  return out;
}

Literal Literal::integers(const Shape& shape, std::span<const int64_t> values) {
  Literal out = zeros(shape);
  check_count(values.size(), shape);
  std::byte* p = out.mutable_bytes().data();
  for (int64_t i = 0; i < out.elements_; ++i) store_integer(p, i, shape.dtype(), values[size_t(i)]);
  return out;
}

Literal Literal::complexes(const Shape& shape, std::span<const std::complex<double>> values) {
  if (shape.dtype() != DType::c64) throw invalid("literal: complex values for ", shape, "; c64 holds them");
  Literal out = zeros(shape);
  check_count(values.size(), shape);
  std::byte* p = out.mutable_bytes().data();
  for (int64_t i = 0; i < out.elements_; ++i) {
    store<complex64>(p, i, complex64(float(values[size_t(i)].real()), float(values[size_t(i)].imag())));
  }
  return out;
}

// One element, then copies of what is there, twice as much each time.
Literal Literal::full(const Shape& shape, double value) {
  Literal out = zeros(shape);
  const std::span<std::byte> to = out.mutable_bytes();
  if (to.empty()) return out;
  const Literal one = reals(Shape(shape.dtype(), {1}), std::vector<double>{value});
  const std::span<const std::byte> element = one.bytes();
  if (std::all_of(element.begin(), element.end(), [](std::byte b) { return b == std::byte(0); })) return out;
  std::memcpy(to.data(), element.data(), element.size());
  for (size_t done = element.size(); done < to.size(); done *= 2)
    std::memcpy(to.data() + done, to.data(), std::min(done, to.size() - done));
  return out;
}

double Literal::real_at(int64_t i) const {
  require_index(i);
  return load_real(data_, i, dtype());
}

int64_t Literal::integer_at(int64_t i) const {
  require_index(i);
  if (dtype() == DType::i64) return load<int64_t>(data_, i);
  return saturate_to(DType::i64, load_real(data_, i, dtype()));
}

std::complex<double> Literal::complex_at(int64_t i) const {
  require_index(i);
  if (dtype() == DType::c64) return load<complex64>(data_, i);
  return load_real(data_, i, dtype());
}

std::vector<double> Literal::to_reals() const {
  std::vector<double> out(static_cast<size_t>(elements_));
  for (int64_t i = 0; i < elements_; ++i) out[size_t(i)] = load_real(data_, i, dtype());
  return out;
}

std::vector<int64_t> Literal::to_integers() const {
  std::vector<int64_t> out(static_cast<size_t>(elements_));
  for (int64_t i = 0; i < elements_; ++i) out[size_t(i)] = integer_at(i);
  return out;
}

std::vector<std::complex<double>> Literal::to_complexes() const {
  std::vector<std::complex<double>> out(static_cast<size_t>(elements_));
  for (int64_t i = 0; i < elements_; ++i) out[size_t(i)] = complex_at(i);
  return out;
}

Literal Literal::cast(DType to) const {
  if (to == dtype()) return *this;
  Literal out = zeros(shape_.with_dtype(to));
  cast_elements(dtype(), data_, to, out.mutable_bytes().data(), elements_);
  return out;
}

void cast_elements(DType from, const std::byte* x, DType to, std::byte* y, int64_t n) {
  if (is_complex(from)) {
    if (to != DType::bool_)
      throw invalid("cast: a complex value has no ", to, " form; take its real part first");
    for (int64_t i = 0; i < n; ++i) store<uint8_t>(y, i, load<complex64>(x, i) != complex64(0));
  } else if (from == DType::i64 && is_integer(to)) {
    // Between integers the value saturates like in every other cast, but must not pass through double.
    const IntegerRange r = range_of(to);
    for (int64_t i = 0; i < n; ++i)
      store_integer(y, i, to, std::min(std::max(load<int64_t>(x, i), r.low), r.high));
  } else {
    for (int64_t i = 0; i < n; ++i) store_real(y, i, to, load_real(x, i, from));
  }
}

Literal Literal::reshaped(Dims dims) const {
  const Shape shape = shape_.with_dims(std::move(dims));
  if (shape.elements() != elements_)
    throw invalid("literal: ", shape_, " cannot be seen as ", shape, "; it has ", elements_, " elements");
  Literal out = *this;
  out.shape_ = shape;
  return out;
}

bool operator==(const Literal& a, const Literal& b) {
  if (a.shape_ != b.shape_) return false;
  const auto x = a.bytes(), y = b.bytes();
  return x.empty() || x.data() == y.data() || std::memcmp(x.data(), y.data(), x.size()) == 0;
}

}  // namespace rlx
