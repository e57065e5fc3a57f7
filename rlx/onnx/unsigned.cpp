#include "rlx/onnx/unsigned.h"

#include "rlx/lang/operators.h"

namespace rlx::onnx {
namespace {

constexpr int64_t kBelow = 0x7fffffffffffffff, kTop = ~kBelow;  // all bits but the highest, and that one

Tensor number(const Tensor& like, int64_t v) {
  return ir::Expr{&like.graph(), like.graph().constant(Literal::of<int64_t>({}, {v}))};
}

Tensor half(const Tensor& x) {
  return rlx::bitwise_and(rlx::shift_right(x, number(x, 1)), number(x, kBelow));
}

Tensor at_least(const Tensor& a, const Tensor& b) { return in_order(a) >= in_order(b); }

}  // namespace

bool is_u64(const Item& it) { return it.element == file::ElementType::u64; }

Tensor in_order(const Tensor& x) { return rlx::bitwise_xor(x, number(x, kTop)); }

Tensor comparable(const Call& c, const Tensor& x) { return is_u64(c.item(0)) ? in_order(x) : x; }

// Half of a fits the signed division: twice that quotient is the right one or one too small. A divisor of 2^63 or more goes
// into a once or not at all.
Tensor u64_quotient(const Tensor& a, const Tensor& b) {
  const Tensor safe = (b <= 0).where(1, b);
  const Tensor q = rlx::div(half(a), safe) * 2;
  const Tensor small = q + at_least(a - q * b, b).cast(DType::i64);
  return (b < 0).where(at_least(a, b).cast(DType::i64), small);
}

Tensor u64_shifted_right(const Tensor& x, const Tensor& bits) {
  // The first bit by hand, so that what comes from above is 0.
  return bits.eq(0).where(x, rlx::shift_right(half(x), (bits - 1).max(0)));
}

// From 2^63 on half of it is converted; the last bit stays in, so that it is rounded once.
Tensor real_of_u64(const Tensor& x, DType to) {
  const Tensor halved = rlx::bitwise_or(half(x), rlx::bitwise_and(x, number(x, 1)));
  return (x < 0).where(halved.cast(to) * 2, x.cast(to));
}

Tensor u64_of_real(const Tensor& x) {
  const Tensor wide = x.dtype() == DType::f64 ? x : x.cast(DType::f64);
  const Tensor high = in_order((wide - 0x1p63).cast(DType::i64));
  return (wide >= 0x1p63).where(high, wide.cast(DType::i64));
}

}  // namespace rlx::onnx
