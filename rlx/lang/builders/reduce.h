// Along axes: reductions, softmax, running sums, order.
#pragma once

#include "rlx/lang/builders/builder.h"
#include "rlx/ops/reduce/reduce.h"

namespace rlx {

/// Over axes: sums, extremes, orders.
class ReduceBuilder : public BuilderTheme<ReduceBuilder> {
 public:
  /// Over `axes`; none listed means all.
  Value reduce(Value input, ops::ReduceOp op, std::vector<int> axes, bool keep_dim,
               const Declared& shape = {}, const Loc& loc = Loc::current());
  /// The sum over axes.
  Value sum(Value x, std::vector<int> axes, bool keep_dim, const Declared& shape = {},
            const Loc& loc = Loc::current());
  /// The mean over axes.
  Value mean(Value x, std::vector<int> axes, bool keep_dim, const Declared& shape = {},
             const Loc& loc = Loc::current());
  Value variance(Value x, std::vector<int> axes, bool keep_dim, double correction = 0,
                 const Declared& shape = {}, const Loc& loc = Loc::current());
  Value any(Value x, std::vector<int> axes, bool keep_dim, const Declared& shape = {},
            const Loc& loc = Loc::current());
  Value all(Value x, std::vector<int> axes, bool keep_dim, const Declared& shape = {},
            const Loc& loc = Loc::current());
  Value logsumexp(Value x, std::vector<int> axes, bool keep_dim, const Declared& shape = {},
                  const Loc& loc = Loc::current());

  Value softmax(Value input, int axis, const Declared& shape = {}, const Loc& loc = Loc::current());
  /// softmax under its short name.
  Value sm(Value x, int axis, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value log_softmax(Value input, int axis, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value cumsum(Value input, int axis, bool exclusive = false, const Declared& shape = {},
               const Loc& loc = Loc::current());
  Value cumprod(Value input, int axis, bool exclusive = false, const Declared& shape = {},
                const Loc& loc = Loc::current());
  Value argmax(Value x, int axis, bool keep_dim = false, DType dtype = DType::i32, const Declared& shape = {},
               const Loc& loc = Loc::current());
  Value argmin(Value x, int axis, bool keep_dim = false, DType dtype = DType::i32, const Declared& shape = {},
               const Loc& loc = Loc::current());

  // Values, then indices.
  Values cummax(Value x, int axis, const Loc& loc = Loc::current());
  Values cummin(Value x, int axis, const Loc& loc = Loc::current());
  Values sort(Value x, int axis = -1, bool descending = false, const Loc& loc = Loc::current());
  Values top_k(Value x, int64_t k, int axis = -1, const Loc& loc = Loc::current());
  Value argsort(Value x, int axis = -1, bool descending = false, const Declared& shape = {},
                const Loc& loc = Loc::current());
};

}  // namespace rlx
