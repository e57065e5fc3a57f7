#include "rlx/onnx/convert.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rlx/lang/operators.h"
#include "rlx/onnx/unsigned.h"

namespace rlx::onnx {
namespace {

using E = file::ElementType;

bool is_small_integer(E t) { return t == E::u4 || t == E::i4 || t == E::u2 || t == E::i2 || t == E::u16; }

bool is_real(E t) {
  const auto& info = file::info_of(t);
  return info.dtype && is_float(*info.dtype);
}

// Integers modulo 2^bits, into the range of the type.
Tensor wrapped_to(const Tensor& x, E to) {
  const int bits = file::info_of(to).bits;
  const double size = std::ldexp(1.0, bits);
  const Tensor low = rlx::bitwise_and(x.dtype() == DType::i64 ? x : x.cast(DType::i64), size - 1);
  const bool is_signed = to == E::i4 || to == E::i2 || to == E::i8 || to == E::i16 || to == E::i32;
  return is_signed ? (low >= size / 2).where(low - size, low) : low;
}

Tensor to_f8(const Call& c, const Tensor& x, E to, bool saturate) {
  const DType dtype = *file::info_of(to).dtype;
  const double largest = dtype == DType::f8e4m3 ? 448 : 57344;
  const Tensor wide = x.dtype() == DType::f32 ? x : x.cast(DType::f32);
  if (saturate) return wide.clamp(-largest, largest).cast(dtype);
  // Values that round beyond the largest have no finite code.
  const double half_step = dtype == DType::f8e4m3 ? 16 : 4096;
  const double beyond = dtype == DType::f8e4m3 ? std::numeric_limits<double>::quiet_NaN()
                                               : std::numeric_limits<double>::infinity();
  const Tensor outside =
      dtype == DType::f8e4m3 ? rlx::abs(wide) > largest + half_step : rlx::abs(wide) >= largest + half_step;
  const Tensor far = rlx::where(wide < 0, c.scalar(DType::f32, -beyond), c.scalar(DType::f32, beyond));
  return rlx::where(outside, far, wide.clamp(-largest, largest)).cast(dtype);
}

}  // namespace

std::pair<double, double> integer_range(E type) {
  const int bits = file::info_of(type).bits;
  const bool is_signed =
      type == E::i2 || type == E::i4 || type == E::i8 || type == E::i16 || type == E::i32 || type == E::i64;
  if (is_signed) return {-std::ldexp(1.0, bits - 1), std::ldexp(1.0, bits - 1) - 1};
  return {0, std::ldexp(1.0, bits) - 1};
}

// |x| is compared with the middles between neighbouring values: how many lie below it is the number of the value. A tie
// goes to the value with the even code.
Tensor rounded_to_codes(const Call& c, const Tensor& x, E type, bool saturate, std::string_view round) {
  const std::span<const float> codes = file::code_values(type);
  const bool powers = type == E::f8e8m0;
  const size_t count = powers ? 255 : codes.size() / 2;
  std::vector<float> values(codes.begin(), codes.begin() + ptrdiff_t(count));
  std::vector<float> middles;
  std::vector<int64_t> up;  // whether a tie goes up
  for (size_t i = 0; i + 1 < count; ++i) {
    const bool to_upper = powers && round == "up", to_lower = powers && round == "down";
    middles.push_back(to_upper   ? values[i]
                      : to_lower ? values[i + 1]
                                 : values[i] + (values[i + 1] - values[i]) / 2);
    up.push_back(to_upper ? 0 : to_lower || powers ? 1 : i % 2 == 1);
  }
  const int64_t n = int64_t(middles.size());
  const Tensor wide = x.dtype() == DType::f32 ? x : x.cast(DType::f32);
  const Tensor size = rlx::abs(wide).unsqueeze(wide.rank());
  const Tensor mids = c.constant(Literal::of<float>({n}, middles));
  const Tensor ties = c.constant(Literal::integers(Shape(DType::bool_, {n}), up));
  const Tensor above = rlx::logical_or(size > mids, rlx::logical_and(size.eq(mids), ties));
  const Tensor code = above.cast(DType::i32).sum({wide.rank()});
  const Tensor magnitude = rlx::gather(c.constant(Literal::of<float>({int64_t(count)}, values)), code);
  const Tensor nan = c.scalar(DType::f32, std::numeric_limits<double>::quiet_NaN());
  Tensor y = powers ? magnitude : rlx::where(wide < 0, -magnitude, magnitude);
  const bool fnuz = type == E::f8e4m3fnuz || type == E::f8e5m2fnuz;
  if (fnuz && !saturate) {
    const double largest = values.back(), step = values.back() - values[count - 2];
    y = rlx::where(rlx::abs(wide) >= largest + step / 2, nan, y);
  }
  // The format without a negative zero has only one zero.
  if (fnuz) y = y.eq(0).where(0.0, y);
  if (type == E::f4e2m1) return rlx::where(rlx::is_nan(wide), c.scalar(DType::f32, -0.0), y);
  return rlx::where(rlx::is_nan(wide), nan, y);
}

Item converted(const Call& c, const Tensor& x, E from, E to, bool saturate, std::string_view round) {
  const auto& info = file::info_of(to);
  const DType dtype = *info.dtype;
  const auto done = [&](const Tensor& y) {
    Item out(y);
    out.element = to;
    return out;
  };
  if (!file::code_values(to).empty()) return done(rounded_to_codes(c, x, to, saturate, round));
  if (to == E::f8e4m3fn || to == E::f8e5m2) return done(to_f8(c, x, to, saturate));
  const bool source_real = is_real(from);
  if (is_small_integer(to)) {
    // Reals are cut off towards zero; codes keep the low bits.
    if (from == E::bool_) return done(x.cast(dtype));
    return done(wrapped_to(x.cast(DType::i64), to).cast(dtype));
  }
  const bool narrower_integer = !source_real && from != E::bool_ && !is_real(to) && !is_complex(dtype) &&
                                to != E::bool_ && dtype != DType::i64;
  if (narrower_integer && file::info_of(from).bits >= info.bits) {
    // Between integers the low bits stay.
    if (from == to) return done(x);
    return done(wrapped_to(x, to).cast(dtype));
  }
  if (from == E::u64 && is_real(to)) return done(real_of_u64(x, dtype));
  if (to == E::u64 && source_real && !is_storage_only(x.dtype())) return done(u64_of_real(x));
  if (is_storage_only(x.dtype())) return done(x.cast(DType::f32).cast(dtype));
  return done(x.dtype() == dtype ? x : x.cast(dtype));
}

}  // namespace rlx::onnx
