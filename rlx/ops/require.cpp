#include "rlx/ops/require.h"

namespace rlx::ops {
namespace {

// The largest n such that 0 .. n are exact.
int64_t largest_position(DType t) {
  switch (t) {
    case DType::i8:
      return INT8_MAX;
    case DType::u8:
      return UINT8_MAX;
    case DType::i16:
      return INT16_MAX;
    case DType::i32:
      return INT32_MAX;
    case DType::u32:
      return UINT32_MAX;
    case DType::bf16:
      return 1 << 8;
    case DType::f16:
      return 1 << 11;
    case DType::f32:
    case DType::c64:
      return 1 << 24;
    case DType::f64:
      return int64_t(1) << 53;
    default:
      return INT64_MAX;
  }
}

}  // namespace

void require_dims(ir::Infer& c, int i, const Dims& want, std::string_view why) {
  const Shape& x = c.in(i);
  bool ok = x.dims().size() == want.size();
  for (size_t k = 0; ok && k < want.size(); ++k) ok = decide_equal(x.dims()[k], want[k]) != false;
  if (!ok) c.fail(c.operand_name(i), ": ", x, " must be ", x.with_dims(want), why.empty() ? "" : " ", why);
  for (size_t k = 0; k < want.size(); ++k) c.same(x.dims()[k], want[k], "sizes");
}

void require_positions(const ir::Infer& c, DType dtype, Dim size) {
  if (size.is_static() && size.value() - 1 > largest_position(dtype)) {
    c.fail("dtype ", dtype, " does not hold the positions of an axis of ", size, "; it is exact up to ",
           largest_position(dtype));
  }
}

}  // namespace rlx::ops
