#include "rlx/io/onnx/element_type.h"

#include <array>
#include <cmath>
#include <limits>

#include "rlx/base/error.h"

namespace rlx::io::onnx {
namespace {

using E = ElementType;

constexpr std::array<ElementInfo, 26> kElements{{
    {E::f32, "float", 32, DType::f32},
    {E::u8, "uint8", 8, DType::u8},
    {E::i8, "int8", 8, DType::i8},
    {E::u16, "uint16", 16, DType::i32, false},
    {E::i16, "int16", 16, DType::i16},
    {E::i32, "int32", 32, DType::i32},
    {E::i64, "int64", 64, DType::i64},
    {E::string, "string", 0, std::nullopt},
    {E::bool_, "bool", 8, DType::bool_},
    {E::f16, "float16", 16, DType::f16},
    {E::f64, "double", 64, DType::f64},
    {E::u32, "uint32", 32, DType::u32},
    {E::u64, "uint64", 64, DType::i64, false},
    {E::c64, "complex64", 64, DType::c64},
    {E::c128, "complex128", 128, std::nullopt},
    {E::bf16, "bfloat16", 16, DType::bf16},
    {E::f8e4m3fn, "float8e4m3fn", 8, DType::f8e4m3},
    {E::f8e4m3fnuz, "float8e4m3fnuz", 8, DType::f32, false},
    {E::f8e5m2, "float8e5m2", 8, DType::f8e5m2},
    {E::f8e5m2fnuz, "float8e5m2fnuz", 8, DType::f32, false},
    {E::u4, "uint4", 4, DType::u8, false},
    {E::i4, "int4", 4, DType::i8, false},
    {E::f4e2m1, "float4e2m1", 4, DType::f32, false},
    {E::f8e8m0, "float8e8m0", 8, DType::f32, false},
    {E::u2, "uint2", 2, DType::u8, false},
    {E::i2, "int2", 2, DType::i8, false},
}};

// Sign, exponent, mantissa without infinities and without a negative zero, whose code is the only NaN.
template <int kMantissa>
std::array<float, 256> fnuz_values(int bias) {
  std::array<float, 256> out{};
  for (int code = 0; code < 256; ++code) {
    const int exponent = (code & 0x7f) >> kMantissa, mantissa = code & ((1 << kMantissa) - 1);
    const float magnitude = exponent == 0
                                ? std::ldexp(float(mantissa), 1 - bias - kMantissa)
                                : std::ldexp(float(mantissa + (1 << kMantissa)), exponent - bias - kMantissa);
    out[size_t(code)] = code & 0x80 ? -magnitude : magnitude;
  }
  out[0x80] = std::numeric_limits<float>::quiet_NaN();
  return out;
}

std::array<float, 256> power_values() {
  std::array<float, 256> out{};
  for (int code = 0; code < 255; ++code) out[size_t(code)] = std::ldexp(1.0f, code - 127);
  out[255] = std::numeric_limits<float>::quiet_NaN();
  return out;
}

constexpr std::array<float, 16> kE2m1{0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

}  // namespace

const ElementInfo* find_element(int32_t number) {
  if (number < 1 || number > int32_t(kElements.size())) return nullptr;
  return &kElements[size_t(number - 1)];
}

const ElementInfo& info_of(ElementType type) {
  const ElementInfo* info = find_element(int32_t(type));
  RLX_CHECK(info != nullptr, "element type ", int32_t(type));
  return *info;
}

ElementType element_of(DType dtype) {
  for (const ElementInfo& info : kElements) {
    if (info.exact && info.dtype == dtype) return info.type;
  }
  RLX_CHECK(false, "no element type for ", dtype);
  return ElementType::undefined;
}

std::span<const float> code_values(ElementType type) {
  static const auto e4m3 = fnuz_values<3>(8), e5m2 = fnuz_values<2>(16), powers = power_values();
  switch (type) {
    case E::f8e4m3fnuz:
      return e4m3;
    case E::f8e5m2fnuz:
      return e5m2;
    case E::f8e8m0:
      return powers;
    case E::f4e2m1:
      return kE2m1;
    default:
      return {};
  }
}

}  // namespace rlx::io::onnx
