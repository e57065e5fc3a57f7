// Products and solutions of linear systems.
#pragma once

#include "rlx/lang/builders/shape.h"

namespace rlx {

class LinearBuilder : public ShapeBuilder {
 public:
  using ShapeBuilder::ShapeBuilder;

  Value matmul(Value lhs, Value rhs, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value mm(Value lhs, Value rhs, const Declared& shape = {}, const Loc& loc = Loc::current());
};

}  // namespace rlx
