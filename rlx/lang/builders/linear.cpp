#include "rlx/lang/builders/linear.h"

#include "rlx/ops/linalg/matmul.h"

namespace rlx {

Value LinearBuilder::matmul(Value lhs, Value rhs, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::matmul(t(lhs), t(rhs)); });
}

Value LinearBuilder::mm(Value lhs, Value rhs, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::matmul(t(lhs), t(rhs)); });
}

}  // namespace rlx
