// Over axes: reductions, running sums.
#pragma once

#include "rlx/lang/builders/elementwise.h"
#include "rlx/ops/reduce/reduce.h"
namespace rlx {

class ReduceBuilder : public ElementwiseBuilder {
 public:
  using ElementwiseBuilder::ElementwiseBuilder;

  /// Over `axes`; none listed means all.
  Value reduce(Value input, ops::ReduceOp op, std::vector<int> axes, bool keep_dim,
               const Declared& shape = {}, const Loc& loc = Loc::current());
  Value sum(Value x, std::vector<int> axes, bool keep_dim, const Declared& shape = {},
            const Loc& loc = Loc::current());
  Value mean(Value x, std::vector<int> axes, bool keep_dim, const Declared& shape = {},
             const Loc& loc = Loc::current());
  Value cumsum(Value input, int axis, bool exclusive = false, const Declared& shape = {},
               const Loc& loc = Loc::current());
  Value cumprod(Value input, int axis, bool exclusive = false, const Declared& shape = {},
                const Loc& loc = Loc::current());
};

}  // namespace rlx
