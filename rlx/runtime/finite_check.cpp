#include "rlx/runtime/finite_check.h"

#include <cmath>
#include <cstring>

#include "rlx/base/float16.h"

namespace rlx {
namespace {

using backend::Plan;

// The number at an address: the worse of the two parts of a complex one.
double number_at(DType t, const std::byte* p) {
  const auto read = [p](auto value) {
    std::memcpy(&value, p, sizeof value);
    return value;
  };
  switch (t) {
    case DType::f32:
      return read(float{});
    case DType::f64:
      return read(double{});
    case DType::f16:
      return f16_to_f32(read(uint16_t{}));
    case DType::bf16:
      return bf16_to_f32(read(uint16_t{}));
    case DType::c64: {
      float parts[2];
      std::memcpy(parts, p, sizeof parts);
      return std::isfinite(parts[0]) ? parts[1] : parts[0];
    }
    default:
      return 0;
  }
}

bool has_bad_values(DType t) {
  return t == DType::f32 || t == DType::f64 || t == DType::f16 || t == DType::bf16 || t == DType::c64;
}

// The row-major number of the first element that is not wanted, or -1.
int64_t first_bad(const Plan::Place& place, const std::byte* data, bool infinities) {
  if (data == nullptr || !has_bad_values(place.shape.dtype())) return -1;
  const auto bytes = int64_t(dtype_size(place.shape.dtype()));
  const int64_t elements = place.shape.elements();
  for (int64_t e = 0; e < elements; ++e) {
    int64_t rest = e, at = 0;
    for (int i = place.shape.rank(); i-- > 0;) {
      const int64_t size = place.shape.dim(i).value();
      at += rest % size * place.layout.strides[size_t(i)];
      rest /= size;
    }
    const double x = number_at(place.shape.dtype(), data + at * bytes);
    if (std::isnan(x) || (infinities && std::isinf(x))) return e;
  }
  return -1;
}

}  // namespace

// Before the step: its result may take the place of an operand.
void FiniteCheck::before(const Plan::Step& step, const backend::Launch& launch) {
  operands_are_fine_ = true;
  for (size_t i = 0; i < step.in.size(); ++i)
    operands_are_fine_ =
        operands_are_fine_ && first_bad(step.in[i], launch.in[i], wanted_ == Wanted::finite) < 0;
}

void FiniteCheck::after(const Plan::Step& step, const backend::Launch& launch) {
  if (!operands_are_fine_) return;
  for (size_t i = 0; i < step.out.size(); ++i) {
    const int64_t at = first_bad(step.out[i], launch.out[i], wanted_ == Wanted::finite);
    if (at < 0) continue;
    throw invalid("check-nan: ", step.op, " (", step.kernel, ") makes ",
                  wanted_ == Wanted::finite ? "NaN or infinity" : "NaN", " at element ", at, " of result ", i,
                  ", ", step.out[i].shape, ", from operands without");
  }
}

}  // namespace rlx
