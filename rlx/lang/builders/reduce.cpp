#include "rlx/lang/builders/reduce.h"

#include "rlx/lang/graph.h"
#include "rlx/ops/reduce/any_all.h"
#include "rlx/ops/reduce/cumulative.h"
#include "rlx/ops/reduce/extreme.h"
#include "rlx/ops/reduce/softmax.h"
#include "rlx/ops/reduce/sort.h"
#include "rlx/ops/reduce/variance.h"

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

Value ReduceBuilder::variance(Value x, std::vector<int> axes, bool keep_dim, double correction,
                              const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::variance(t(x), std::move(axes), keep_dim, correction); });
}

Value ReduceBuilder::any(Value x, std::vector<int> axes, bool keep_dim, const Declared& shape,
                         const Loc& loc) {
  return one(shape, loc, [&] { return ops::any(t(x), std::move(axes), keep_dim); });
}

Value ReduceBuilder::all(Value x, std::vector<int> axes, bool keep_dim, const Declared& shape,
                         const Loc& loc) {
  return one(shape, loc, [&] { return ops::all(t(x), std::move(axes), keep_dim); });
}

Value ReduceBuilder::logsumexp(Value x, std::vector<int> axes, bool keep_dim, const Declared& shape,
                               const Loc& loc) {
  return one(shape, loc, [&] { return ops::logsumexp(t(x), std::move(axes), keep_dim); });
}

Value ReduceBuilder::softmax(Value input, int axis, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::softmax(t(input), axis); });
}

Value ReduceBuilder::sm(Value x, int axis, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::softmax(t(x), axis); });
}

Value ReduceBuilder::log_softmax(Value input, int axis, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::log_softmax(t(input), axis); });
}

Value ReduceBuilder::cumsum(Value input, int axis, bool exclusive, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::cumsum(t(input), axis, exclusive); });
}

Value ReduceBuilder::cumprod(Value input, int axis, bool exclusive, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::cumprod(t(input), axis, exclusive); });
}

Value ReduceBuilder::argmax(Value x, int axis, bool keep_dim, DType dtype, const Declared& shape,
                            const Loc& loc) {
  return one(shape, loc, [&] { return ops::argmax(t(x), axis, keep_dim, dtype); });
}

Value ReduceBuilder::argmin(Value x, int axis, bool keep_dim, DType dtype, const Declared& shape,
                            const Loc& loc) {
  return one(shape, loc, [&] { return ops::argmin(t(x), axis, keep_dim, dtype); });
}

Values ReduceBuilder::cummax(Value x, int axis, const Loc& loc) {
  return many(loc, [&] { return ops::cummax(t(x), axis); });
}

Values ReduceBuilder::cummin(Value x, int axis, const Loc& loc) {
  return many(loc, [&] { return ops::cummin(t(x), axis); });
}

Values ReduceBuilder::sort(Value x, int axis, bool descending, const Loc& loc) {
  return many(loc, [&] { return ops::sort(t(x), axis, descending); });
}

Values ReduceBuilder::top_k(Value x, int64_t k, int axis, const Loc& loc) {
  return many(loc, [&] { return ops::top_k(t(x), k, axis); });
}

Value ReduceBuilder::argsort(Value x, int axis, bool descending, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::argsort(t(x), axis, descending); });
}

}  // namespace rlx
