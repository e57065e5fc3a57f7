// The element types of ONNX and what becomes of them here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "rlx/base/dtype.h"

namespace rlx::io::onnx {

/// The numbers of TensorProto.DataType.
enum class ElementType : int32_t {
  undefined = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  string = 8,
  bool_ = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  c64 = 14,
  c128 = 15,
  bf16 = 16,
  f8e4m3fn = 17,
  f8e4m3fnuz = 18,
  f8e5m2 = 19,
  f8e5m2fnuz = 20,
  u4 = 21,
  i4 = 22,
  f4e2m1 = 23,
  f8e8m0 = 24,
  u2 = 25,
  i2 = 26,
};

/// What is known of an element type. `dtype` is the type of our tensors that holds it; where `exact` is false it
/// is a wider one with the same values, and u64 is held modulo 2^64 in i64.
struct ElementInfo {
  ElementType type = ElementType::undefined;
  std::string_view name;
  int bits = 0;  // of the stored form; 0: no fixed size
  std::optional<DType> dtype;
  bool exact = true;
};

/// Of a number from a file; null when ONNX has no such type.
const ElementInfo* find_element(int32_t number);
/// As find_element, for types that are known to exist.
const ElementInfo& info_of(ElementType);
/// The type ONNX has for one of ours.
ElementType element_of(DType);

/// The values of the codes of a float type of at most 8 bits that we have no type for, by code; empty for others.
std::span<const float> code_values(ElementType);

}  // namespace rlx::io::onnx
