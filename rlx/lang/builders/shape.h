// Where elements lie: extents, order, pieces, indices.
#pragma once

#include "rlx/lang/builders/builder.h"
#include "rlx/ops/index/scatter.h"

namespace rlx {

/// Where elements lie.
class ShapeBuilder : public BuilderTheme<ShapeBuilder> {
 public:
  /// One extent may be -1.
  Value reshape(Value x, Dims new_shape, const Declared& shape = {}, const Loc& loc = Loc::current());
  /// Axis i of the result is axis perm[i]; an empty perm reverses the axes.
  Value transpose(Value x, std::vector<int> perm, const Declared& shape = {},
                  const Loc& loc = Loc::current());
  Value narrow(Value x, int axis, Dim start, Dim len, const Declared& shape = {},
               const Loc& loc = Loc::current());
  Value slice(Value x, Dims start, Dims limit, std::vector<int64_t> stride = {}, const Declared& shape = {},
              const Loc& loc = Loc::current());
  Value dynamic_slice(Value x, Value starts, Dims sizes, const Declared& shape = {},
                      const Loc& loc = Loc::current());
  Value dynamic_update_slice(Value x, Value update, Value starts, const Declared& shape = {},
                             const Loc& loc = Loc::current());
  Value concat(const Values& inputs, int axis, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value stack(const Values& inputs, int axis, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value expand(Value x, Dims new_shape, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value unsqueeze(Value x, int axis, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value squeeze(Value x, int axis, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value pad(Value x, Dims low, Dims high, double value = 0, const Declared& shape = {},
            const Loc& loc = Loc::current());
  Value flip(Value x, std::vector<int> axes, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value iota(const Shape& type, int axis, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value one_hot(Value indices, Dim depth, int axis = -1, DType dtype = DType::f32, const Declared& shape = {},
                const Loc& loc = Loc::current());

  // Indices are integers, or whole-valued floats.
  Value gather(Value table, Value indices, int axis, const Declared& shape = {},
               const Loc& loc = Loc::current());
  Value batched_gather(Value table, Value indices, int axis, int batch_dims, const Declared& shape = {},
                       const Loc& loc = Loc::current());
  Value take_along(Value x, Value indices, int axis, const Declared& shape = {},
                   const Loc& loc = Loc::current());
  Value scatter(Value base, Value indices, Value updates, ops::ScatterKind kind, const Declared& shape = {},
                const Loc& loc = Loc::current());
  Value scatter_add(Value updates, Value indices, Dim rows, const Declared& shape = {},
                    const Loc& loc = Loc::current());

  // The same under the short names.
  Value reshape_(Value x, Dims new_shape, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value transpose_(Value x, std::vector<int> perm, const Declared& shape = {},
                   const Loc& loc = Loc::current());
  Value narrow_(Value x, int axis, Dim start, Dim len, const Declared& shape = {},
                const Loc& loc = Loc::current());
  Value concat_(const Values& inputs, int axis, const Declared& shape = {}, const Loc& loc = Loc::current());
  Value gather_(Value table, Value indices, int axis, const Declared& shape = {},
                const Loc& loc = Loc::current());
};

}  // namespace rlx
