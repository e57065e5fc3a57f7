// Element types of tensors.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rlx {

// f8e4m3 and f8e5m2 are the OCP formats and are storage types: they convert, but nothing computes in them.
enum class DType : uint8_t { bool_, u8, i8, i16, i32, i64, u32, f16, bf16, f32, f64, c64, f8e4m3, f8e5m2 };

inline constexpr int kDTypeCount = 14;

using complex64 = std::complex<float>;

/// "f32", "bool" and so on.
std::string_view dtype_name(DType);
/// The type of that name; nothing when there is none.
std::optional<DType> dtype_from_name(std::string_view);
size_t dtype_size(DType);  // bytes per element

constexpr bool is_complex(DType t) { return t == DType::c64; }
constexpr bool is_float(DType t) {
  return t == DType::f16 || t == DType::bf16 || t == DType::f32 || t == DType::f64 || t == DType::f8e4m3 ||
         t == DType::f8e5m2;
}
constexpr bool is_integer(DType t) { return t >= DType::u8 && t <= DType::u32; }
constexpr bool is_storage_only(DType t) { return t == DType::f8e4m3 || t == DType::f8e5m2; }
/// Has a derivative: real floats that compute, and complex numbers.
constexpr bool is_differentiable(DType t) { return (is_float(t) && !is_storage_only(t)) || is_complex(t); }

void append_text(std::string& out, DType);

}  // namespace rlx
