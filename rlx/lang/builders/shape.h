// Where elements lie: extents, order, pieces.
#pragma once

#include "rlx/lang/builders/reduce.h"

namespace rlx {

class ShapeBuilder : public ReduceBuilder {
 public:
  using ReduceBuilder::ReduceBuilder;

  /// One extent may be -1.
  Value reshape(Value x, Dims new_shape, const Declared& shape = {}, const Loc& loc = Loc::current());
  /// Axis i of the result is axis perm[i]; an empty perm reverses the axes.
  Value transpose(Value x, std::vector<int> perm, const Declared& shape = {},
                  const Loc& loc = Loc::current());
  Value narrow(Value x, int axis, Dim start, Dim len, const Declared& shape = {},
               const Loc& loc = Loc::current());
  Value concat(const Values& inputs, int axis, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value stack(const Values& inputs, int axis, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value expand(Value x, Dims new_shape, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value unsqueeze(Value x, int axis, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value squeeze(Value x, int axis, const Declared& shape = {}, const Loc& loc = Loc::current());

  // The same under the short names.
  Value reshape_(Value x, Dims new_shape, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value transpose_(Value x, std::vector<int> perm, const Declared& shape = {},
                   const Loc& loc = Loc::current());
  Value narrow_(Value x, int axis, Dim start, Dim len, const Declared& shape = {},
                const Loc& loc = Loc::current());
  Value concat_(const Values& inputs, int axis, const Declared& shape = {}, const Loc& loc = Loc::current());
};

}  // namespace rlx
