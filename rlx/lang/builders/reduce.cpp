#include "rlx/lang/builders/reduce.h"

#include "rlx/ops/reduce/cumulative.h"

namespace rlx {

Value ReduceBuilder::reduce(Value input, ops::ReduceOp op, std::vector<int> axes, bool keep_dim,
                            const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::reduce(t(input), op, std::move(axes), keep_dim); });
}

Value ReduceBuilder::sum(Value x, std::vector<int> axes, bool keep_dim, const Declared& shape,
                         const Loc& loc) {
  return one(shape, loc, [&] { return ops::reduce(t(x), ops::ReduceOp::sum, std::move(axes), keep_dim); });
}

Value ReduceBuilder::mean(Value x, std::vector<int> axes, bool keep_dim, const Declared& shape,
                          const Loc& loc) {
  return one(shape, loc, [&] { return ops::reduce(t(x), ops::ReduceOp::mean, std::move(axes), keep_dim); });
}

Value ReduceBuilder::cumsum(Value input, int axis, bool exclusive, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::cumsum(t(input), axis, exclusive); });
}

Value ReduceBuilder::cumprod(Value input, int axis, bool exclusive, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::cumprod(t(input), axis, exclusive); });
}

}  // namespace rlx
